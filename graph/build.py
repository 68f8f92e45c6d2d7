"""Builds the graph of a crawl in steps that each read their input once, within a bound of memory."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.errors import BadInput, ColetorError
from contract.tables import LINKS
from graph.csr import NODES_MAX, Csr, CsrWriter, cut_pairs, open_csr
from graph.filters import Filters, Visits, read_visits
from graph.folder import BACKWARD, DOMAINS, FORWARD, PAGES, RUNS, SERVERS, SORT, holding, version_folder, versions
from graph.levels import DOMAIN, ServerOf, ServerWriter, fold, open_first_pages
from graph.links import KEY_BITS, LinkReader, distinct_edges, sort_edges, summed_edges, swap
from graph.page_keys import PageKeys
from graph.tables import CycleTables, committed_cycles
from graph.text_store import TextStoreWriter
from graph.url_runs import ANSWERED, URL_BYTES, ensure_run, merge_runs
from storage.ahead import ahead
from storage.arrays import open_array
from storage.columns import PlainWriter
from storage.errors import Damaged, UnknownFormat
from storage.external_sort import ExternalSort
from storage.publish import make_folder, publishing, read_manifest, remove_tree, unpublish

MIB = 1 << 20
BASE_BYTES = 260 * MIB  # of the interpreter and its libraries, and of what these keep for later
LINK_BYTES = 112  # memory that a link takes while it is sorted and merged, with the piece that is read ahead
SHARED_SHOWN = 10  # examples of shared keys in the manifest

Report = Callable[..., None]  # takes the step, what is done of it, and the whole


@dataclass
class Sources:
    """What a graph is made of."""

    tables: list[CycleTables]
    missing: dict[int, str] = field(default_factory=dict)  # cycles that are left out -> why

    def digest(self, filters: Filters) -> str:
        """Of all that the graph follows from."""
        files = [[one.cycle, sorted((name, about["xxh3"]) for name, about in one.files.items())] for one in self.tables]
        return xxhash.xxh3_128_hexdigest(json.dumps([files, filters.describe()], sort_keys=True).encode())


@dataclass(frozen=True)
class Bounds:
    urls: int
    links: int


def bounds_of(memory_mib: int) -> Bounds:
    work = max(memory_mib * MIB - BASE_BYTES, 32 * MIB)
    return Bounds(work // URL_BYTES, work // LINK_BYTES)


def find_sources(crawl: CrawlFolder, allow_partial: bool) -> Sources:
    sources = Sources([])
    for cycle in committed_cycles(crawl):
        try:
            tables = CycleTables(crawl.path, cycle)
            for name in (names.COLLECTED, names.EXTRACTED, names.LINKS, names.METADATA):
                tables.verify(name)
            sources.tables.append(tables)
        except (Damaged, UnknownFormat, ColetorError, KeyError) as error:
            if not allow_partial:
                raise BadInput(
                    f"cycle {cycle}: {error}. Mend it (bin/status --crawl {crawl.path}), or build a graph without it "
                    "with --allow-partial"
                ) from None
            sources.missing[cycle] = str(error)
    return sources


def build(
    crawl: CrawlFolder, root: Path, filters: Filters, memory_mib: int, allow_partial: bool, report: Report
) -> tuple[Path, bool]:
    """The folder of the graph, and whether it was made now: one of the same tables and options is kept."""
    with holding(root):
        sources = find_sources(crawl, allow_partial)
        digest, found = sources.digest(filters), versions(root)
        is_new = not found or not is_current(version_folder(root, found[-1]), digest)
        if is_new:
            folder = version_folder(root, found[-1] + 1 if found else 0)
            remove_scratch(root)
            (root / SORT).mkdir()
            with publishing(folder) as manifest:
                work = Work(crawl, root, folder, filters, bounds_of(memory_mib), report)
                manifest |= {
                    "made_of": digest,
                    "crawl_id": crawl.crawl_id,
                    "cycles": len(sources.tables),
                    "missing": {str(cycle): why for cycle, why in sources.missing.items()},
                    "filters": filters.describe(),
                    **work.run(sources),
                }
                report("syncing")
        remove_scratch(root)
        newest = versions(root)[-1]
        for version in names.numbered(root):
            if version != newest:  # a build that was killed may have left an unpublished one
                unpublish(version_folder(root, version))
        return version_folder(root, newest), is_new


def remove_scratch(root: Path) -> None:
    if (root / SORT).exists():
        remove_tree(root / SORT)


def is_current(folder: Path, digest: str) -> bool:
    try:
        return read_manifest(folder).get("made_of") == digest
    except (Damaged, UnknownFormat):
        return False


class Work:
    def __init__(self, crawl: CrawlFolder, root: Path, folder: Path, filters: Filters, bounds: Bounds, report: Report):
        self._crawl, self._root, self._folder, self._scratch = crawl, root, folder, root / SORT
        self._filters, self._bounds, self._report = filters, bounds, report
        self._keys = PageKeys(root / SORT)
        self._shared: list[list[str | int]] = []
        self._shared_count = 0

    def run(self, sources: Sources) -> dict[str, object]:
        """Writes all files; returns what the manifest says about them."""
        pages, servers, domains = self._number_pages(sources.tables)
        links = sum(tables.count(names.LINKS, LINKS) for tables in sources.tables)
        counts, edges = self._join_links(sources.tables, pages, links)
        forward = self._write_edges(PAGES, edges, pages, counts)
        levels = {PAGES: {"nodes": pages, "edges": forward.edges}}
        in_servers = self._fold(forward, SERVERS, self._server_of(), servers)
        domain = open_array(self._folder / f"servers.{DOMAIN}", "<i4")
        in_domains = self._fold(in_servers, DOMAINS, lambda servers: domain[servers], domains)
        levels[SERVERS] = {"nodes": servers, "edges": in_servers.edges}
        levels[DOMAINS] = {"nodes": domains, "edges": in_domains.edges}
        return {"levels": levels, "counts": dict(counts), "keys_shared": self._shared_count, "shared": self._shared}

    def _number_pages(self, tables: list[CycleTables]) -> tuple[int, int, int]:
        runs: list[Path] = []
        make_folder(self._root / RUNS)
        for done, one in enumerate(tables):
            self._report("cycles sorted", done, len(tables))
            runs += ensure_run(self._root / RUNS, one, self._bounds.urls)
        expected = len(tables) and self._bounds.links  # keys are few beside links: a guess of one file or more will do
        keys = ExternalSort(self._scratch / "keys", KEY_BITS, expected, self._bounds.links, has_payload=True)
        texts = TextStoreWriter(self._folder, PAGES)
        servers = ServerWriter(self._folder, self._crawl.keys())
        collected = PlainWriter(self._folder / "pages.collected.npy", "u1")
        pages = 0
        for urls in ahead(merge_runs(runs, self._scratch, self._bounds.urls)):
            kept = self._filters.are_pages(urls.flags)
            url, key, flags = urls.url, urls.key, urls.flags
            if kept is not None:
                url, key, flags = url.filter(pa.array(kept)), key[kept], flags[kept]
            if pages + len(key) > NODES_MAX:
                raise BadInput(f"{self._crawl.path}: expected at most {NODES_MAX:,} pages, found more")
            texts.append(url)
            servers.append(url, pages)
            collected.append(flags & ANSWERED)
            keys.add(key, np.arange(pages, pages + len(key), dtype=np.uint32))
            pages += len(key)
            self._report("URLs merged", pages)
        texts.close()
        servers.close(pages)
        collected.close()
        for key, first, second in self._keys.write(keys):
            self._shared_count += 1
            if len(self._shared) < SHARED_SHOWN:
                self._shared.append([str(key), first, second])
        return pages, servers.servers, servers.domains

    def _join_links(self, tables: list[CycleTables], pages: int, links: int) -> tuple[Counter[str], ExternalSort]:
        reader = LinkReader(self._scratch, self._keys, pages, self._filters, links, self._bounds.links)
        done = 0
        visits = self._newest_visits(tables, pages) if self._filters.newest else self._visits(tables)
        for one, kept in zip(tables, visits):
            for rows in reader.add_cycle(one, kept):
                done += rows
                self._report("links read", done, links)
        edges, done = sort_edges(self._scratch, "edges", pages, links, self._bounds.links), 0
        for rows in reader.add_edges(edges):
            done += rows
            self._report("targets found", done, links)
        return reader.counts, edges

    def _visits(self, tables: list[CycleTables]) -> Iterator[Visits | None]:
        """For each cycle the visits whose links count; None: all."""
        for one in tables:
            yield read_visits(one, names.METADATA, self._filters.until_ms) if self._filters.needs_visits else None

    def _newest_visits(self, tables: list[CycleTables], pages: int) -> Iterator[Visits]:
        """For each cycle those visits after which there is none of the same page."""
        newest = np.memmap(self._scratch / "newest", "<i8", "w+", shape=max(pages, 1))
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

    def _write_edges(self, level: str, edges: ExternalSort, pages: int, counts: Counter[str]) -> Csr:
        """Writes the edges of pages, both ways."""
        total = len(edges)
        writer = CsrWriter(self._folder, f"{level}.{FORWARD}", pages)
        swapped = sort_edges(self._scratch, "swapped", pages, total, self._bounds.links)
        for pairs in distinct_edges(edges):
            writer.append(*cut_pairs(pairs, pages))
            swapped.add(swap(pairs, pages))
            self._report("edges written", writer.edges, total)
        writer.close()
        counts["repeated"] = total - writer.edges
        back = CsrWriter(self._folder, f"{level}.{BACKWARD}", pages)
        for pairs in distinct_edges(swapped):
            back.append(*cut_pairs(pairs, pages))
            self._report("edges transposed", back.edges, writer.edges)
        back.close()
        return open_csr(self._folder, f"{level}.{FORWARD}", pages, writer.edges)

    def _server_of(self) -> ServerOf:
        return ServerOf(open_first_pages(self._folder), self._bounds.links * 4)

    def _fold(self, edges: Csr, level: str, node_of: Callable, nodes: int) -> Csr:
        """Writes the edges of a coarser level, both ways, with weights."""
        sorts = [
            sort_edges(self._scratch, f"{level}.{name}", nodes, edges.edges, self._bounds.links, is_weighted=True)
            for name in (FORWARD, BACKWARD)
        ]
        done = 0
        for rows in fold(edges, *sorts, node_of, nodes, self._bounds.links):
            done += rows
            self._report(f"{level} joined", done, edges.edges)
        for name, pairs in zip((FORWARD, BACKWARD), sorts):
            writer = CsrWriter(self._folder, f"{level}.{name}", nodes, has_weights=True)
            for distinct, weights in summed_edges(pairs):
                writer.append(*cut_pairs(distinct, nodes), np.minimum(weights, np.iinfo(np.uint32).max))
            writer.close()
        return open_csr(self._folder, f"{level}.{FORWARD}", nodes, writer.edges, has_weights=True)
