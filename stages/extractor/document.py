"""What a document says, whatever its type: the form that all readers of documents return."""

from collections import Counter
from dataclasses import dataclass, field

from contract.config import LINK_KINDS
from contract.trouble import join_words

# Kinds of links: indexes of the bits of Ligacoes.kinds.
(
    A,
    AREA,
    FRAME,
    REFRESH,
    REDIRECT,
    LINK,
    IMAGE,
    SCRIPT,
    CANONICAL,
    ALTERNATE,
    NEXT,
    OBJECT,
    FORM,
    MEDIA,
    STYLE,
    LOCATION,
    SITEMAP,
    FEED,
    DOCUMENT,
    TEXT,
    DATA,
) = range(len(LINK_KINDS))

TITLE_MAX_CHARACTERS = 300


@dataclass(slots=True)
class Document:
    """Links are texts as the document spells them, not yet resolved."""

    title: str = ""
    language: str = ""  # as declared
    base: str | None = None  # what links are relative to, itself relative to the document; none: the document
    canonical: str | None = None  # text of the link that names the document's own address
    noindex: bool = False
    nofollow: bool = False  # says so for all of its links
    # Texts of plain <a href>, without fragments: nearly all links of HTML. They come before the others.
    hrefs: list[str] = field(default_factory=list)
    others: dict[tuple[int, str, bool], int] = field(default_factory=dict)  # (kind, text, marked nofollow): occurrences
    # Text of a link -> its first anchor text, where anchor texts are kept.
    anchors: dict[str, str] = field(default_factory=dict)
    lastmods: dict[str, int] = field(default_factory=dict)  # text of a link -> when it changed, in seconds since 1970
    text: str = ""  # the words that people read, where a fingerprint is wanted
    trouble: str = ""  # why not all of it was read (contract/trouble.py)

    def add(self, kind: int, text: str, nofollow: bool = False) -> None:
        link = (kind, text, nofollow)
        self.others[link] = self.others.get(link, 0) + 1

    def mark(self, trouble: str) -> None:
        """Records that not all of it was read."""
        self.trouble = join_words(self.trouble, trouble)

    def join(self, other: "Document") -> None:
        """Takes what the next part of the document says: links, language, base, canonical, what it asks of robots."""
        for link, count in other.others.items():
            self.others[link] = self.others.get(link, 0) + count
        self.language = self.language or other.language
        self.base = other.base if self.base is None else self.base
        self.canonical = other.canonical if self.canonical is None else self.canonical
        self.noindex, self.nofollow = self.noindex or other.noindex, self.nofollow or other.nofollow

    @property
    def links(self) -> dict[tuple[int, str, bool], int]:
        """All links, each with its occurrences, in the order of their first ones."""
        return Counter((A, text, False) for text in self.hrefs) + Counter(self.others)


def without_fragment(text: str) -> str:
    """The text of a link without its fragment: it leads to the same URL.

    A blank before the # stops that: at the end of the text the URL parser would drop it.
    """
    end = text.find("#")
    return text[:end] if end == 0 or end > 0 and text[end - 1] > " " else text


def shorten(title: str) -> str:
    return " ".join(title.split())[:TITLE_MAX_CHARACTERS]
