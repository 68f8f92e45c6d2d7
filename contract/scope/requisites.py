"""Requisites: what a page needs to be shown, such as images, styles and scripts, on other hosts too.

They are links of the kinds that [extractor] requisites names. The accept_ lists say which pages are wanted and do not
judge requisites; rules that reject, and traps, do. The answer for a requisite has requisites of its own, as a style has
fonts. Where a requisite redirects, the target of the redirect is a requisite too.
"""

from collections.abc import Iterable
from dataclasses import replace

from contract.config import LINK_KINDS, Config
from contract.config import Scope as Settings
from contract.scope.link_sources import LinkSources
from contract.scope.rules import HOPS_UNLIMITED, Scope
from contract.url import Keys, extension_of

HOPS_MORE = 5  # of a requisite, beyond hops_max: a redirect, a style, the style that it imports, a redirect, a font
OF_NO_PAGE = frozenset(Settings().reject_extensions)


def bits_of(kinds: Iterable[str]) -> int:
    """Names of kinds of links as bits of Ligacoes.kinds."""
    return sum(1 << LINK_KINDS.index(kind) for kind in set(kinds))


_REDIRECT = bits_of(["redirect"])


class Requisites:
    """`pages` is the scope that judges all other links."""

    def __init__(self, config: Config, pages: Scope, keys: Keys, year: int):
        self._kinds = bits_of(config.extractor.requisites)
        self._pages = pages
        self._link_sources = LinkSources(config.scope)
        self._scope = Scope(widen(config.scope), keys, year)

    def kinds_from(self, url: str, depth: int) -> int:
        """The kinds, as bits, of links to requisites from the answer for `url`, which is `depth` hops from a seed.

        A URL was fetched as a requisite where it is no seed and either out of scope or, by its extension, no page. A
        link source has no requisites: it is crawled for its links, and nobody is to be shown it.
        """
        if self._kinds and self._link_sources and self._link_sources.takes(url, depth):
            return 0
        is_requisite = self._kinds and depth > 0 and (extension_of(url) in OF_NO_PAGE or self._pages.judge(url))
        return self._kinds | _REDIRECT if is_requisite else self._kinds

    def judge(self, url: str, page_url: str, depth: int) -> str:
        """The rule that a URL breaks as a requisite of a page, or nothing."""
        return self._scope.judge_link(url, page_url, depth)


def widen(config: Settings) -> Settings:
    """The scope of requisites: all hosts, and some hops beyond the last page."""
    return replace(
        config,
        accept_suffixes=(),
        accept_domains=(),
        accept_surts=(),
        accept_patterns=(),
        hops_max=min(config.hops_max + HOPS_MORE, HOPS_UNLIMITED),
    )
