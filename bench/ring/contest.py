"""All tools on one web, in turn, several times; their speed, and whether they asked for the same URLs."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.processes import Spent
from bench.ring import peers
from bench.ring.busy import busy_share, idle_share
from bench.ring.figures import OURS, SEQUENTIAL, TUNED, Run, contest_figures, table_lines
from bench.ring.journal import read_journal, read_waiting
from bench.ring.ours import COLD, Ours
from bench.ring.ours import SEQUENTIAL as SEQUENTIAL_SETTINGS
from bench.ring.ours import TUNED as TUNED_SETTINGS
from bench.ring.web import Web, compare, count_by_folder
from contract.errors import ColetorError

SHOWN = 3  # folders in which URLs differ

WGET_LEAVES_OUT = "seen URLs in memory, files without headers"
SCRAPY_LEAVES_OUT = "bodies in one file, without headers"
SPIDER_LEAVES_OUT = "seen URLs in memory, several requests per host at once, bodies in one file"
CRAWLEE_LEAVES_OUT = "several requests per host at once, bodies in one file"
LEFT_OUT_BY_ALL = (
    "left out by every peer: syncs and resumption after kill -9, the link graph, WARC with request and response, "
    "outcomes of each URL, bounded memory"
)


class Tool(NamedTuple):
    title: str
    run: Callable[[Web], Spent]
    leaves_out: str = ""
    is_slow: bool = False  # runs once, in the first round


def make_tools(folder: Path, wanted: tuple[str, ...]) -> dict[str, Tool]:
    """Ours in three ways, and the peers that are wanted. What all peers leave out is printed once."""
    default = Ours(folder / OURS)
    tuned = Ours(folder / TUNED, TUNED_SETTINGS)
    sequential = Ours(folder / SEQUENTIAL, SEQUENTIAL_SETTINGS, COLD)
    known = {
        "wget": Tool("wget -r", partial(peers.run_wget, folder=folder / "wget", at_once=1), WGET_LEAVES_OUT),
        "wget_2": Tool("wget -r, twice", partial(peers.run_wget, folder=folder / "wget_2", at_once=2), WGET_LEAVES_OUT),
        "scrapy": Tool("Scrapy", partial(peers.run_scrapy, folder=folder / "scrapy"), SCRAPY_LEAVES_OUT, True),
        "spider": Tool("spider-rs", partial(peers.run_spider, folder=folder / "spider"), SPIDER_LEAVES_OUT, True),
        "crawlee": Tool("Crawlee", partial(peers.run_crawlee, folder=folder / "crawlee"), CRAWLEE_LEAVES_OUT, True),
    }
    return {
        OURS: Tool("ours, default settings", default.run),
        **{name: known[name] for name in wanted},
        TUNED: Tool(f"ours, {' '.join(TUNED_SETTINGS)}", tuned.run),
        SEQUENTIAL: Tool("ours, sequential", sequential.run, "cold starts, one cycle in flight", True),
    }


class Contest:
    """The runs on one web."""

    def __init__(self, part: str, web: Web, tools: dict[str, Tool], crawl: Path):
        self._part, self._web, self._tools, self._crawl = part, web, tools, crawl
        self.runs: dict[str, list[Run]] = {name: [] for name in tools}
        self.differences: dict[str, int] = dict.fromkeys(tools, 0)
        self.differing: dict[str, str] = {}  # tool -> why it gets no ratio
        self._busy: list[float] = []  # shares of time, one per run
        self._idle: list[float] = []
        self._ours: frozenset[str] = frozenset()

    def run(self, repeats: int) -> dict:
        for repeat in range(repeats):
            for name, tool in self._tools.items():
                if not (repeat and tool.is_slow) and name not in self.differing:
                    self._run_once(name, tool)
        return self._figures()

    def _run_once(self, name: str, tool: Tool) -> None:
        position = self._web.position()
        try:
            spent = tool.run(self._web)
        except ColetorError as error:
            if name == OURS:
                raise
            self.differing[name] = f"failed: {error}"
            return
        asked = self._web.asked_since(position)
        self.runs[name].append(Run(len(asked.urls), spent.wall_s, spent.cpu_s))
        print(f"    {self._part}: {tool.title}: {len(asked.urls)} URLs in {spent.wall_s:.1f} s", flush=True)
        if name == OURS:
            self._ours = self._ours or asked.urls
            attempts = read_journal(self._crawl)
            if (share := busy_share(attempts)) is not None:
                self._busy.append(share)
                self._idle.append(idle_share(attempts, read_waiting(self._crawl)))
        only_ours, only_theirs = compare(self._ours, asked.urls)
        self.differences[name] = max(self.differences[name], len(only_ours) + len(only_theirs))
        if only_ours or only_theirs:
            most = ", ".join(
                f"/{place} {count}" for place, count in count_by_folder(only_ours + only_theirs).most_common(SHOWN)
            )
            self.differing[name] = f"no ratio: {len(only_ours)} URLs missing, {len(only_theirs)} more ({most})"

    def _figures(self) -> dict:
        notes = {name: self.differing.get(name) or tool.leaves_out for name, tool in self._tools.items()}
        print(f"{self._part} names, {len(self._ours)} URLs each:")
        print(*table_lines({name: tool.title for name, tool in self._tools.items()}, self.runs, notes), sep="\n")
        print(f"  {LEFT_OUT_BY_ALL}", flush=True)
        figures = contest_figures(self._part, self.runs, self.differing)
        if self._busy:
            figures[f"{self._part}.fetcher_busy"] = round(median(self._busy), 3)
            figures[f"{self._part}.fetcher_idle"] = round(median(self._idle), 3)
        return figures | {
            f"{self._part}.urls": len(self._ours),
            f"{self._part}.same_urls": {name: name not in self.differing for name in self._tools},
            f"{self._part}.differences": self.differences,
            f"{self._part}.no_ratio": self.differing,
            f"{self._part}.runs": {name: [run._asdict() for run in runs] for name, runs in self.runs.items()},
        }
