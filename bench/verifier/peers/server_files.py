"""One file per server, which the thesis tried and rejected: it has the keys, states and text offsets of its URLs.

Texts are in one log beside them. A batch opens the files of all its servers; the file system is synced once at its end.
"""

import ctypes
import os
from pathlib import Path

import numpy as np

from bench.verifier.batch import COLLECTED, WAITING, Batch

ROW = np.dtype([("key", "<u8"), ("text", "<u8"), ("state", "u1")])
FANOUT = 1024  # servers per folder
_libc = ctypes.CDLL(None, use_errno=True)


class ServerFiles:
    answers_late = False

    def __init__(self, folder: Path, memory_bytes: int):
        self._folder = folder
        self._texts = open(folder / "texts.log", "ab")

    def load(self, keys: np.ndarray, lines: list[bytes], servers: np.ndarray) -> None:
        self._add(keys, lines, servers)

    def take(self, batch: Batch) -> int:
        new = self._add(batch.keys, batch.lines, batch.servers, dict.fromkeys(batch.collected.tolist(), COLLECTED))
        self._texts.flush()
        if _libc.syncfs(self._texts.fileno()):
            raise OSError(ctypes.get_errno(), "syncfs failed")
        return new

    def _add(
        self, keys: np.ndarray, lines: list[bytes], servers: np.ndarray, states: dict[int, int] | None = None
    ) -> int:
        """A server with collected but no new URLs keeps its old states until its next batch, which flatters it."""
        lengths = np.fromiter((len(line) + 1 for line in lines), np.int64, len(lines))
        offsets = self._texts.tell() + np.cumsum(lengths) - lengths
        self._texts.write(b"\n".join(lines) + b"\n" * bool(lines))
        order = np.argsort(servers, kind="stable")
        starts = (
            np.flatnonzero(np.concatenate(([True], servers[order][1:] != servers[order][:-1]))) if len(order) else order
        )
        ends = np.append(starts[1:], len(order))
        new = 0
        for server, start, end in zip(servers[order][starts].tolist(), starts.tolist(), ends.tolist()):
            here = order[start:end]
            new += self._add_to(server, keys[here], offsets[here], states or {})
        return new

    def _add_to(self, server: int, keys: np.ndarray, offsets: np.ndarray, states: dict[int, int]) -> int:
        path = self._folder / str(server // FANOUT) / f"{server}.bin"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            path.parent.mkdir(exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            rows = np.frombuffer(os.read(descriptor, os.fstat(descriptor).st_size), ROW)
            known = set(rows["key"].tolist())
            fresh = {}
            for key, offset in zip(keys.tolist(), offsets.tolist()):
                if key not in known:
                    fresh.setdefault(key, offset)
            if states and (changed := known & states.keys()):
                rows = rows.copy()
                rows["state"][np.isin(rows["key"], np.fromiter(changed, np.uint64))] = COLLECTED
                os.pwrite(descriptor, rows.tobytes(), 0)
            if fresh:
                os.write(descriptor, np.array([(key, offset, WAITING) for key, offset in fresh.items()], ROW).tobytes())
            return len(fresh)
        finally:
            os.close(descriptor)

    def settle(self) -> None:
        pass

    def close(self) -> None:
        self._texts.close()
