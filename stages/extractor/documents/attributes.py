"""What the values of attributes of HTML elements mean; headers of HTTP use some of them too."""

import re
from functools import lru_cache

from stages.extractor.document import ALTERNATE, CANONICAL, IMAGE, LINK, NEXT, SITEMAP, STYLE

LANGUAGE_MAX_CHARACTERS = 35  # RFC 5646 4.4.1: what every reader must have room for
_RELATIONS = {  # word of <link rel>: kind, the first that is found counts
    "canonical": CANONICAL,
    "stylesheet": STYLE,
    "icon": IMAGE,
    "apple-touch-icon": IMAGE,
    "mask-icon": IMAGE,
    "next": NEXT,
    "prev": NEXT,
    "previous": NEXT,
    "sitemap": SITEMAP,
    "alternate": ALTERNATE,
}
# The HTML standard's shared declarative refresh steps: a time, a mark or blank, then the URL, with url= and quotes or
# without.
_REFRESH = re.compile(
    r"""\s*+(?:[0-9]++|(?=\.))[0-9.]*+(?=[;,\s])\s*+[;,]?+\s*+(?:url\s*+=\s*+|(?!url\s*+=))(?:"([^"]*+)|'([^']*+)|(.++))""",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)  # possessive: linear, whatever a page holds


def is_nofollow(attributes: dict[str, str | None]) -> bool:
    rel = attributes.get("rel")
    return rel is not None and "nofollow" in rel.lower().split()


def is_get(attributes: dict[str, str | None]) -> bool:
    """Whether a form, or the button that overrules it, is sent by GET. The form around a button is not looked up."""
    method = attributes.get("formmethod") or attributes.get("method") or ""
    return method.lower() not in ("post", "dialog")  # an unknown method means GET


def language_of(attributes: dict[str, str | None]) -> str:
    return (attributes.get("lang") or attributes.get("xml:lang") or "").strip()[:LANGUAGE_MAX_CHARACTERS]


def relation_of(attributes: dict[str, str | None]) -> int:
    return relation_kind(attributes.get("rel") or "")


@lru_cache(1 << 10)
def relation_kind(rel: str) -> int:
    """The kind of link that a list of relations means."""
    words = frozenset(rel.lower().split())
    return next((kind for word, kind in _RELATIONS.items() if word in words), LINK)


def refresh_target(content: str) -> str | None:
    """The target of a <meta http-equiv=refresh> or a header Refresh; none where it only reloads the same page."""
    found = _REFRESH.match(content)
    return found[found.lastindex].strip() or None if found else None
