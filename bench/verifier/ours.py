"""The verifier as it is measured: a real crawl folder, real plans, and bin/verifier from its start to its commit."""

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path

from bench.extractor.ours import children_of, resident_mb
from bench.processes import Child, run_child
from bench.verifier.inputs import write_inputs
from bench.verifier.stream import Stream, Urls
from contract import names
from contract.blocks import block_to_split
from contract.config import Config
from contract.crawl_folder import create
from contract.log import CRAWL, GROW, KINDS
from contract.plan import Plan, read_plan, write_plan
from storage.publish import unpublish
from supervise.crawl_state import CrawlState
from supervise.deletion import delete_superseded
from supervise.turns import must_grow

VERIFIER = Path(__file__).resolve().parents[2] / "bin" / "verifier"
BEGAN_AT_MS = 1_700_000_000_000
CYCLE_MS = 300_000  # between two plans, as if the other stages took five minutes
LOOK_EVERY_S = 0.01
LIMIT_S = 3_600.0


@dataclass
class Turned:
    """What one cycle took."""

    cycle: int
    block: int
    total_s: float  # the process, wall
    cpu_s: float
    step_s: float | None  # from the batch in memory until it is durable, by --times; none where there is no --times
    rss_mb: float  # the largest seen, of all its processes, without mapped files
    rss_with_files_mb: float
    parts_s: dict[str, float] = field(default_factory=dict)


class Ours:
    """One crawl folder and its turns. The caller makes the cycles' URLs and gives them in."""

    def __init__(self, folder: Path, config: Config, can_grow: bool = True):
        self.folder = folder
        self.config = config
        self.can_grow = can_grow
        self.crawl = create(folder / "crawl", config.blocks.first, hash_seed=1)
        self.crawl_state = CrawlState(self.crawl)
        self.grow_s = 0.0  # of all splits so far
        self.splits = 0
        self._times_file = folder / "times.json"
        self._has_times = has_times_option(folder)

    @property
    def blocks(self) -> int:
        return self.crawl_state.log.blocks

    def known(self) -> int:
        return sum(self.crawl_state.figures(block).get("known", 0) for block in range(self.blocks))

    def largest_block(self) -> tuple[int, int]:
        """URLs and servers of the blocks that have the most."""
        figures = [self.crawl_state.figures(block) for block in range(self.blocks)]
        return max(one.get("known", 0) for one in figures), max(one.get("servers", 0) for one in figures)

    def begin(self) -> Plan:
        """The plan of the next cycle, after a split where one is due; an open plan is resumed."""
        self.crawl_state.refresh()
        for cycle in self.crawl_state.open_cycles():
            plan = read_plan(self.crawl.path, cycle)
            if KINDS[plan.kind].fetches:
                return plan
            self._split(plan)
        if self.can_grow and must_grow(self.crawl_state.views(), self.config.blocks):
            self._split(self._plan(GROW, block_to_split(self.blocks)))
        view = min(self.crawl_state.views(), key=lambda view: (view.last_turn, view.block))
        return self._plan(CRAWL, view.block)

    def turn(self, plan: Plan, stream: Stream, extracted: Urls, collected: Urls) -> Turned:
        """Writes the inputs, untimed, and runs the verifier."""
        folder = self.crawl.path / names.cycle(plan.cycle) / names.EXTRACTOR
        unpublish(folder)
        write_inputs(folder, stream, plan, extracted, collected)
        turned = self._run(plan)
        self.crawl_state.refresh()
        unpublish(folder)
        delete_superseded(self.crawl_state, self.config.blocks.keep_generations)
        return turned

    def bytes_on_disk(self) -> tuple[int, int]:
        """All of R; and of it the live generations with the text that they name."""
        root = self.crawl.path / names.GENERATIONS
        live = 0
        texts: dict[str, int] = {}
        for block in range(self.blocks):
            if figures := self.crawl_state.figures(block):
                live += size_of(self.crawl.path / names.generation(block, self.crawl_state.log.generation(block)))
                texts |= {name: text["bytes"] for name, text in figures.get("texts", {}).items()}
        return size_of(root), live + sum(texts.values())

    def parent_folder(self, plan: Plan) -> Path | None:
        """The generation that a turn begins from."""
        return None if plan.generation is None else self.crawl.path / names.generation(plan.block, plan.generation)

    def _plan(self, kind: str, block: int) -> Plan:
        cycle = self.crawl_state.next_cycle()
        plan = Plan(
            cycle,
            kind,
            block,
            self.blocks,
            self.crawl_state.log.generation(block),
            BEGAN_AT_MS + cycle * CYCLE_MS,
            self.config,
        )
        write_plan(self.crawl.path, plan)
        return plan

    def _split(self, plan: Plan) -> None:
        self.grow_s += self._run(plan).total_s
        self.splits += 1
        self.crawl_state.refresh()
        delete_superseded(self.crawl_state, self.config.blocks.keep_generations)

    def _run(self, plan: Plan) -> Turned:
        self._times_file.unlink(missing_ok=True)
        command = [
            VERIFIER,
            "--crawl",
            self.crawl.path,
            "--cycle",
            plan.cycle,
            *(["--times", self._times_file] if self._has_times else []),
        ]
        child = Child(command, self.folder / "verifier.log", limit_s=LIMIT_S)
        largest = (0.0, 0.0)
        seen = threading.Event()

        def look():
            nonlocal largest
            while not seen.wait(LOOK_EVERY_S):
                family = [child.pid, *children_of(child.pid)]
                now = [sum(parts) for parts in zip(*map(resident_mb, family))]
                largest = max(largest[0], now[0]), max(largest[1], now[1])

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            spent = child.wait()
        finally:
            seen.set()
            watcher.join()
            child.kill()
        parts_s = json.loads(self._times_file.read_text()) if self._times_file.exists() else {}
        return Turned(plan.cycle, plan.block, spent.wall_s, spent.cpu_s, parts_s.get("step"), *largest, parts_s)


def has_times_option(folder: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    help_text = folder / "verifier-help.txt"
    run_child([VERIFIER, "--help"], folder / "verifier.log", help_text)  # and the first start of all, which may install
    return "--times" in help_text.read_text()


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.exists() else 0
