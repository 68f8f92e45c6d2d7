"""What an answer says: its type, charset and decoded content, the document in it, and the links of its headers."""

from typing import NamedTuple

from contract.body import decode_body
from contract.config import Config
from contract.trouble import BROKEN, MEMORY, TRUNCATED, UNDECODED, UNREADABLE, join_words
from contract.url import NotCanonical, canonicalise
from contract.warc import HttpMessage
from stages.extractor.charset import choose_charset, to_utf_8
from stages.extractor.directives import read_tags
from stages.extractor.document import CANONICAL, DATA, Document
from stages.extractor.documents import HTML, READERS, START_BYTES, choose_reader, html
from stages.extractor.documents.attributes import LANGUAGE_MAX_CHARACTERS
from stages.extractor.documents.embedded_urls import find_embedded
from stages.extractor.header_links import location_of, read_header_links

TYPE_MAX_CHARACTERS = 100
_TEXTS = frozenset((HTML, "sitemap", "feed", "xml", "json", "css", "script", "text"))
_MARKUP = frozenset((HTML, "sitemap", "feed", "xml"))


class Answer(NamedTuple):
    type: str
    charset: str  # '' where the answer is no text
    content: bytes  # decoded, at most page_max_bytes
    reader: str  # that read the document; '' where none did
    document: Document  # an empty one where there is none; the links of headers are not in it
    header_links: tuple[tuple[int, str, bool], ...]  # kind, text, marked nofollow; relative to the answer's own URL
    location: str  # of a redirect, as it stands in the header
    trouble: str = ""  # what was not read (contract/trouble.py)
    etag: str = ""
    last_modified: str = ""


class AnswerReader:
    """Reads answers by one configuration. `reads_text`: the words that people read are wanted, for a policy."""

    def __init__(self, config: Config, reads_text: bool = False):
        self._page_max_bytes = config.extractor.page_max_bytes
        self._agent = config.fetcher.agent.lower()
        self._wanted = frozenset((HTML, *config.extractor.documents))
        self._html_options = html.Options(
            self._agent,
            config.extractor.lazy_attributes,
            "inline_scripts" in self._wanted,
            config.extractor.anchor_text,
            config.extractor.near_duplicates or reads_text,
            "inline_styles" in self._wanted,
        )

    def read(self, url: str, message: HttpMessage, *, is_poison: str = "", is_truncated: bool = False) -> Answer:
        """Reads the answer to a request for a canonical URL. Does not raise, whatever a server sent.

        `is_poison`: how an earlier attempt to read the document ended; it is not tried again.
        `is_truncated`: only the first part of the body was stored.
        """
        headers = message.by_name()
        content_type = headers.get("content-type", ("",))[0]
        kind = kind_of(content_type)
        content, body_trouble = decode_body(message, self._page_max_bytes)
        is_decoded = body_trouble != UNDECODED
        name = choose_reader(kind, content[:START_BYTES]) if is_decoded else ""
        charset = ""
        if is_decoded and (name in _TEXTS or kind.startswith("text/")):
            charset = choose_charset(content, content_type, has_markup=name in _MARKUP)
        document, failure = Document(), is_poison
        if name in self._wanted and 200 <= message.status < 300 and not is_poison:
            try:
                document = self._read_document(name, content, charset)
            except MemoryError:
                failure = MEMORY
            except Exception:  # where a parser fails, the document has no links; the cycle must not end
                failure = UNREADABLE
        else:
            name = ""
        self._obey_headers(document, headers)
        if "urls_in_urls" in self._wanted:
            self._add_embedded(url, document)
        links = tuple(read_header_links(message.status, headers))
        document.language = document.language[:LANGUAGE_MAX_CHARACTERS]
        if document.canonical is None:
            document.canonical = next((join(text, url) for link_kind, text, _ in links if link_kind == CANONICAL), None)
        if is_truncated:  # then it also looks broken
            body_trouble = join_words(TRUNCATED, body_trouble if body_trouble != BROKEN else "")
        trouble = join_words(body_trouble, failure, document.trouble if content else "")
        location = location_of(message.status, headers)
        return Answer(
            kind,
            charset,
            content,
            "" if failure else name,
            document,
            links,
            location,
            trouble,
            headers.get("etag", ("",))[0],
            headers.get("last-modified", ("",))[0],
        )

    def _read_document(self, name: str, content: bytes, charset: str) -> Document:
        if name == HTML:
            return html.read(to_utf_8(content, charset), charset, self._html_options)
        return READERS[name].read(content, charset)

    def _obey_headers(self, document: Document, headers: dict[str, list[str]]) -> None:
        if "x-robots-tag" in headers:
            said = read_tags(headers["x-robots-tag"], self._agent)
            document.noindex, document.nofollow = document.noindex or said.noindex, document.nofollow or said.nofollow
        if not document.language and "content-language" in headers:
            document.language = headers["content-language"][0].partition(",")[0].strip()[:LANGUAGE_MAX_CHARACTERS]

    @staticmethod
    def _add_embedded(url: str, document: Document) -> None:
        for text in (url, *(text for _, text, _ in document.links)):
            for inner in find_embedded(text):
                document.add(DATA, inner)


def join(text: str, url: str) -> str:
    """A text of a header as an absolute URL: the base of the document does not apply to headers."""
    try:
        return canonicalise(text, url)
    except NotCanonical:
        return ""


def read_head(message: HttpMessage) -> Answer:
    """What the head of an answer says; for a revisit, whose body is in an earlier record."""
    return Answer(
        kind_of(message.get("content-type")),
        "",
        b"",
        "",
        Document(),
        (),
        "",
        "",
        message.get("etag"),
        message.get("last-modified"),
    )


def kind_of(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()[:TYPE_MAX_CHARACTERS]
