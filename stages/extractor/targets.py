"""Where the texts of links lead: canonical URLs with their keys and the verdict of the scope, each found once.

Links repeat over the pages of a site, so results are remembered: by URL, and by the folder of the page and the text of
the link. The few texts that are relative to more than the folder are not remembered. Most links are plain paths, which
are joined without a parser.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from contract.canonical import Canonical
from contract.scope.rules import Scope
from contract.url import PLAIN, URL_MAX_BYTES, Keys, NotCanonical, canonicalise, server_of
from stages.extractor.charset import UTF_8, to_page_query
from stages.extractor.document import without_fragment

URLS_REMEMBERED = 1 << 16
TEXTS_REMEMBERED = 1 << 16  # of all folders together, the folders counted too
# Images in data: URLs would fill the memory, and so would long bases. What a worker remembers must not decide whether a
# page fits into its memory.
TEXT_REMEMBERED_MAX_CHARACTERS = 500
URL_REMEMBERED_MAX_CHARACTERS = 500
_UP = "../"
_PLAIN = re.compile(rf"(?P<up>(?:\.\./)*)(?P<rest>/?[A-Za-z0-9_~-]{PLAIN})")


@dataclass(slots=True)
class Target:
    """Where a text leads: a URL and the rule of the scope that it breaks, or no URL and the reason."""

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


class Near(dict[str, Target]):
    """Where texts without fragments lead from a page: what is remembered of its folder, and else Targets.find()."""

    __slots__ = ("_targets", "_base", "_charset")

    def set_page(self, targets: "Targets", base: Base, charset: str) -> None:
        self._targets, self._base, self._charset = targets, base, charset
        self[""] = targets.find("", base, charset)

    def __missing__(self, text: str) -> Target:
        return self._targets.find(text, self._base, self._charset)


class Targets:
    def __init__(self, canonical: Canonical, scope: Scope, keys: Keys):
        self._canonical = canonical
        self._scope = scope
        self._keys = keys
        self._judged = lru_cache(maxsize=URLS_REMEMBERED)(self._judge_url)
        self._near: dict[str, Near] = {}  # by folder
        self._remembered = 0

    def base_of(self, url: str, text: str | None) -> Base:
        """What a page's links are relative to: its <base href>, itself relative to the page, or the page."""
        try:
            return base_at(canonicalise(text, url) if text is not None else url)
        except NotCanonical:
            return base_at(url)

    def near(self, base: Base, charset: str = UTF_8) -> Near:
        """Where texts lead from a page of this base and encoding; valid until the next call for the same folder."""
        if self._remembered > TEXTS_REMEMBERED:
            self._near, self._remembered = {}, 0
        if base.folder not in self._near:
            self._near[base.folder] = Near()
            self._remembered += 1  # folders count too
        near = self._near[base.folder]
        near.set_page(self, base, charset)
        return near

    def find(self, text: str, base: Base, charset: str) -> Target:
        """Where the text of a link leads, in a page of this base and encoding."""
        text = without_fragment(text) if "#" in text else text
        plain = _PLAIN.fullmatch(text) if len(text) <= TEXT_REMEMBERED_MAX_CHARACTERS else None
        if plain is None:
            if not text:
                return self._at(self._canonical.fold(base.url))
            if not text.isascii():
                return self._find(to_page_query(text, charset), base.url)
            if len(text) > TEXT_REMEMBERED_MAX_CHARACTERS or text[0] <= " " or text[0] == "?":
                return self._find(text, base.url)  # only a query is relative to more than the folder
            if ":" in text and not text.startswith(("http://", "https://")):
                return self._find(text, base.url)  # as 'http:?q' is, too
        near = self._near.get(base.folder)
        if near is None:
            near = self._near[base.folder] = Near()
        target = near.get(text)
        if target is None:
            target = self._near_find(plain, base.folder, base.root) if plain else self._find(text, base.folder)
            self._remember(near, text, target)
        return target

    def _near_find(self, plain: re.Match, folder: str, root: str) -> Target:
        """Where a plain text leads from everywhere in a folder."""
        up, rest, near, above = plain.end("up") // len(_UP), plain["rest"], None, folder
        if "./" in rest or ".?" in rest or rest[-1] == "." or up and rest[0] == "/":
            return self._find(plain[0], folder)
        if up:
            above = folder.rsplit("/", up + 1)[0] + "/" if up < folder.count("/") - root.count("/") else root
            near = self._near.get(above)
            if near is not None and (target := near.get(rest)) is not None:
                return target  # found before, from the folder above
        url = above + rest if rest[0] != "/" else root + rest[1:]
        if len(url) > URL_MAX_BYTES:
            return self._find(plain[0], folder)
        target = self._at(self._canonical.fold(url))
        if near is not None:
            self._remember(near, rest, target)
        return target

    def _remember(self, near: Near, text: str, target: Target) -> None:
        if len(target.url) <= URL_REMEMBERED_MAX_CHARACTERS:
            near[text] = target
            self._remembered += 1

    def _find(self, text: str, relative_to: str) -> Target:
        try:
            return self._at(self._canonical(text, relative_to))
        except NotCanonical as error:
            return Target("", 0, "", error.reason)

    def _at(self, url: str) -> Target:
        return self._judged(url) if len(url) <= URL_REMEMBERED_MAX_CHARACTERS else self._judge_url(url)

    def domain_of(self, server: str) -> str:
        """The registered domain of a server."""
        return self._keys.server(server).domain

    def _judge_url(self, url: str) -> Target:
        server = intern(server_of(url))  # interned because it is compared with the server of each page
        return Target(url, self._keys.of(url), server, self._scope.judge(url))
