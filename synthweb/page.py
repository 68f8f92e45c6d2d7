"""What the generator knows of a page and of a link: the truth is read from these, never from the HTML."""

import math
from dataclasses import dataclass, field

from synthweb.url import Url

# "text" is a URL in a text that is not HTML; "hidden" a link in a comment, a script or a textarea; "unread" one in what
# is no text.
FOLLOWED_KINDS = frozenset({"a", "area", "iframe", "frame", "refresh", "redirect", "text"})
IGNORED_KINDS = frozenset({"img", "script", "css", "hidden", "unread"})

FOREVER = math.inf


@dataclass(slots=True)
class Link:
    """One link: where it is meant to lead, and how it is written.

    `target` is None where no correct crawler of this web may go: outside .test, another scheme, unparsable;
    then `raw` is the text and `why` names the case.
    """

    target: Url | None
    kind: str = "a"
    form: str = ""  # the way of writing it, see spelling.py; chosen when the page is finished
    extra: str = ""  # something harmless added to the text, see spelling.py
    rel: str = ""
    raw: str = ""
    why: str = ""

    def is_followed(self) -> bool:
        return self.target is not None and self.kind in FOLLOWED_KINDS and "nofollow" not in self.rel.lower().split()


@dataclass(slots=True)
class Page:
    """One resource of a server. `level` is its depth: no link of the web leads down by more than one level."""

    url: Url
    level: int = 0
    feature: str = "plain"
    status: int = 200
    content_type: str = "text/html"
    shape: str = "page"  # which writer of markup.py makes the body
    charset: str = "utf-8"
    declared: str = "header"  # where the charset is told: header, meta, http-equiv, bom, none
    links: list[Link] = field(default_factory=list)
    base: Url | None = None  # what <base href> means; base_form is how it is written
    base_form: str = ""
    nofollow: str = ""  # content of <meta name=robots>
    failure_status: int = 0
    failures: float = 0  # so many first requests get failure_status; FOREVER is allowed
    framing: str = "length"  # how the end of the body is told: length, chunked, close
    closes: bool = False  # "Connection: close" after the answer
    gzipped: bool = False
    portable: bool = False  # written so that the same bytes mean the same under any URL of the server
    key: str = ""  # seeds the words of the body; two pages of one key and the same links have the same body

    def base_url(self) -> Url:
        return self.base or self.url

    def targets(self) -> list[Url]:
        """Where a correct crawler goes on from an answer with this page."""
        if self.nofollow:
            return []
        return [link.target for link in self.links if link.is_followed()]
