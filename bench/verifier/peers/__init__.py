"""The peers: other ways to keep known URLs, each a module with one class of one form.

Peer(folder, memory_bytes)      opens or makes its files in the folder
load(keys, lines, servers)      takes new URLs without saying which, untimed: fills up to a mark
take(batch) -> int              how many URLs are new; key, state and text of all are durable when it returns
settle()                        waits for work left in the background, untimed, so that it disturbs nobody else
close()
"""

import importlib
from pathlib import Path
from typing import Protocol

import numpy as np

from bench.verifier.batch import Batch

PEERS = {  # name -> module, class, words
    "drum": ("drum", "DrumAsInThesis", "DRUM, 8 buckets, 10,000 URLs per array, merge at 100 MB"),
    "drum_tuned": (
        "drum",
        "DrumTuned",
        "DRUM, tuned: 16 buckets, arrays of a cycle, merge at an eighth of the memory per bucket",
    ),
    "rocksdb": ("rocksdb", "RocksDb", "RocksDB: multi_get, one synced write batch"),
    "lmdb": ("lmdb", "Lmdb", "LMDB: one transaction, sorted"),
    "sqlite": ("sqlite", "Sqlite", "SQLite: WITHOUT ROWID, one transaction, sorted"),
    "bdb": ("bdb", "BerkeleyDb", "Berkeley DB 5.3: B-tree, sorted, synced"),
    "lookup": ("lookup", "LookUp", "a look-up per URL (Program 1)"),
    "server_files": ("server_files", "ServerFiles", "one file per server"),
}


class Missing(Exception):
    """The peer's library is not installed; says how to get it."""


class Peer(Protocol):
    answers_late: bool  # what take() returns may belong to earlier batches

    def load(self, keys: np.ndarray, lines: list[bytes], servers: np.ndarray) -> None: ...
    def take(self, batch: Batch) -> int: ...
    def settle(self) -> None: ...
    def close(self) -> None: ...


def open_peer(name: str, folder: Path, memory_bytes: int) -> Peer:
    module, owner, _ = PEERS[name]
    folder.mkdir(parents=True, exist_ok=True)
    return getattr(importlib.import_module(f"bench.verifier.peers.{module}"), owner)(folder, memory_bytes)
