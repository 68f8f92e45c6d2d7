"""A synthetic crawl of links: pages of servers, whose links lead to neighbours, and to pages that many link to.

A page has a URL that sorts as its number does, so the graph that must come out is known: its edges are made here as
numbers. Half of the links stay on the server, as on the web most do; the others have targets whose in-links follow a
power law. Keys are the numbers, mixed, so that no two are the same.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.graph.cycles import CycleOfLinks, write_cycle
from contract.crawl_folder import CrawlFolder, create

LINKS_PER_PAGE = 20
PAGES_PER_SERVER = 200
LINKS_PER_CYCLE = 6_250_000
SKEW = 3.0  # a uniform number to this power: one page in a thousand gets a tenth of the links
MIXER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Synthetic:
    crawl: CrawlFolder
    pages: int
    cycles: int
    rows: int  # of links


def make_crawl(folder: Path, links: int, seed: int = 1) -> Synthetic:
    crawl = create(folder, 1, hash_seed=seed)
    pages = max(links // LINKS_PER_PAGE, 1)
    cycles = max(-(-links // LINKS_PER_CYCLE), 1)
    chance = np.random.default_rng(seed)
    order = chance.permutation(pages)  # which pages a cycle fetches
    parts = np.array_split(order, cycles)
    rows = sum(write_links(crawl, cycle, fetched, pages, chance) for cycle, fetched in enumerate(parts))
    return Synthetic(crawl, pages, cycles, rows)


def add_cycle(made: Synthetic, seed: int = 2) -> int:
    """One cycle more, of pages that were fetched before; returns the number of its links."""
    chance = np.random.default_rng(seed)
    fetched = chance.permutation(made.pages)[: -(-made.pages // made.cycles)]
    return write_links(made.crawl, made.cycles, fetched, made.pages, chance)


def write_links(crawl: CrawlFolder, cycle: int, fetched: np.ndarray, pages: int, chance: np.random.Generator) -> int:
    """A cycle that fetches these pages, with random links; returns their number."""
    sources, targets = make_links(fetched, pages, chance)
    found = np.unique(targets)
    found = found[np.argsort(keys_of(found))]
    fetched = fetched[np.argsort(keys_of(fetched))]
    tables = CycleOfLinks(
        {"url": urls_of(fetched), "url_key": keys_of(fetched)},
        {"url": urls_of(found), "url_key": keys_of(found)},
        sort_links(keys_of(sources), keys_of(targets)),
    )
    write_cycle(crawl, cycle, tables)
    return len(sources)


def keys_of(numbers: np.ndarray) -> np.ndarray:
    """A key for each number, no two the same."""
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * MIXER
    mixed ^= mixed >> np.uint64(29)
    return mixed * MIXER


def make_links(fetched: np.ndarray, pages: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Distinct links of these pages."""
    sources = np.repeat(fetched, LINKS_PER_PAGE)
    server = sources // PAGES_PER_SERVER * PAGES_PER_SERVER
    near = np.minimum(server + chance.integers(0, PAGES_PER_SERVER, len(sources)), pages - 1)
    far = (chance.random(len(sources)) ** SKEW * pages).astype(np.int64)
    targets = np.where(chance.random(len(sources)) < 0.5, near, far)
    pairs = np.unique(sources.astype(np.uint64) << np.uint64(32) | targets.astype(np.uint64))
    return (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)


def sort_links(from_key: np.ndarray, to_key: np.ndarray) -> dict[str, np.ndarray]:
    order = np.lexsort((to_key, from_key))
    return {"from_key": from_key[order], "to_key": to_key[order], "followed": np.ones(len(order), bool)}


def urls_of(numbers: np.ndarray) -> pa.Array:
    """https://www.s0000012.br/section/00003456.html, in the order of numbers."""
    server = pc.utf8_lpad(pa.array(numbers // PAGES_PER_SERVER).cast(pa.string()), 8, "0")
    page = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 10, "0")
    return pc.binary_join_element_wise("https://www.s", server, ".br/section/page-", page, ".html", "")
