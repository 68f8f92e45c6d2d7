"""When each address may be asked next: a table of 65,536 moments that outlives cycles and processes.

The file `slots` of a crawl folder is an array of little-endian u64, milliseconds since the epoch, indexed by a hash of
the address (IPv6 by its /64, which is one customer). Two addresses that share a slot only slow each other down, and
a file that was lost or damaged costs at most one delay too few: every value is clamped by its reader.
"""

import mmap
import os
import struct
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import xxhash

SLOTS = 1 << 16
_MOMENT = struct.Struct("<Q")
FILE_BYTES = SLOTS * _MOMENT.size
IPV6_NETWORK_BYTES = 8  # of 16: the /64


def slot_of(address: IPv4Address | IPv6Address) -> int:
    network = address.packed[:IPV6_NETWORK_BYTES] if address.version == 6 else address.packed
    return xxhash.xxh3_64_intdigest(network) % SLOTS


def clamp(ready_at_ms: int, now_ms: int, delay_max_ms: int) -> int:
    """A moment further off than the largest delay was written by a wrong clock or by chance: it counts as that delay."""
    return min(ready_at_ms, now_ms + delay_max_ms)


class MemorySlots:
    """The table without a crawl folder: known to this process only."""

    def __init__(self):
        self._moments: dict[int, int] = {}

    def __getitem__(self, slot: int) -> int:
        return self._moments.get(slot, 0)

    def __setitem__(self, slot: int, ready_at_ms: int) -> None:
        self._moments[slot] = ready_at_ms

    def close(self) -> None:
        pass


class FileSlots:
    """The table of a crawl folder, shared through the page cache; made, or brought to its size, where needed."""

    def __init__(self, path: Path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.fstat(descriptor).st_size != FILE_BYTES:
                os.ftruncate(descriptor, FILE_BYTES)
            # Written blocks now, not a bus error later where the disk is full.
            os.posix_fallocate(descriptor, 0, FILE_BYTES)
            self._map = mmap.mmap(descriptor, FILE_BYTES)
        finally:
            os.close(descriptor)

    def __getitem__(self, slot: int) -> int:
        return _MOMENT.unpack_from(self._map, slot * _MOMENT.size)[0]

    def __setitem__(self, slot: int, ready_at_ms: int) -> None:
        _MOMENT.pack_into(self._map, slot * _MOMENT.size, ready_at_ms)

    def close(self) -> None:
        self._map.close()
