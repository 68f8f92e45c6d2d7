"""Deciding which of 100,000 URLs are new among a million known ones: our merge against SQLite and a Python set.

The job for all: given a batch of keys with texts of about 60 bytes, say how many are new, and make key, state and text
of the new ones durable. SQLite is the standard library's, WITHOUT ROWID, keys inserted in sorted order in one
transaction, synchronous = FULL. The set is what frameworks keep in memory: it makes nothing durable and must be built
again after a crash; that time is given beside it.
"""

import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from contract.generation import COLUMNS
from storage.arrays import find_in_sorted, interleave, merge_sorted, open_array, write_array
from storage.publish import sync_file, sync_folder
from storage.text_segments import write_segment

KNOWN = 1_000_000
BATCH = 100_000
SEEN_BEFORE = 0.7  # of a batch, as crawls are
REPEATS = 5


def measure(_arguments) -> dict:
    random = np.random.default_rng(1)
    known = np.unique(random.integers(0, 2**64, KNOWN, np.uint64))
    times: dict[str, list[float]] = {"ours": [], "sqlite": [], "set": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        database = make_database(folder / "known.db", known)
        began = time.perf_counter()
        in_memory = set(known.tolist())
        set_build_s = time.perf_counter() - began
        write_block(folder, known)
        for repeat in range(REPEATS):
            again = random.choice(known, int(BATCH * SEEN_BEFORE), replace=False)
            batch = np.unique(np.concatenate([again, random.integers(0, 2**64, BATCH - len(again), np.uint64)]))
            texts = [b"http://www.server%d.example/some/path/page-%020d.html" % (key % 999, key) for key in batch.tolist()]
            found = {}
            for name, job in (("ours", lambda: merge_block(folder, repeat, batch, texts)), ("sqlite", lambda: insert(database, batch, texts)),
                              ("set", lambda: add_all(in_memory, batch))):
                began = time.perf_counter()
                found[name] = job()
                times[name].append(time.perf_counter() - began)
            assert len(set(found.values())) == 1, f"they disagree: {found}"
    figures = {f"{name}_s": round(median(values), 3) for name, values in times.items()}
    figures |= {"set_build_s": round(set_build_s, 3), "known": KNOWN, "batch": BATCH,
                "ratio_sqlite": round(median(s / o for s, o in zip(times["sqlite"], times["ours"])), 1)}
    print(f"{BATCH} URLs, {SEEN_BEFORE:.0%} seen before, against {KNOWN} known; median of {REPEATS} interleaved repeats")
    print(f"  ours (sorted merge, durable)       {figures['ours_s']:8.3f} s")
    print(f"  SQLite (WITHOUT ROWID, durable)    {figures['sqlite_s']:8.3f} s   {figures['ratio_sqlite']} times ours")
    print(f"  Python set (memory only)           {figures['set_s']:8.3f} s   and {figures['set_build_s']:.3f} s to build it after a crash")
    return figures


def write_block(folder: Path, known: np.ndarray) -> None:
    for name, dtype in COLUMNS.items():
        write_array(folder / f"{name}.npy", known if name == "key" else np.zeros(len(known), dtype))


def merge_block(folder: Path, repeat: int, batch: np.ndarray, texts: list[bytes]) -> int:
    """What the verifier does for a batch: uniqueness, all columns rewritten, new texts in a segment, all synced."""
    columns = {name: open_array(folder / f"{name}.npy", dtype) for name, dtype in COLUMNS.items()}
    known, _ = find_in_sorted(batch, columns["key"])
    is_new = np.ones(len(batch), bool)
    is_new[known] = False
    new = np.flatnonzero(is_new)
    segment = folder / f"{repeat}.zst"
    places = write_segment(segment, repeat, [texts[place] for place in new.tolist()])
    merged, old_places, new_places = merge_sorted(columns.pop("key"), batch[new])
    fresh = {"key": merged} | {name: interleave(column, places if name == "text" else np.zeros(len(new), column.dtype), old_places, new_places)
                               for name, column in columns.items()}
    for name, column in fresh.items():
        write_array(folder / f"next-{name}.npy", column)
        sync_file(folder / f"next-{name}.npy")
    for name in fresh:
        (folder / f"next-{name}.npy").rename(folder / f"{name}.npy")
    sync_file(segment)
    sync_folder(folder)
    return len(new)


def make_database(path: Path, known: np.ndarray) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript("pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -1000000;"
                           "create table url (key integer primary key, state integer, text blob) without rowid;")
    database.execute("begin")
    database.executemany("insert into url values (?, 0, ?)", ((signed(key), b"http://www.server.example/%044d" % (key % 10**20)) for key in known.tolist()))
    database.execute("commit")
    return database


def insert(database: sqlite3.Connection, batch: np.ndarray, texts: list[bytes]) -> int:
    before = database.total_changes
    database.execute("begin")
    database.executemany("insert or ignore into url values (?, 0, ?)", zip((signed(key) for key in batch.tolist()), texts))
    database.execute("commit")
    return database.total_changes - before


def signed(key: int) -> int:
    return key - (1 << 64) if key >= 1 << 63 else key


def add_all(known: set[int], batch: np.ndarray) -> int:
    before = len(known)
    known.update(batch.tolist())
    return len(known) - before
