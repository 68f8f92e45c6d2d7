"""The contest on one stream: cycle by cycle, ours as a command and every peer on the batch that ours absorbs.

It resumes: the stream's counters, the rows that wait for other blocks and the results so far are stored beside the
crawl folder. A cycle that was committed but not noted is played again for the peers, to whom a URL taken twice is
known.
"""

import json
import shutil
import sys
import time
from bisect import bisect_left
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from bench.verifier.batch import Batch
from bench.verifier.field import Field
from bench.verifier.figures import mark_row
from bench.verifier.limit import time_limit
from bench.verifier.options import CENTRAL, MILLION, UNBOUNDED, Course
from bench.verifier.ours import Ours, Turned
from bench.verifier.stream import Stream, Urls
from contract.blocks import interval
from contract.log import KINDS, replay
from contract.plan import Plan, read_plan


@dataclass
class Notes:
    """What a run knows beside the crawl folder; a JSON file, replaced after each cycle."""

    rows: dict[str, dict] = field(default_factory=dict)  # mark -> figures
    window: list[dict] = field(default_factory=list)  # cycles of the mark being measured
    cycles: list[list] = field(default_factory=list)  # known after it, seconds, for each cycle
    grow_s: float = 0.0
    splits: int = 0
    peers: dict[str, dict] = field(default_factory=dict)  # name -> spent_s, known, and out: why
    # The cycle under way, and the share of known URLs among those that it extracts.
    share: list = field(default_factory=lambda: [-1, 0.0])


class Contest:
    def __init__(self, folder: Path, course: Course):
        self.course, self.folder = course, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._notes_path = folder / "notes.json"
        self.notes = Notes(**json.loads(self._notes_path.read_text())) if self._notes_path.exists() else Notes()
        self.stream = Stream(course.shape)
        # The last cycle that the stream's counters have; saved with them, as they must not count one twice.
        self._played = -1
        if (folder / "stream.npz").exists():
            self._played = int(self.stream.load(folder / "stream.npz")["cycle"])
        self.ours = Ours(folder / "ours", course.config)
        self.ours.grow_s, self.ours.splits = self.notes.grow_s, self.notes.splits
        self.field = Field(folder.parent, folder / "peers", course.limits, self.notes.peers)
        self._central = None
        if CENTRAL in course.limits.peers and "out" not in self.notes.peers.setdefault(CENTRAL, {"spent_s": 0.0}):
            self._central = Ours(folder / CENTRAL, replace(course.config, blocks=UNBOUNDED), can_grow=False)

    def run(self) -> dict[str, dict]:
        """Plays until the last mark is measured; figures by mark."""
        self._catch_up()
        while (mark := self._next_mark()) is not None:
            known = self.ours.known()
            plan = self.ours.begin()
            self.notes.share = [plan.cycle, self._share(known, mark)]
            self._write_notes()
            self._play(plan, mark if known >= mark * MILLION else None)
        self.field.keep_within(self.course.limits.disk_bytes // 2)  # leaves room for the stream that follows
        self._write_notes()
        self.field.close()
        return dict(sorted(self.notes.rows.items(), key=lambda item: float(item[0])))

    def discard(self) -> None:
        """Removes the crawl folder and all that is needed to resume; the notes stay."""
        for path in self.folder.iterdir():
            if path != self._notes_path:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _share(self, known: int, mark: float) -> float:
        """The share of known URLs in the next cycle: 0 while filling up to a mark, until the last round before it."""
        shape = self.course.shape
        ahead = (self.ours.blocks + 1) * shape.extracted * (1 - shape.known_share)
        return 0.0 if self.course.limits.fill and known + ahead < mark * MILLION else shape.known_share

    def _next_mark(self) -> float | None:
        return next((mark for mark in self.course.marks if f"{mark:g}" not in self.notes.rows), None)

    def _catch_up(self) -> None:
        """Plays, for stream and peers, a cycle that was committed when the run was stopped before it was noted."""
        for entry in replay(self.ours.crawl.path, self.ours.crawl.blocks_first).entries:
            if entry and KINDS[entry.kind].fetches and entry.cycle > self._played:
                self._play(read_plan(self.ours.crawl.path, entry.cycle), None, is_committed=True)

    def _play(self, plan: Plan, mark: float | None, is_committed: bool = False) -> None:
        stream, low_high = self.stream, interval(plan.block, plan.blocks)
        began_s = time.perf_counter()
        share = self.notes.share[1] if self.notes.share[0] == plan.cycle else self.course.shape.known_share
        extracted, collected = stream.extract(plan.cycle, share), stream.collect(*low_high)
        batch, news = self._gather(plan, extracted, collected)
        made_s = time.perf_counter() - began_s
        if mark is not None:
            self.field.fill(stream)  # up to here, before anything is timed
        known = self.ours.known()
        seconds: dict[str, float | None] = {}
        turned = None
        if not is_committed:
            limit_s = (
                time_limit(self.ours.parent_folder(plan), batch.keys, self.folder / "limit")
                if mark is not None
                else None
            )
            turned = self.ours.turn(plan, stream, extracted, collected)
            new = self.ours.known() - known
            seconds = {"ours": turned.total_s, "step": turned.step_s, "limit": limit_s}
            self._turn_central(extracted, collected, seconds)
            if mark is not None or not self.course.limits.fill:
                seconds |= self.field.take(batch, new, known)
        if is_committed or (self.course.limits.fill and mark is None):
            self.field.put_off(plan.cycle, news)
        if is_committed:  # some peers may have taken it, others not
            self._turn_central(extracted, collected, {})
            self.field.fill(stream)
        self._note(plan, extracted, collected, turned, seconds, mark, made_s, len(batch))

    def _gather(self, plan: Plan, extracted: Urls, collected: Urls) -> tuple[Batch, np.ndarray]:
        """What the cycle absorbs (its own rows, and those that waited for the block), and codes of the new ones."""
        low, high = interval(plan.block, plan.blocks)
        pieces = [self._slice(extracted.server, extracted.number, low, high)]
        seen = self._seen_before(plan)
        for position, path in self._waiting():
            if position >= seen:
                pieces.append(self._slice(*np.load(path, mmap_mode="r"), low, high))
        server, number = (np.concatenate(parts) for parts in zip(*pieces))
        is_new = number >= self.stream.absorbed[server]
        news = np.unique(server[is_new].astype(np.uint64) << np.uint64(32) | number[is_new])
        batch = Batch(
            self.stream.keys_of(server, number),
            server,
            partial(self.stream.urls_of, server, number),
            collected.key,
            partial(self.stream.urls_of, collected.server, collected.number),
        )
        return batch, news

    def _slice(self, server: np.ndarray, number: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """Of rows in the order of domain keys, those of [low, high)."""
        begin, end = (
            bisect_left(range(len(server)), bound, key=lambda row: int(self.stream.domain_key[server[row]]))
            for bound in (low, high)
        )
        return server[begin:end], number[begin:end]

    def _seen_before(self, plan: Plan) -> int:
        """The log position up to which the parent generation had absorbed."""
        if plan.generation is None:
            return 0
        entries = replay(self.ours.crawl.path, self.ours.crawl.blocks_first).entries
        return next(
            (entry.seen for entry in entries if entry and entry.generations.get(plan.block) == plan.generation), 0
        )

    def _waiting(self) -> list[tuple[int, Path]]:
        return sorted((int(path.stem.partition("-")[2]), path) for path in self.folder.glob("waiting-*.npy"))

    def _turn_central(self, extracted: Urls, collected: Urls, seconds: dict) -> None:
        if self._central is None:
            return
        notes = self.notes.peers[CENTRAL]
        turned = self._central.turn(self._central.begin(), self.stream, extracted, collected)
        notes["spent_s"] += turned.total_s
        notes["known"] = self._central.known()
        seconds |= {CENTRAL: turned.total_s, f"{CENTRAL}_step": turned.step_s}
        if turned.total_s > self.course.limits.peer_s or notes["spent_s"] > self.course.limits.peer_total_s:
            notes["out"] = f"a cycle took {turned.total_s:.0f} s, all of them {notes['spent_s'] / 60:.0f} minutes"
            shutil.rmtree(self._central.folder)
            self._central = None

    def _note(
        self,
        plan: Plan,
        extracted: Urls,
        collected: Urls,
        turned: Turned | None,
        seconds: dict,
        mark: float | None,
        made_s: float,
        batch_rows: int,
    ) -> None:
        low, high = interval(plan.block, plan.blocks)
        notes, log = self.notes, replay(self.ours.crawl.path, self.ours.crawl.blocks_first)
        position = log.cycles[plan.cycle]
        self.stream.note_turn(low, high, collected)
        np.save(self.folder / f"waiting-{position:08d}.npy", np.stack([extracted.server, extracted.number]))
        least = min(log.seen.get(block, 0) for block in range(log.blocks))
        for older, path in self._waiting():
            if older < least:
                path.unlink()
        known = self.ours.known()
        notes.grow_s, notes.splits = self.ours.grow_s, self.ours.splits
        if turned:
            notes.cycles.append([known, round(turned.total_s, 4)])
        if mark is not None:
            notes.window.append(
                {
                    "seconds": seconds,
                    "rss_mb": turned.rss_mb,
                    "rss_with_files_mb": turned.rss_with_files_mb,
                    "cpu_s": turned.cpu_s,
                    "rows": batch_rows,
                    "parts_s": turned.parts_s,
                    "known_share": self.stream.known_share,
                }
            )
        if mark is not None and len(notes.window) >= self.course.limits.cycles:
            shares = self.field.share_merges(batch_rows)
            everything, live = self.ours.bytes_on_disk()
            before = max((row["cycles_played"] for row in notes.rows.values()), default=0)
            # Medians of a few cycles miss what is done once in many cycles: mean and maximum are of all.
            since_s = [spent_s for _, spent_s in notes.cycles[before:]]
            notes.rows[f"{mark:g}"] = mark_row(notes.window, shares) | {
                "ours_mean_s": round(sum(since_s) / len(since_s), 4),
                "ours_max_s": max(since_s),
                "cycles_played": len(notes.cycles),
                "known": known,
                "blocks": self.ours.blocks,
                "largest_block_urls": self.ours.largest_block()[0],
                "largest_block_servers": self.ours.largest_block()[1],
                "bytes_per_url": round(everything / known, 1),
                "bytes_per_url_live": round(live / known, 1),
                "grow_s": round(notes.grow_s, 2),
                "splits": notes.splits,
            }
            notes.window = []
            self.field.keep_within(self.course.limits.disk_bytes)
        self.stream.save(self.folder / "stream.npz", cycle=np.array(plan.cycle))
        self._write_notes()
        self._print_cycle(plan, known, seconds, made_s)

    def _write_notes(self) -> None:
        aside = self._notes_path.with_suffix(".aside")
        aside.write_text(json.dumps(asdict(self.notes)))
        aside.rename(self._notes_path)

    def _print_cycle(self, plan: Plan, known: int, seconds: dict, made_s: float) -> None:
        took = " ".join(f"{name} {spent_s:.2f}" for name, spent_s in seconds.items() if spent_s is not None)
        print(
            f"{self.course.name}: cycle {plan.cycle} block {plan.block} of {plan.blocks}: "
            f"{known / MILLION:.2f} million known; {took} s (made in {made_s:.1f} s)",
            file=sys.stderr,
            flush=True,
        )
