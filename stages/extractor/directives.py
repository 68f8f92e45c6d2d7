"""What <meta name=robots> and the header X-Robots-Tag ask of robots: not to index a page, not to follow its links."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_WORDS = re.compile(r"[\s,]+")
_AGENT = re.compile(r"\s*+([A-Za-z0-9_.*-]++)\s*+:")
# These are 'name: value', not agents.
_WITH_VALUES = frozenset(("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"))


class Directives(NamedTuple):
    noindex: bool = False
    nofollow: bool = False


def read_words(content: str) -> Directives:
    words = _WORDS.split(content.lower())
    is_none = "none" in words
    return Directives(is_none or "noindex" in words, is_none or "nofollow" in words)


def read_tags(values: Iterable[str], agent: str) -> Directives:
    """What all headers X-Robots-Tag ask together; `agent` is in lower case.

    A header that begins with the name of an agent holds for that agent alone.
    """
    noindex = nofollow = False
    for value in values:
        found = _AGENT.match(value)
        if found and found[1].lower() not in _WITH_VALUES:
            if found[1].lower() not in (agent, "*"):
                continue
            value = value[found.end() :]
        said = read_words(value)
        noindex, nofollow = noindex or said.noindex, nofollow or said.nofollow
    return Directives(noindex, nofollow)
