"""The folder of a graph: numbered versions, of which the newest published one counts.

graph/00000002/     manifest.json, pages.*, servers.*, domains.*, unknown_targets.*
graph/ranks/    what bin/graph rank wrote
graph/sort/     what a build is sorting; no build needs what another one left there
"""

import fcntl
import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from contract import names
from contract.command import Parser
from contract.crawl_folder import expect_outside, open_folder
from contract.errors import BadInput, Locked, Usage
from contract.lines import say
from contract.stage import expect_ours
from graph.csr import Csr, open_csr
from graph.levels import DOMAIN, open_first_pages
from graph.text_store import TextStore
from storage.arrays import Array, open_array
from storage.errors import Damaged
from storage.publish import is_published, make_folder, read_manifest, unpublish, verify

SORT, RANKS, LOCK = "sort", "ranks", "lock"
FORWARD, BACKWARD = "links", "backlinks"
PAGES, SERVERS, DOMAINS = LEVELS = ("pages", "servers", "domains")


def version_folder(root: Path, version: int) -> Path:
    return root / f"{version:08d}"


def versions(root: Path) -> list[int]:
    """The published versions, rising."""
    return [version for version in names.numbered(root) if is_published(version_folder(root, version))]


def expect_no_file_of_a_crawl(target: Path) -> None:
    """Usage where a new file or folder would lie among the files of a crawl; those of its graph are none of them."""
    path = target.resolve()
    if (path / names.CRAWL_FILE).exists():
        raise Usage(f"{target} is a crawl folder: name a folder outside of it")
    in_graph = (one.name == names.GRAPH and (one.parent / names.CRAWL_FILE).exists() for one in (path, *path.parents))
    if not any(in_graph):
        expect_outside(target)


def expect_graph_folder(root: Path) -> None:
    """Usage unless the folder is new, empty or of graphs: a build deletes folders that have numbers for names."""
    expect_no_file_of_a_crawl(root)
    ours = {SORT, RANKS, LOCK}
    if (root / LOCK).exists():  # the first file of each folder of graphs
        ours.update(version_folder(root, version).name for version in names.numbered(root))
    expect_ours(root, ours)


@contextmanager
def holding(root: Path) -> Iterator[None]:
    """Keeps other builds out of the folder."""
    expect_graph_folder(root)
    make_folder(root)
    descriptor = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(f"{root}: another build works here; try again when it has ended") from None
        yield
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Level:
    """The graph of pages, servers or domains."""

    folder: Path
    name: str
    nodes: int
    edges: int

    @property
    def is_weighted(self) -> bool:
        return self.name != PAGES

    @cached_property
    def links(self) -> Csr:
        return open_csr(self.folder, f"{self.name}.{FORWARD}", self.nodes, self.edges, self.is_weighted)

    @cached_property
    def backlinks(self) -> Csr:
        return open_csr(self.folder, f"{self.name}.{BACKWARD}", self.nodes, self.edges, self.is_weighted)

    @cached_property
    def texts(self) -> TextStore:
        """URLs of pages; of servers the beginning that their URLs share; names of domains."""
        return TextStore(self.folder, self.name, self.nodes)


@dataclass(frozen=True)
class Graph:
    folder: Path
    manifest: dict[str, Any]
    lock: BinaryIO | None = field(default=None, repr=False)  # of who reads it; open as long as the graph is in use

    def level(self, name: str) -> Level:
        about = self.manifest["levels"][name]
        return Level(self.folder, name, about["nodes"], about["edges"])

    @property
    def pages(self) -> Level:
        return self.level(PAGES)

    @property
    def collected(self) -> Array:
        """Whether each page was answered; u1."""
        return open_array(self.folder / "pages.collected.npy", "u1")

    @property
    def first_pages(self) -> Array:
        """The first page of each server, and the number of pages."""
        return open_first_pages(self.folder)

    @property
    def domain_of_server(self) -> Array:
        return open_array(self.folder / f"servers.{DOMAIN}", self.level(DOMAINS).links.targets.dtype)

    @property
    def is_partial(self) -> bool:
        return bool(self.manifest["missing"])


def open_graph(root: Path, is_verified: bool = False) -> Graph:
    """The newest version. Its files are checked, unless `is_verified`."""
    found = versions(root)
    if not found:
        raise BadInput(f"{root}: expected a graph, found none: make it with bin/graph build")
    return open_version(version_folder(root, found[-1]), is_verified)


def open_version(folder: Path, is_verified: bool) -> Graph:
    manifest = read_manifest(folder)
    if not isinstance(manifest.get("levels"), dict):
        raise Damaged(folder / names.MANIFEST, "expected the levels of a graph, found none")
    if not is_verified:
        for name, about in manifest["files"].items():
            verify(folder / name, about)
    return Graph(folder, manifest)


def open_locked(root: Path, is_verified: bool) -> Graph:
    """As open_graph, of a version that builds keep as long as the Graph is in use."""
    while found := versions(root):
        folder = version_folder(root, found[-1])
        try:
            lock = open(folder / names.MANIFEST, "rb")
        except FileNotFoundError:  # a build has just replaced it
            continue
        if try_lock(lock, fcntl.LOCK_SH) and is_published(folder):
            return replace(open_version(folder, is_verified), lock=lock)
        lock.close()
    return open_graph(root)  # which says that there is none


def remove_version(folder: Path) -> None:
    """Deletes a version, unless a command reads it: then the next build does."""
    try:
        lock = open(folder / names.MANIFEST, "rb")
    except OSError:  # a build that was killed has left it without a manifest: nobody reads it
        unpublish(folder)
        return
    with lock:
        if try_lock(lock, fcntl.LOCK_EX):
            unpublish(folder)


def try_lock(file: BinaryIO, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def add_graph_option(parser: Parser) -> None:
    parser.add_argument(
        "--graph", type=Path, metavar="GRAPH", help="the folder of the graph (default: that of --crawl)"
    )
    parser.add_argument("--allow-partial", action="store_true", help="take a graph from which cycles were left out")


def choose_graph(arguments: Namespace, is_verified: bool = False) -> Graph:
    """The graph of --graph or --crawl; BadInput where it is partial and that is not allowed."""
    root = arguments.graph or arguments.crawl / names.GRAPH
    if not versions(root):
        if arguments.graph is None:
            open_folder(arguments.crawl)  # the error is about the crawl where there is none
        out = "" if arguments.graph is None else f" --out {root}"
        raise BadInput(
            f"{root}: expected a graph, found none: make it with bin/graph build --crawl {arguments.crawl}{out}"
        )
    graph = open_locked(root, is_verified)
    if graph.is_partial:
        left_out = f"PARTIAL: the graph was built without cycle {', '.join(graph.manifest['missing'])}"
        if not arguments.allow_partial:
            raise BadInput(f"{root}: {left_out}; use it as it is with --allow-partial")
        say(left_out, sys.stderr)
    return graph
