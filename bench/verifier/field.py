"""The field of peers: each opened, filled, given batches and timed, until it is out by its limits."""

import shutil
import sys
import time
from pathlib import Path

import numpy as np

from bench.verifier.batch import Batch, to_lines
from bench.verifier.options import CENTRAL, Limits
from bench.verifier.ours import size_of
from bench.verifier.peers import Missing, Peer, open_peer
from bench.verifier.stream import Stream

FILL_ROWS = 4_000_000  # loaded at once, sorted: as much as fits in memory as objects


class Field:
    """`notes` maps a peer to what it has spent, how many URLs it knows and, once it is out, why."""

    def __init__(self, root: Path, folder: Path, limits: Limits, notes: dict[str, dict]):
        self._root, self._folder, self._limits, self._notes = root, folder, limits, notes
        self._peers: dict[str, Peer] = {}
        self._first = 0  # who begins: they take turns
        # Of peers that answer late: seconds of their batches of this window, without merges.
        self._own_s: dict[str, list[float]] = {}
        for name in limits.peers:
            noted = notes.setdefault(name, {"spent_s": 0.0})
            if name == CENTRAL or "out" in noted:
                continue
            try:
                self._peers[name] = open_peer(name, folder / name, limits.memory_bytes)
            except Missing as missing:
                noted["out"] = str(missing)

    def take(self, batch: Batch, new: int, known: int) -> dict[str, float]:
        """Seconds of each; one that passes its limits is out and its files are removed."""
        _ = batch.lines, batch.collected_lines  # made before any clock starts
        names = list(self._peers)
        self._first += 1
        seconds = {}
        for name in names[self._first % max(1, len(names)) :] + names[: self._first % max(1, len(names))]:
            peer = self._peers[name]
            began_s = time.perf_counter()
            found = peer.take(batch)
            seconds[name] = time.perf_counter() - began_s
            settling_s = time.perf_counter()
            peer.settle()
            noted = self._notes[name]
            noted["spent_s"] += time.perf_counter() - began_s
            noted["settle_s"] = noted.get("settle_s", 0.0) + time.perf_counter() - settling_s
            noted["known"] = known + new
            if peer.answers_late:
                self._own_s.setdefault(name, []).append(seconds[name] - peer.merges_s())
            elif found != new:
                noted["disagrees"] = f"found {found} new URLs where ours found {new}"
                print(f"{name} {noted['disagrees']}", file=sys.stderr, flush=True)
            if seconds[name] > self._limits.peer_s:
                self._drop(name, f"a cycle took {seconds[name]:.0f} s")
            elif noted["spent_s"] > self._limits.peer_total_s:
                self._drop(name, f"all cycles took {noted['spent_s'] / 60:.0f} minutes")
        return seconds

    def share_merges(self, rows: int) -> dict[str, tuple[float, float]]:
        """Of peers that answer late: a batch with its share of a merge, and with a merge of its own."""
        shares = {}
        for name, peer in self._peers.items():
            if peer.answers_late and self._own_s.get(name):
                own_s = float(np.median(self._own_s[name]))
                shares[name] = tuple(own_s + share_s for share_s in peer.share_merge(rows))
                peer.merges_s()
        self._own_s = {}
        return shares

    def put_off(self, cycle: int, news: np.ndarray) -> None:
        """Keeps the codes of new URLs (server << 32 | number, u64) for the next fill."""
        self._folder.mkdir(parents=True, exist_ok=True)
        np.save(self._folder / f"later-{cycle:08d}.npy", news)

    def fill(self, stream: Stream) -> None:
        """Loads what was put off, in large sorted parts, untimed."""
        if not self._peers:
            for path in self._folder.glob("later-*.npy"):
                path.unlink()
        held: list[Path] = []
        rows = 0
        for path in sorted(self._folder.glob("later-*.npy")):
            held.append(path)
            rows += len(np.load(path, mmap_mode="r"))
            if rows >= FILL_ROWS:
                self._load(stream, held)
                held, rows = [], 0
        self._load(stream, held)
        for peer in self._peers.values():
            peer.settle()
            if peer.answers_late:
                peer.merges_s()

    def _load(self, stream: Stream, paths: list[Path]) -> None:
        codes = np.concatenate([np.empty(0, np.uint64), *map(np.load, paths)])
        server, number = (codes >> np.uint64(32)).astype(np.uint32), codes.astype(np.uint32)
        lines = to_lines(stream.urls_of(server, number))
        for name, peer in list(self._peers.items()) if len(codes) else ():
            began_s = time.perf_counter()
            peer.load(stream.keys_of(server, number), lines, server)
            self._notes[name]["spent_s"] += time.perf_counter() - began_s
            if self._notes[name]["spent_s"] > self._limits.peer_total_s:
                self._drop(name, f"with filling it took {self._notes[name]['spent_s'] / 60:.0f} minutes")
        for path in paths:
            path.unlink()
        if len(codes) >= FILL_ROWS:
            self.keep_within(self._limits.disk_bytes)

    def keep_within(self, most_bytes: int) -> None:
        """Drops the largest until the work folder fits."""
        sizes = {name: size_of(self._folder / name) for name in self._peers}
        whole = size_of(self._root) if sizes else 0
        while sizes and whole > most_bytes:
            name = max(sizes, key=sizes.get)
            whole -= sizes[name]
            self._drop(name, f"its {sizes.pop(name) / 1e9:.1f} GB of disk were needed")

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers = {}

    def _drop(self, name: str, why: str) -> None:
        self._peers.pop(name).close()
        self._notes[name]["out"] = why
        shutil.rmtree(self._folder / name)
        print(f"{name} is out: {why}", file=sys.stderr, flush=True)
