"""Where the texts of links lead: canonical URLs with their keys and the verdict of the scope, each found once.

Links repeat over the pages of a site, so what is found is remembered: by URL, and by the folder of the page and the text
of the link, but for the few texts that are relative to more than the folder. Most links are plain paths, which are joined without a parser.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from contract.canonical import Canonical
from contract.url import URL_MAX_BYTES, Keys, NotCanonical, canonicalise, server_of
from stages.extractor.charset import to_page_query
from stages.extractor.scope import Scope

URLS_REMEMBERED = 1 << 16
TEXTS_REMEMBERED = 1 << 16  # of all folders together, the folders counted too
TEXT_REMEMBERED_MAX_CHARACTERS = 500  # images in data: URLs would fill the memory ...
URL_REMEMBERED_MAX_CHARACTERS = 500  # ... and so would long bases; what a worker remembers must not decide which page fits into it
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
        self._judged = lru_cache(maxsize=URLS_REMEMBERED)(self._judge_url)
        self._near: dict[str, dict[str, Target]] = {}  # folder -> text -> where it leads from there
        self._remembered = 0

    def base_of(self, url: str, text: str | None) -> Base:
        """What a page's links are relative to: its <base href>, itself relative to the page, or the page."""
        try:
            return base_at(canonicalise(text, url) if text is not None else url)
        except NotCanonical:
            return base_at(url)

    def near(self, base: Base) -> dict[str, Target]:
        """Where texts lead from the folder of a base, as far as that was found; on others than those find() must be asked."""
        if self._remembered > TEXTS_REMEMBERED:
            self._near, self._remembered = {}, 0
        if base.folder not in self._near:
            self._near[base.folder] = {}
            self._remembered += 1  # folders count too
        return self._near[base.folder]

    def find(self, text: str, base: Base, charset: str) -> Target:
        """Where the text of a link leads, in a page of that encoding."""
        if text[:1] in ("", "#"):
            return self._at(self._canonical.fold(base.url))
        if not text.isascii():
            return self._find(to_page_query(text, charset), base.url)
        if len(text) > TEXT_REMEMBERED_MAX_CHARACTERS or text[0] <= " " or text[0] == "?":
            return self._find(text, base.url)  # only a query is relative to more than the folder
        if ":" in text and not text.startswith(("http://", "https://")):
            return self._find(text, base.url)  # as 'http:?q' is, too
        target = self._near_find(text, base)
        if len(target.url) <= URL_REMEMBERED_MAX_CHARACTERS:
            self._near.setdefault(base.folder, {})[text] = target
            self._remembered += 1
        return target

    def _near_find(self, text: str, base: Base) -> Target:
        """The same of a text that leads to the same place from everywhere in a folder."""
        place = text.find("#")
        if place > 0 and text[place - 1] > " ":  # a blank before it would become the end of the text, and be dropped
            text = text[:place]
        if _PLAIN.fullmatch(text) and "./" not in text and ".?" not in text and text[-1] != ".":
            url = base.root + text[1:] if text[0] == "/" else base.folder + text
            if len(url) <= URL_MAX_BYTES:
                return self._at(self._canonical.fold(url))
        return self._find(text, base.folder)

    def _find(self, text: str, relative_to: str) -> Target:
        try:
            return self._at(self._canonical(text, relative_to))
        except NotCanonical as error:
            return Target("", 0, "", error.reason)

    def _at(self, url: str) -> Target:
        return self._judged(url) if len(url) <= URL_REMEMBERED_MAX_CHARACTERS else self._judge_url(url)

    def _judge_url(self, url: str) -> Target:
        return Target(url, self._keys.of(url), server_of(url), self._scope.judge(url))
