"""Link sources: URLs that are crawled for their links and are no part of the collection, such as foreign directories.

A URL is a link source if a prefix of [scope] link_sources takes it, or if it is a seed and seeds_are_link_sources is
set. The present configuration decides. Scope accepts what the prefixes take; everything that rejects still holds.
Whoever counts or exports the collection asks this module what to leave out.
"""

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from contract.config import Scope as Settings
from contract.surt import SurtPrefixes

NAMED = 1  # value of the feature link_source: a prefix takes the URL
SERVERS_REMEMBERED = 1 << 17


class LinkSources:
    """Falsy where no URL can be a link source: callers then have nothing to do."""

    def __init__(self, config: Settings):
        self.takes_seeds = config.seeds_are_link_sources
        self._prefixes = SurtPrefixes(config.link_sources)
        self._is_any = self.takes_seeds or bool(self._prefixes)
        self._server = lru_cache(maxsize=SERVERS_REMEMBERED)(self._find_server)

    def __bool__(self) -> bool:
        return self._is_any

    def takes_server(self, server: str) -> bool:
        """Whether every URL of a server is a link source, as its text says."""
        return self._prefixes.takes_server(server)

    def paths_of(self, server: str) -> tuple[str, ...]:
        """The beginnings of the paths, with their queries, that are link sources on a server."""
        return self._prefixes.paths_of(server)

    def names(self, url: str) -> bool:
        """Whether a prefix takes a canonical URL."""
        server = url[: url.index("/", 8)]
        is_whole, paths = self._server(server)
        return is_whole or url.startswith(paths, len(server))

    def takes(self, url: str, depth: int) -> bool:
        """Whether a canonical URL that lies `depth` hops from a seed is a link source."""
        return (depth == 0 and self.takes_seeds) or self.names(url)

    def mark(self, urls: Iterable[str], depths: Iterable[int]) -> npt.NDArray[np.bool_]:
        """takes() of many URLs."""
        return np.fromiter((self.takes(url, depth) for url, depth in zip(urls, depths)), bool)

    def mark_rows(self, named: npt.NDArray[np.uint8], depths: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Which rows of a block are link sources, by their feature link_source and their depth."""
        is_named: npt.NDArray[np.bool_] = named == NAMED
        return is_named | (depths == 0) if self.takes_seeds else is_named

    def _find_server(self, server: str) -> tuple[bool, tuple[str, ...]]:
        return self.takes_server(server), self.paths_of(server)
