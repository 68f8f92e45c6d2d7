"""The SQL function is_link_source(url, domain_key, url_key): what the column link_source of views is made of.

The present configuration of the crawl decides, so it is a function of the URL, not a column of a table. A seed is known
by its keys: the live generations say which URLs have depth 0. They are read only where seeds are link sources.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract.generation import open_generation
from contract.scope.link_sources import LinkSources
from examine.link_sources import NO_SEED, SEED
from storage.arrays import Array
from storage.pairs import find_pairs, sort_pairs
from storage.tables import column

NAME = "is_link_source"
NO_SOURCES = f"CREATE MACRO {NAME}(url, domain_key, url_key) AS false"  # costs nothing


class IsLinkSource:
    """`generations`: the live generation of each block."""

    def __init__(self, crawl: Path, generations: Mapping[int, int], link_sources: LinkSources):
        self._link_sources = link_sources
        self._seeds = read_seeds(crawl, generations) if link_sources.takes_seeds else None

    def __call__(self, urls: pa.Array, domain_keys: pa.Array, url_keys: pa.Array) -> pa.Array:
        depths = np.full(len(urls), NO_SEED)
        if self._seeds is not None:
            keys = (np.asarray(part, np.uint64) for part in (domain_keys, url_keys))
            depths[find_pairs(*keys, *self._seeds) >= 0] = SEED
        return pa.array(self._link_sources.mark(urls.to_pylist(), depths.tolist()))


def read_seeds(crawl: Path, generations: Mapping[int, int]) -> tuple[Array, Array]:
    """Domain key and URL key (u64, sorted by both) of all URLs at depth 0."""
    parts = [(np.empty(0, np.uint64), np.empty(0, np.uint64))]
    for block, number in generations.items():
        generation = open_generation(crawl, block, number)
        rows = np.flatnonzero(generation.rows["depth"] == SEED)
        owner = column(generation.servers, "domain_key")[generation.server_index[rows]]
        parts.append((owner, np.asarray(generation.rows["key"])[rows]))
    _, domain, key = sort_pairs(*map(np.concatenate, zip(*parts)))
    return domain, key
