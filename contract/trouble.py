"""The words of the column `trouble`, and their meanings: why an answer, or a part of it, was not read.

A row has none, or some, separated by blanks. The column `parsed` says whether the document was read at all.
"""

TIMEOUT, MEMORY, DIED, UNREADABLE = "timeout", "memory", "died", "unreadable"
UNDECODED, BROKEN, TRUNCATED, TOO_LONG = "undecoded", "broken", "truncated", "too_long"
NESTING, ATTRIBUTES, READER_BOUND, PAGE_LINKS = "nesting", "attributes", "reader_bound", "page_links"

MEANINGS = {
    TIMEOUT: "its document was not read, because that took longer than [extractor] page_max_s",
    MEMORY: "its document was not read, because that took more than [extractor] page_memory_max_bytes",
    DIED: "its document was not read, because it crashed its reader",
    UNREADABLE: "its document was not read, because its reader failed on it",
    UNDECODED: "its body was not read, because its Content-Encoding is not known, or is not the one that it claims",
    BROKEN: "its body or document is damaged or ends early; what could be read of it was",
    TRUNCATED: "only the first part of its body was stored (WARC-Truncated), and read",
    TOO_LONG: "its body is longer than [extractor] page_max_bytes; the first part was read",
    NESTING: "its elements are nested too deeply, or too many stay open; what stands before that was read",
    ATTRIBUTES: "one of its tags has too many attributes; what stands before that tag was read",
    READER_BOUND: "its document passes a bound of its reader (docs/scope.md); a part of it was read",
    PAGE_LINKS: "it leads to more URLs than [scope] page_links_max_bytes takes; the first of them were taken",
}


def join_words(*words: str) -> str:
    """The column for what several columns say: each word once."""
    return " ".join(dict.fromkeys(" ".join(words).split()))


def explain(trouble: str) -> str:
    """The column in words for people."""
    return "; ".join(MEANINGS.get(word, word) for word in trouble.split())
