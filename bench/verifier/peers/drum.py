"""DRUM (Lee, Leonard, Wang, Loguinov: IRLbot, 2008) on files: disk repository with update management.

Pairs of key and value, with an auxiliary text, go to one of k buckets by the key's top bits. A bucket is an array in
memory which, when full, is appended to the bucket's file; texts go to a second file beside it. When one bucket's files
have grown to a limit, all buckets are merged with the repository Z: each is read, sorted, and passed along its part of
Z, once. Three operations: check says whether a key is unique, update sets its value, check+update does both. Answers
come at a merge, with their texts, in the order in which they were asked (first in, first out, within a bucket).

Here all of that is done on arrays; Z is one sorted file per bucket; texts of unique URLs go to a log.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.verifier.batch import COLLECTED, WAITING, Batch
from storage.arrays import find_in_sorted, interleave, merge_sorted, starts_of_runs
from storage.publish import sync_folder

CHECK, UPDATE, CHECK_UPDATE = 1, 2, 3  # bits: 1 asks, 2 sets
PAIR = np.dtype([("key", "<u8"), ("length", "<u4"), ("value", "u1"), ("operation", "u1")])
COUNT_BYTES = 8
Z_COLUMNS = {"key": "<u8", "text": "<u8", "value": "u1"}
NO_TEXT = np.uint64(0xFFFFFFFFFFFFFFFF)
Answer = Callable[[np.ndarray, np.ndarray, list[bytes]], None]  # keys, which are unique, their texts


class Drum:
    """`on_answer`, where given, gets every answer of a merge; else the unique ones are only counted."""

    answers_late = True

    def __init__(self, folder: Path, buckets: int, array_rows: int, merge_bytes: int, on_answer: Answer | None = None):
        self._folder = folder
        self._bits = (buckets - 1).bit_length()
        self._array_rows = array_rows
        self._merge_bytes = merge_bytes
        self._on_answer = on_answer
        self._buckets = [Bucket(folder, number) for number in range(buckets)]
        self._texts = open(folder / "texts.log", "ab")
        self.unique = 0  # found since the last look
        self._merged_rows = 0
        # Seconds of the last merge (its passes over Z, and all of it), and of all merges.
        self._z_s = self._merge_s = self._merges_s = 0.0

    def ask(self, operation: int, keys: np.ndarray, value: int, texts: pa.StringArray | None = None) -> None:
        """One operation for each key (u64, any order), in this order."""
        bucket = (keys >> np.uint64(64 - self._bits)).astype(np.uint8) if self._bits else np.zeros(len(keys), np.uint8)
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=len(self._buckets)))
        start = 0
        for target, end in zip(self._buckets, ends.tolist()):
            here = order[start:end]
            start = end
            if len(here):
                pairs = np.zeros(len(here), PAIR)
                pairs["key"], pairs["value"], pairs["operation"] = keys[here], value, operation
                target.add(pairs, texts.take(pa.array(here)) if texts is not None else None, self._array_rows)
        if any(target.file_bytes >= self._merge_bytes for target in self._buckets):
            self.merge()

    def merge(self) -> None:
        began_s = time.perf_counter()
        self._merged_rows, self._z_s = 0, 0.0
        for bucket in self._buckets:
            pairs, aux = bucket.drain()
            if len(pairs):
                self._merge_bucket(bucket, pairs, aux)
                self._merged_rows += len(pairs)
        self._texts.flush()
        os.fsync(self._texts.fileno())
        for bucket in self._buckets:
            bucket.clear()
        self._merge_s = time.perf_counter() - began_s
        self._merges_s += self._merge_s

    def share_merge(self, rows: int) -> tuple[float, float]:
        """Merges now. A batch's share of its seconds: with merges at the limit, and with one merge per batch.

        The work on pairs grows with them. The passes over Z are shared by all batches that fit into the buckets between
        two merges.
        """
        batch_bytes = (
            max(bucket.file_bytes for bucket in self._buckets)
            * rows
            / max(1, sum(bucket.rows for bucket in self._buckets))
        )
        self.merge()
        pairs_s = (self._merge_s - self._z_s) * rows / max(1, self._merged_rows)
        return pairs_s + self._z_s * min(1.0, batch_bytes / self._merge_bytes), pairs_s + self._z_s

    def _merge_bucket(self, bucket: "Bucket", pairs: np.ndarray, aux: np.ndarray) -> None:
        order = np.argsort(pairs["key"], kind="stable")
        keys = pairs["key"][order]
        starts = starts_of_runs(keys)
        distinct = np.ascontiguousarray(keys[starts])
        began_s = time.perf_counter()
        z = bucket.read_z()
        self._z_s += time.perf_counter() - began_s
        known, known_rows = find_in_sorted(distinct, z["key"])
        is_absent = np.ones(len(distinct), bool)
        is_absent[known] = False

        run = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(keys))))
        sets = (pairs["operation"][order] & UPDATE) > 0
        sets_before = np.cumsum(sets) - sets
        is_unique_sorted = (
            is_absent[run] & (sets_before == sets_before[starts][run]) & ((pairs["operation"][order] & CHECK) > 0)
        )
        is_unique = np.zeros(len(pairs), bool)
        is_unique[order] = is_unique_sorted
        text_at = self._answer(pairs, aux, is_unique)

        last_set = np.full(len(distinct), -1, np.int64)
        np.maximum.at(last_set, run[sets], np.flatnonzero(sets))
        value = pairs["value"][order][last_set]
        is_set = last_set >= 0
        z["value"][known_rows] = np.where(is_set[known], value[known], z["value"][known_rows])
        text_of = np.full(len(distinct), NO_TEXT)
        stored = is_unique_sorted & sets
        text_of[run[stored]] = text_at[order][stored]
        fresh = np.flatnonzero(is_absent & is_set)
        began_s = time.perf_counter()
        merged, old_rows, new_rows = merge_sorted(z["key"], distinct[fresh])
        bucket.write_z(
            {
                "key": merged,
                "text": interleave(z["text"], text_of[fresh], old_rows, new_rows),
                "value": interleave(z["value"], value[fresh], old_rows, new_rows),
            }
        )
        self._z_s += time.perf_counter() - began_s

    def _answer(self, pairs: np.ndarray, aux: np.ndarray, is_unique: np.ndarray) -> np.ndarray:
        """Answers in the order of asking, and logs texts of unique keys. The offset of each text in the log."""
        lengths = pairs["length"].astype(np.int64)
        kept = np.repeat(is_unique, lengths)
        sizes = np.where(is_unique, lengths, 0)
        at = self._texts.tell() + np.cumsum(sizes) - sizes
        self._texts.write(aux[kept].data)
        asked = (pairs["operation"] & CHECK) > 0
        self.unique += int(is_unique.sum())
        if self._on_answer:
            ends = np.cumsum(lengths)
            texts = [
                aux[begin:end].tobytes() for begin, end in zip((ends - lengths)[asked].tolist(), ends[asked].tolist())
            ]
            self._on_answer(pairs["key"][asked], is_unique[asked], texts)
        return at.astype(np.uint64)

    def load(self, keys: np.ndarray, lines: list[bytes], servers: np.ndarray) -> None:
        self.ask(CHECK_UPDATE, keys, WAITING, pa.array(lines, pa.binary()).cast(pa.string()))
        self.merge()

    def take(self, batch: Batch) -> int:
        self.ask(CHECK_UPDATE, batch.keys, WAITING, batch.texts)
        self.ask(UPDATE, batch.collected, COLLECTED)
        for bucket in self._buckets:
            bucket.sync()
        found, self.unique = self.unique, 0
        return found

    def merges_s(self) -> float:
        """Seconds of all merges since the last look: they are no part of a batch's own time."""
        spent_s, self._merges_s = self._merges_s, 0.0
        return spent_s

    def settle(self) -> None:
        pass

    def close(self) -> None:
        self.merge()
        for bucket in self._buckets:
            bucket.close()
        self._texts.close()


class Bucket:
    """An array in memory, two files that it is appended to, and the bucket's part of Z."""

    def __init__(self, folder: Path, number: int):
        self._folder = folder / f"bucket-{number:03d}"
        self._folder.mkdir(exist_ok=True)
        self._z = self._folder / "z.bin"
        self._pairs, self._aux = (open(self._folder / name, "a+b") for name in ("pairs.bin", "aux.bin"))
        self._drop_torn()
        self._array: list[tuple[np.ndarray, np.ndarray]] = []
        self._rows = 0  # in memory
        self.file_bytes = self._pairs.tell() + self._aux.tell()
        self.rows = self._pairs.tell() // PAIR.itemsize  # since the last merge

    def _drop_torn(self) -> None:
        """What was not synced as a whole batch before a crash is cut off."""
        whole = (
            np.fromfile(self._folder / "synced.bin", "<i8")
            if (self._folder / "synced.bin").exists()
            else np.zeros(2, np.int64)
        )
        for file, size in zip((self._pairs, self._aux), whole.tolist()):
            file.truncate(size)
            file.seek(0, os.SEEK_END)

    def _note_synced(self) -> None:
        np.array([self._pairs.tell(), self._aux.tell()], "<i8").tofile(self._folder / "synced.bin")

    def add(self, pairs: np.ndarray, texts: pa.StringArray | None, array_rows: int) -> None:
        """Appends to the array, which goes to the files whenever it is full."""
        data = np.empty(0, np.uint8)
        offsets = np.zeros(len(pairs) + 1, np.int64)
        if texts is not None:
            offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(
                np.int64
            )
            data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
            pairs["length"] = np.diff(offsets)
        self.rows += len(pairs)
        start = 0
        while start < len(pairs):
            end = min(len(pairs), start + array_rows - self._rows)
            self._array.append((pairs[start:end], data[offsets[start] : offsets[end]]))
            self._rows += end - start
            start = end
            if self._rows >= array_rows:
                self._spill()

    def _spill(self) -> None:
        for pairs, data in self._array:
            self._pairs.write(pairs.tobytes())
            self._aux.write(data.data)
            self.file_bytes += pairs.nbytes + data.nbytes
        self._array, self._rows = [], 0

    def sync(self) -> None:
        """What is still in memory goes to the files too: a batch that was taken must outlive a crash."""
        self._spill()
        for file in (self._pairs, self._aux):
            file.flush()
            os.fsync(file.fileno())
        self._note_synced()

    def drain(self) -> tuple[np.ndarray, np.ndarray]:
        self._spill()
        self._pairs.flush()
        self._aux.flush()
        return np.fromfile(self._pairs.name, PAIR), np.fromfile(self._aux.name, np.uint8)

    def clear(self) -> None:
        for file in (self._pairs, self._aux):
            file.truncate(0)
            file.seek(0)
        self.file_bytes = self.rows = 0
        self._note_synced()

    def read_z(self) -> dict[str, np.ndarray]:
        if not self._z.exists():
            return {name: np.empty(0, dtype) for name, dtype in Z_COLUMNS.items()}
        with open(self._z, "rb") as file:
            rows = int.from_bytes(file.read(COUNT_BYTES), "little")
            return {name: np.fromfile(file, dtype, rows) for name, dtype in Z_COLUMNS.items()}

    def write_z(self, columns: dict[str, np.ndarray]) -> None:
        """One column after the other in one file, so that one rename replaces all."""
        aside = self._z.with_suffix(".aside")
        with open(aside, "wb") as file:
            file.write(len(columns["key"]).to_bytes(COUNT_BYTES, "little"))
            for name, dtype in Z_COLUMNS.items():
                file.write(np.ascontiguousarray(columns[name], dtype).data)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self._z)
        sync_folder(self._folder)

    def close(self) -> None:
        self._pairs.close()
        self._aux.close()


class DrumAsInThesis(Drum):
    def __init__(self, folder: Path, memory_bytes: int):
        super().__init__(folder, buckets=8, array_rows=10_000, merge_bytes=100 << 20)


class DrumTuned(Drum):
    """Arrays that hold a cycle, and merges as rare as memory for sorting a bucket allows: fewer passes over Z."""

    def __init__(self, folder: Path, memory_bytes: int):
        super().__init__(folder, buckets=16, array_rows=1_000_000, merge_bytes=max(1 << 20, memory_bytes // 8))
