"""What a document says, whatever its type: the one form that every reader of documents gives."""

from dataclasses import dataclass, field

from contract.config import LINK_KINDS

# Kinds of links: places of the bits of Ligacoes.kinds.
(A, AREA, FRAME, REFRESH, REDIRECT, LINK, IMAGE, SCRIPT, CANONICAL, ALTERNATE, NEXT, OBJECT, FORM, MEDIA, STYLE, LOCATION,
 SITEMAP, FEED, DOCUMENT, TEXT, DATA) = range(len(LINK_KINDS))

TITLE_MAX_CHARACTERS = 300


@dataclass(slots=True)
class Document:
    """Links are texts as they stand in the document, not yet resolved."""
    title: str = ""
    language: str = ""  # as declared
    base: str | None = None  # what links are relative to, itself relative to the document; none: the document
    canonical: str | None = None  # text of the link that names the document's own address
    noindex: bool = False
    nofollow: bool = False  # says so for all of its links
    links: dict[tuple[int, str, bool], int] = field(default_factory=dict)  # (kind, text, marked nofollow): occurrences; of HTML <a> first
    anchors: dict[str, str] = field(default_factory=dict)  # text of a link -> first words that it stands under, where they are kept
    text: str = ""  # the words that people read, where a fingerprint is wanted

    def add(self, kind: int, text: str, nofollow: bool = False) -> None:
        link = (kind, text, nofollow)
        self.links[link] = self.links.get(link, 0) + 1


def shorten(title: str) -> str:
    return " ".join(title.split())[:TITLE_MAX_CHARACTERS]
