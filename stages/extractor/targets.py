"""Where the texts of links lead: canonical URLs with their keys and the verdict of the scope, each found once.

Links repeat over the pages of a site, so what is found is remembered under the least that it depends on: the URL itself,
or its text with the folder, the server or nothing that it is relative to. Most links are plain paths, which are joined without a parser.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from contract.canonical import Canonical
from contract.url import URL_MAX_BYTES, Keys, NotCanonical, canonicalise, server_of
from stages.extractor.charset import to_page_query
from stages.extractor.scope import Scope

URLS_REMEMBERED = 1 << 16
TEXTS_REMEMBERED = 1 << 16
TEXT_REMEMBERED_MAX_CHARACTERS = 1_000  # images in data: URLs would fill the memory
# Paths and queries that a URL parser leaves as they are, unless they hold steps (./, ../).
_PLAIN = re.compile(r"/?[A-Za-z0-9_~-][A-Za-z0-9_.~/-]*+(?:\?[A-Za-z0-9_.~=&/-]++)?+")


class Target(NamedTuple):
    """Where a text leads: a URL with the rule of the scope that it breaks, or no URL and the reason why."""

    url: str
    key: int
    server: str
    rejected: str


class Base(NamedTuple):
    """What the links of a document are relative to."""

    url: str
    root: str  # its server and a slash
    folder: str


def base_at(url: str) -> Base:
    return Base(url, server_of(url) + "/", url.partition("?")[0].rpartition("/")[0] + "/")


class Targets:
    def __init__(self, canonical: Canonical, scope: Scope, keys: Keys):
        self._canonical = canonical
        self._scope = scope
        self._keys = keys
        self._at = lru_cache(maxsize=URLS_REMEMBERED)(self._judge_url)
        self._found = lru_cache(maxsize=TEXTS_REMEMBERED)(self._find)

    def base_of(self, url: str, text: str | None) -> Base:
        """What a page's links are relative to: its <base href>, itself relative to the page, or the page."""
        try:
            return base_at(canonicalise(text, url) if text is not None else url)
        except NotCanonical:
            return base_at(url)

    def find(self, text: str, base: Base, charset: str) -> Target:
        """Where the text of a link leads, in a page of that encoding."""
        if not text.isascii():
            text = to_page_query(text, charset)
        place = text.find("#")
        if place > 0 and text[place - 1] > " ":  # a blank before it would become the end of the text, and be dropped
            text = text[:place]
        elif place == 0 or not text:
            return self._at(self._canonical.fold(base.url))
        first = text[0]
        if first == "/":
            relative_to = base.root
        elif text.startswith(("http://", "https://")):
            relative_to = ""
        else:
            # Only a query is relative to the whole; it may stand behind the base's own scheme, as in 'http:?q'.
            relative_to = base.folder if first > " " and first != "?" and ":" not in text else base.url
        return self._found(text, relative_to) if len(text) <= TEXT_REMEMBERED_MAX_CHARACTERS else self._find(text, relative_to)

    def _find(self, text: str, relative_to: str) -> Target:
        """`relative_to` is a server's root where the text begins with a slash."""
        try:
            if _PLAIN.fullmatch(text) and "./" not in text and ".?" not in text and text[-1] != "." and relative_to.endswith("/"):
                url = relative_to[:-1] + text if text[0] == "/" else relative_to + text
                if len(url) <= URL_MAX_BYTES:
                    return self._at(self._canonical.fold(url))
            return self._at(self._canonical(text, relative_to or None))
        except NotCanonical as error:
            return Target("", 0, "", error.reason)

    def _judge_url(self, url: str) -> Target:
        return Target(url, self._keys.of(url), server_of(url), self._scope.judge(url))
