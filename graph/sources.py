"""What a graph is made of: the tables of committed cycles, and the earlier graph where a build can extend it."""

from dataclasses import dataclass, field
from pathlib import Path

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.errors import BadInput, ColetorError
from graph.filters import Filters
from graph.folder import Graph, open_graph, version_folder, versions
from graph.tables import CycleTables, committed_cycles
from storage.errors import Damaged, UnknownFormat
from storage.publish import read_manifest

GRAPH_FORMAT = 2  # of the files of a graph: a build extends only a graph of this form


@dataclass
class Sources:
    """What a graph is made of."""

    tables: list[CycleTables]
    missing: dict[int, str] = field(default_factory=dict)  # cycles that are left out -> why

    @property
    def digests(self) -> dict[str, str]:
        """Of each cycle, of all that its tables hold."""
        return {str(one.cycle): one.digest for one in self.tables}


def find_sources(crawl: CrawlFolder, allow_partial: bool) -> Sources:
    sources = Sources([])
    for cycle in committed_cycles(crawl):
        try:
            sources.tables.append(CycleTables(crawl.path, cycle))
        except (Damaged, UnknownFormat, ColetorError, KeyError) as error:
            leave_out(sources, crawl, cycle, error, allow_partial)
    return sources


def verify_sources(crawl: CrawlFolder, sources: Sources, done: set[str], allow_partial: bool) -> None:
    """Checks the tables of all cycles but those that are `done`; leaves out what is damaged, or BadInput."""
    for one in list(sources.tables):
        try:
            for name in (names.COLLECTED, names.EXTRACTED, names.LINKS, names.METADATA):
                if str(one.cycle) not in done:
                    one.verify(name)
        except (Damaged, UnknownFormat) as error:
            sources.tables.remove(one)
            leave_out(sources, crawl, one.cycle, error, allow_partial)


def leave_out(sources: Sources, crawl: CrawlFolder, cycle: int, error: Exception, allow_partial: bool) -> None:
    if not allow_partial:
        raise BadInput(
            f"cycle {cycle}: {error}. Mend it (bin/status --crawl {crawl.path}), or build a graph without it "
            "with --allow-partial"
        ) from None
    sources.missing[cycle] = str(error)


def find_base(root: Path, crawl: CrawlFolder, filters: Filters, sources: Sources) -> Graph | None:
    """The newest graph, where its files are whole and it is of these options and of none but these cycles."""
    found = versions(root)
    if not found:
        return None
    try:
        manifest = read_manifest(version_folder(root, found[-1]))
        is_base = (
            manifest.get("graph_format") == GRAPH_FORMAT
            and manifest["crawl_id"] == crawl.crawl_id
            and manifest["filters"] == filters.describe()
            and manifest["cycles"].items() <= sources.digests.items()
        )
        return open_graph(root) if is_base else None
    except (Damaged, UnknownFormat, KeyError, AttributeError):
        return None
