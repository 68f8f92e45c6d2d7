"""Files of terms, what the policy focused looks for, and how many of them a text has.

A person gives a text: a word or phrase per line. An empty line and one that begins with # count for nothing. Terms are
folded: composed characters (NFC), lower case, words with one blank between them. A word is a run of letters and digits;
from U+0080 on all characters count as letters but for punctuation (the ranges in `WORD`). What no blank ends, as in
Chinese, is one word. The crawl keeps the folded terms, each once, sorted.

    water
    drinking water
    água potável
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from unicodedata import is_normalized, normalize

from contract.errors import BadInput
from contract.rank_files import show_line
from contract.url import Keys
from contract.url_terms import COUNT_MAX

FILE_MAX_BYTES = 1 << 20
TERMS_MAX, WORDS_MAX, CHARACTERS_MAX = 1_000, 8, 100  # of a file, a term, a term
TEXT_MAX_CHARACTERS = 10_000  # of a page, which is some 0.4 ms
WORD = re.compile("[0-9a-z\u00c0-\u1fff\u2080-\u2fff\u3040-\U0010ffff]+")  # of a folded text
# More marks in a row than any language writes: to compose them takes time in the square of their number.
MANY_MARKS = re.compile(r"[^\w\s]{31,}")
ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
EXPECTED = f"expected a term of at most {WORDS_MAX} words and {CHARACTERS_MAX} characters in UTF-8, as people write it"


def convert(path: Path, content: bytes, keys: Keys) -> bytes:
    """The crawl's own copy of a file of terms; BadInput, with the line, where something else stands there."""
    if len(content) > FILE_MAX_BYTES:
        raise BadInput(f"{path}: expected at most {FILE_MAX_BYTES} bytes of terms, found {len(content)}")
    content = content.removeprefix(BYTE_ORDER_MARK)
    terms = {read_term(path, content, number, line) for number, line in lines_of(content)}
    if not terms:
        raise BadInput(f"{path}: expected a term per line, found none")
    if len(terms) > TERMS_MAX:
        raise BadInput(f"{path}: expected at most {TERMS_MAX} terms, found {len(terms)}")
    return "".join(f"{term}\n" for term in sorted(terms)).encode()


def lines_of(content: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            yield number, line.strip()


def read_term(path: Path, content: bytes, number: int, line: bytes) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    words = words_of(text)
    is_good = words and text.replace("\t", " ").isprintable() and not ESCAPE.search(text)
    if not is_good or len(words) > WORDS_MAX or len(text) > CHARACTERS_MAX:
        raise BadInput(f"{path}: line {number}: {EXPECTED}; found {show_line(content, number)}")
    return " ".join(words)


def words_of(text: str) -> list[str]:
    """The folded words of a text, in their order."""
    composed = text if is_normalized("NFC", text) else normalize("NFC", MANY_MARKS.sub(" ", text))
    found: list[str] = WORD.findall(composed.lower())
    return found


def read_terms(path: Path) -> list[str]:
    """Of the crawl's own copy."""
    return path.read_text("utf-8").splitlines()


class TermCounter:
    """Counts the different terms in the text of a page, up to COUNT_MAX."""

    def __init__(self, terms: list[str]):
        self._words = frozenset(term for term in terms if " " not in term)
        self._phrases = defaultdict(list)  # by their first word
        for term in terms:
            if " " in term:
                self._phrases[term.partition(" ")[0]].append((frozenset(term.split()), f" {term} "))

    def __call__(self, text: str) -> int:
        """One pass finds the words. Phrases are searched for only where all of their words are there."""
        words = words_of(text[:TEXT_MAX_CHARACTERS])
        distinct = set(words)
        phrases = [
            phrase for first in distinct & self._phrases.keys() for parts, phrase in self._phrases[first]
            if parts <= distinct
        ]  # fmt: skip
        joined = f" {' '.join(words)} " if phrases else ""
        return min(len(self._words & distinct) + sum(phrase in joined for phrase in phrases), COUNT_MAX)
