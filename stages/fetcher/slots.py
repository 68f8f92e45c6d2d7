"""When each host and address may be asked next: a table of a million moments that outlasts cycles and processes.

The file `slots` of a crawl folder is an array of little-endian u64, milliseconds since the epoch, indexed by a hash of
the host's name, or of the address (IPv6 by its /64, which is one customer). Two that share a slot only slow each other
down, by one delay at most. A lost or damaged file costs at most one delay too few, because readers clamp every value.
A host belongs to one fetcher, but for its robots.txt: a redirect may lead any fetcher there.

Several fetchers of one crawl, and several processes of one fetcher, may run at the same time. So each holds a lock on
the slot's bytes during a request. The lock belongs to the open file (OFD, fcntl(2)): no process waits for one, and the
kernel frees those of dead processes. Meanwhile the slot holds ASKED instead of a moment. Who finds that in a slot that
nobody holds knows that a process died during a request, which may have ended only now.
"""

import fcntl
import mmap
import os
import struct
from collections import Counter
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import xxhash

from storage.errors import naming

SLOTS = 1 << 20  # so many that two of some thousand hosts and addresses in flight seldom share one
_MOMENT = struct.Struct("<Q")
FILE_BYTES = SLOTS * _MOMENT.size
ASKED = (1 << 64) - 1  # in place of a moment: it is being asked
IPV6_NETWORK_BYTES = 8  # of 16: the /64
F_OFD_SETLK = 37  # Linux; the module fcntl has no name for it before Python 3.12's builds
_FLOCK = struct.Struct("hhqqi4x")  # struct flock on 64-bit Linux: type, whence, start, length, pid


def network_of(address: IPv4Address | IPv6Address) -> bytes:
    """What counts as one address."""
    return address.packed[:IPV6_NETWORK_BYTES] if address.version == 6 else address.packed


def slot_of(name: bytes) -> int:
    """The slot of a host, by its name, or of an address, by network_of()."""
    return xxhash.xxh3_64_intdigest(name) % SLOTS


def clamp(ready_at_ms: int, now_ms: int, delay_max_ms: int) -> int:
    """A moment later than the largest delay allows was written by a wrong clock or by chance: the delay counts."""
    return min(ready_at_ms, now_ms + delay_max_ms)


class MemorySlots:
    """The table without a crawl folder: known to this process only."""

    path = None

    def __init__(self):
        self._moments: dict[int, int] = {}

    def __getitem__(self, slot: int) -> int:
        return self._moments.get(slot, 0)

    def hold(self, slot: int) -> bool:
        return True

    def begin(self, slot: int) -> None:
        self._moments[slot] = ASKED

    def release(self, slot: int, ready_at_ms: int | None) -> None:
        """Ends a hold; the moment is written unless nothing was asked."""
        if ready_at_ms is not None:
            self._moments[slot] = ready_at_ms

    def close(self) -> None:
        pass


class FileSlots:
    """The table in a file, shared through the page cache; created, or brought to its size, if needed."""

    def __init__(self, path: Path):
        self.path = path
        self._users: Counter[int] = Counter()  # of our own locks: those that share a slot share its lock
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            with naming(path):
                if os.fstat(self._descriptor).st_size != FILE_BYTES:
                    os.ftruncate(self._descriptor, FILE_BYTES)
                # Written blocks now, not a bus error later where the disk is full.
                os.posix_fallocate(self._descriptor, 0, FILE_BYTES)
                self._map = mmap.mmap(self._descriptor, FILE_BYTES)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __getitem__(self, slot: int) -> int:
        return _MOMENT.unpack_from(self._map, slot * _MOMENT.size)[0]

    def hold(self, slot: int) -> bool:
        """Whether no other process is asking it; true until release()."""
        if not self._users[slot] and not self._lock(slot, fcntl.F_WRLCK):
            return False
        self._users[slot] += 1
        return True

    def begin(self, slot: int) -> None:
        """A request begins; release() replaces what this writes, unless the process dies."""
        _MOMENT.pack_into(self._map, slot * _MOMENT.size, ASKED)

    def release(self, slot: int, ready_at_ms: int | None) -> None:
        """Ends a hold; the moment is written unless nothing was asked."""
        if ready_at_ms is not None:
            _MOMENT.pack_into(self._map, slot * _MOMENT.size, ready_at_ms)
        self._users[slot] -= 1
        if not self._users[slot]:
            del self._users[slot]
            self._lock(slot, fcntl.F_UNLCK)

    def _lock(self, slot: int, kind: int) -> bool:
        wanted = _FLOCK.pack(kind, os.SEEK_SET, slot * _MOMENT.size, _MOMENT.size, 0)
        try:
            fcntl.fcntl(self._descriptor, F_OFD_SETLK, wanted)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        self._map.close()
        os.close(self._descriptor)
