"""Builds the graph of a crawl in steps that each read their input once, within a bound of memory.

A build extends the earlier graph where it can: only what cycles since then have found is read and sorted, and
merged with what is there (graph/base.py). The result is the same as that of a build of the whole, byte for byte.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.surt import SurtPrefixes
from contract.tables import LINKS
from graph.base import Base, SharedWithBase
from graph.csr import CsrWriter, cut_pairs, join_pairs, number_type
from graph.edges import merge_edges, merge_weighted, sort_edges
from graph.filters import Filters, Visits, read_visits
from graph.folder import (
    BACKWARD,
    DOMAINS,
    FORWARD,
    LEVELS,
    PAGES,
    SERVERS,
    SORT,
    Graph,
    holding,
    remove_version,
    version_folder,
    versions,
)
from graph.levels import DOMAIN, Folded, ServerOf, open_first_pages
from graph.links import LinkReader
from graph.new_urls import NewUrls
from graph.numbering import PageWriter
from graph.page_keys import KEY_BITS, PageKeys, Shared
from graph.sorted_urls import URL_BYTES
from graph.sources import GRAPH_FORMAT, Sources, find_base, find_sources, verify_sources
from graph.tables import CycleTables
from storage.ahead import Behind
from storage.arrays import make_mapped, open_array
from storage.external_sort import ExternalSort
from storage.publish import publishing, remove_tree

MIB = 1 << 20
BASE_BYTES = 260 * MIB  # of the interpreter and its libraries, and of what these keep for later
LINK_BYTES = 112  # memory that a link takes while it is sorted and merged, with the piece that is read ahead
SHARED_SHOWN = 10  # examples of shared keys in the manifest
LEFT_OUT = ("filtered", "no_page", "no_target", "link_sources")  # counts of links that are no edges

Report = Callable[..., None]  # takes the step, what is done of it, and the whole


@dataclass(frozen=True)
class Bounds:
    urls: int
    links: int


def bounds_of(memory_mib: int) -> Bounds:
    work = max(memory_mib * MIB - BASE_BYTES, 32 * MIB)
    return Bounds(work // URL_BYTES, work // LINK_BYTES)


def build(
    crawl: CrawlFolder, root: Path, filters: Filters, memory_mib: int, allow_partial: bool, report: Report
) -> tuple[Path, bool]:
    """The folder of the graph, and whether it was made now: one of the same tables and options is kept."""
    with holding(root):
        sources = find_sources(crawl, allow_partial)
        before = find_base(root, crawl, filters, sources)
        if before is None or before.manifest["cycles"] != sources.digests:
            verify_sources(crawl, sources, set(before.manifest["cycles"]) if before else set(), allow_partial)
        is_new = before is None or any(before.manifest[name] != value for name, value in made_of(sources).items())
        if is_new:
            found = versions(root)
            folder = version_folder(root, found[-1] + 1 if found else 0)
            try:
                write_graph(crawl, root, folder, filters, memory_mib, sources, before, report)
            except SharedWithBase:
                verify_sources(crawl, sources, set(), allow_partial)
                write_graph(crawl, root, folder, filters, memory_mib, sources, None, report)
        remove_scratch(root)
        newest = versions(root)[-1]
        for version in names.numbered(root):
            if version != newest:
                remove_version(version_folder(root, version))
        return version_folder(root, newest), is_new


def made_of(sources: Sources) -> dict[str, Any]:
    return {"cycles": sources.digests, "missing": {str(cycle): why for cycle, why in sources.missing.items()}}


def write_graph(
    crawl: CrawlFolder,
    root: Path,
    folder: Path,
    filters: Filters,
    memory_mib: int,
    sources: Sources,
    before: Graph | None,
    report: Report,
) -> None:
    remove_scratch(root)
    (root / SORT).mkdir()
    if before and not (filters.can_grow and before.pages.nodes and not before.manifest["keys_shared"]):
        before = None
    with publishing(folder) as manifest:
        work = Work(crawl, root, folder, filters, bounds_of(memory_mib), before, report)
        about = made_of(sources)
        manifest |= {
            "graph_format": GRAPH_FORMAT,
            "made_of": xxhash.xxh3_128_hexdigest(json.dumps([about["cycles"], filters.describe()]).encode()),
            "crawl_id": crawl.crawl_id,
            **about,
            "filters": filters.describe(),
            **work.run(sources.tables, set(before.manifest["cycles"]) if before else set()),
        }
        report("syncing")


def remove_scratch(root: Path) -> None:
    if (root / SORT).exists():
        remove_tree(root / SORT)


class Work:
    def __init__(
        self,
        crawl: CrawlFolder,
        root: Path,
        folder: Path,
        filters: Filters,
        bounds: Bounds,
        before: Graph | None,
        report: Report,
    ):
        self._crawl, self._folder, self._scratch = crawl, folder, root / SORT
        self._filters, self._bounds, self._report = filters, bounds, report
        self._keys = PageKeys(folder)
        self._base = Base(before, self._scratch, bounds.links // 4)

    def run(self, tables: list[CycleTables], done: set[str]) -> dict[str, object]:
        """Writes all files from the cycles that are not yet done; returns what the manifest says about them."""
        tables = [one for one in tables if str(one.cycle) not in done]
        nodes, shared = self._number_pages(tables)
        pages, links = nodes[PAGES], sum(one.count(names.LINKS, LINKS) for one in tables)
        edges, counts = self._join_links(tables, pages, links)
        node_of_page = ServerOf(open_first_pages(self._folder), self._bounds.links * 4)
        domain = open_array(self._folder / f"servers.{DOMAIN}", number_type(nodes[DOMAINS]))
        of_servers = Folded(self._scratch, SERVERS, node_of_page, nodes[SERVERS], links, self._bounds.links)
        of_domains = Folded(
            self._scratch, DOMAINS, lambda servers: domain[servers], nodes[DOMAINS], links, self._bounds.links
        )
        found = {PAGES: self._write_pages(edges, pages, of_servers)}
        found[SERVERS] = self._write_coarse(SERVERS, of_servers, nodes[SERVERS], of_domains)
        found[DOMAINS] = self._write_coarse(DOMAINS, of_domains, nodes[DOMAINS])
        counts["repeated"] = counts["rows"] - found[PAGES] - sum(counts[name] for name in LEFT_OUT)
        return {
            "levels": {level: {"nodes": nodes[level], "edges": found[level]} for level in LEVELS},
            "counts": dict(sorted(counts.items())),
            "keys_shared": len(shared),
            "shared": [[str(key), first, second] for key, first, second in shared[:SHARED_SHOWN]],
        }

    def _number_pages(self, tables: list[CycleTables]) -> tuple[dict[str, int], list[Shared]]:
        """The number of nodes of each level, and the keys that two URLs share."""
        urls = NewUrls(
            self._scratch, tables, self._filters, self._base, self._bounds.urls, self._bounds.links, self._report
        )
        key_sort = ExternalSort(self._scratch / "keys", KEY_BITS, urls.rows, self._bounds.links, has_payload=True)
        sources = SurtPrefixes(self._filters.link_sources)
        writer = PageWriter(self._folder, self._crawl.keys(), self._base, sources, key_sort)
        for pages in writer.write(urls.find()):
            self._report("pages numbered", pages)
        for keys in urls.seeds:
            writer.add_sources(keys)
        nodes = {PAGES: writer.pages, SERVERS: writer.servers, DOMAINS: writer.domains}
        domain = open_array(self._folder / f"servers.{DOMAIN}", number_type(writer.domains))
        self._base.open_moved(open_first_pages(self._folder), domain)
        return nodes, list(self._keys.write(key_sort, self._base.keys()))

    def _join_links(self, tables: list[CycleTables], pages: int, links: int) -> tuple[ExternalSort, Counter[str]]:
        """All new edges, and the counts of links, old ones included."""
        reader = LinkReader(self._scratch, self._keys, pages, self._filters, links, self._bounds.links)
        reader.counts.update(self._base.counts_that_stay)
        done, whole = 0, links + self._base.unknown_count
        for rows in reader.add_base(self._base):
            done += rows
            self._report("links read", done, whole)
        visits = self._newest_visits(tables, pages) if self._filters.newest else self._visits(tables)
        for one, kept in zip(tables, visits):
            for rows in reader.add_cycle(one, kept):
                done += rows
                self._report("links read", done, whole)
        edges, done = sort_edges(self._scratch, "edges", pages, whole, self._bounds.links), 0
        for rows in reader.add_edges(edges, self._folder):
            done += rows
            self._report("targets found", done, whole)
        return edges, reader.counts

    def _visits(self, tables: list[CycleTables]) -> Iterator[Visits | None]:
        """For each cycle the visits whose links count; None: all."""
        for one in tables:
            yield read_visits(one, names.METADATA, self._filters.until_ms) if self._filters.needs_visits else None

    def _newest_visits(self, tables: list[CycleTables], pages: int) -> Iterator[Visits]:
        """For each cycle those visits after which there is none of the same page."""
        newest = make_mapped(self._scratch / "newest", "<i8", pages)
        for is_second in (False, True):
            for visits in self._visits(tables):
                number = self._keys.find(visits.key)
                there = number >= 0
                number, at_ms, key = number[there], visits.at_ms[there], visits.key[there]
                if is_second:
                    kept = newest[number] == at_ms
                    yield Visits(key[kept], at_ms[kept])
                else:
                    newest[number] = np.maximum(newest[number], at_ms)

    def _write_pages(self, edges: ExternalSort, pages: int, coarse: Folded) -> int:
        """Writes the edges of pages, both ways, and folds the new ones; returns how many there are."""
        writer = CsrWriter(self._folder, f"{PAGES}.{FORWARD}", pages)
        swapped = sort_edges(self._scratch, "swapped", pages, len(edges), self._bounds.links)
        with Behind() as behind:
            for pairs, fresh in merge_edges(self._base.edges(PAGES, FORWARD, pages), edges):
                sources, targets = cut_pairs(fresh, pages)
                behind(coarse.add, sources, targets, None)
                writer.append(*cut_pairs(pairs, pages))
                swapped.add(join_pairs(targets, sources, pages))
                self._report("edges written", writer.edges)
        writer.close()
        back = CsrWriter(self._folder, f"{PAGES}.{BACKWARD}", pages)
        for pairs, _ in merge_edges(self._base.edges(PAGES, BACKWARD, pages), swapped):
            back.append(*cut_pairs(pairs, pages))
            self._report("edges transposed", back.edges, writer.edges)
        back.close()
        return writer.edges

    def _write_coarse(self, level: str, folded: Folded, nodes: int, coarser: Folded | None = None) -> int:
        """Writes the edges of servers or domains, both ways, and folds the new ones; returns how many there are."""
        for way, edges in ((FORWARD, folded.forward), (BACKWARD, folded.backward)):
            writer = CsrWriter(self._folder, f"{level}.{way}", nodes, has_weights=True)
            for (pairs, weights), fresh in merge_weighted(self._base.edges(level, way, nodes), edges):
                writer.append(*cut_pairs(pairs, nodes), weights)
                if coarser and way == FORWARD and fresh:
                    coarser.add(*cut_pairs(fresh[0], nodes), fresh[1])
                self._report(f"edges of {level}", writer.edges)
            writer.close()
        return writer.edges
