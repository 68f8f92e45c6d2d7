"""RocksDB as a peer: a sorted multi_get, then one write batch with a synced log; Bloom filters; caches in memory."""

import threading
import time
from pathlib import Path

import numpy as np

from bench.verifier.batch import COLLECTED, WAITING, Batch, first_of_each, pack, pick
from bench.verifier.peers import Missing

try:
    from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, WriteBatch, WriteOptions
except ImportError as error:
    raise Missing("rocksdict is not installed: it comes with the 'bench' extra") from error

BLOOM_BITS = 10
SETTLE_MAX_S = 600.0
LOOK_EVERY_S = 0.02
BUSY = (
    "rocksdb.num-running-compactions",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.mem-table-flush-pending",
)


class RocksDb:
    answers_late = False

    def __init__(self, folder: Path, memory_bytes: int):
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.increase_parallelism(2)
        # Four write buffers take half of the memory at most; the other half is the cache.
        options.set_write_buffer_size(memory_bytes // 8)
        options.set_max_write_buffer_number(4)
        options.set_compression_type(DBCompressionType.lz4())
        options.set_level_compaction_dynamic_level_bytes(True)
        options.set_max_open_files(-1)
        blocks = BlockBasedOptions()
        blocks.set_block_cache(Cache(memory_bytes // 2))
        blocks.set_bloom_filter(BLOOM_BITS, False)
        blocks.set_format_version(5)
        options.set_block_based_table_factory(blocks)
        self._database = Rdict(str(folder / "known"), options)
        self._synced = WriteOptions()
        self._synced.sync = True
        self._loose = WriteOptions()
        self._loose.disable_wal = True

    def load(self, keys: np.ndarray, lines: list[bytes], servers: np.ndarray) -> None:
        state = bytes([WAITING])
        distinct, rows = first_of_each(keys)
        writes = WriteBatch(raw_mode=True)
        for key, line in zip(pack(distinct), pick(lines, rows)):
            writes.put(key, state + line)
        self._database.write(writes, self._loose)
        self._database.flush(True)

    def take(self, batch: Batch) -> int:
        state = bytes([WAITING])
        distinct, rows = first_of_each(batch.keys)
        packed = pack(distinct)
        writes = WriteBatch(raw_mode=True)
        new = 0
        for found, key, line in zip(self._database.get(packed), packed, pick(batch.lines, rows)):
            if found is None:
                writes.put(key, state + line)
                new += 1
        state = bytes([COLLECTED])
        for key, line in zip(pack(batch.collected), batch.collected_lines):
            writes.put(key, state + line)
        self._database.write(writes, self._synced)
        return new

    def settle(self) -> None:
        end_s = time.monotonic() + SETTLE_MAX_S
        while any(self._database.property_int_value(name) for name in BUSY) and time.monotonic() < end_s:
            threading.Event().wait(LOOK_EVERY_S)

    def close(self) -> None:
        self._database.close()
