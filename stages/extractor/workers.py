"""Worker processes that read chunks of page files. Each page has limits of time and memory, and may end its worker.

Theory. Workers are forked, so they have the list and the configuration already. A worker gets chunks over a socket
and sends back what they hold. Before each record it writes the record's offset into memory that it shares with its
parent, and sets a timer of CPU time whose signal kills it. So a page that hangs a parser ends its worker just as a
page that crashes it, and the parent knows which page it was and why the worker ended. That page is then poison: a new
worker reads the chunk again without the poison's document. If even the record does not fit into memory, as one of a
GB, only its head is read.

A worker that was killed from outside (SIGKILL by the kernel's memory killer, SIGTERM by a person) proves nothing
against its page: the chunk is read once more, and only a page over which workers are killed twice is poison. A signal
of a process's own making (SIGSEGV, SIGPROF), or its exit, is proof at once. So the results are the same for any
number of workers, whichever of them die.
"""

import ctypes
import gc
import mmap
import os
import pickle
import resource
import signal
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import NamedTuple

from contract.config import Extractor
from contract.crawl_folder import leave_lock
from contract.errors import ColetorError, TryLater
from contract.trouble import DIED, MEMORY, TIMEOUT
from contract.url import NotCanonical
from contract.warc import REQUEST_BEGIN, PageReader
from stages.extractor.chunks import Chunk
from stages.extractor.reading import Links, Reading, Result
from storage.errors import Damaged

QUEUED_CHUNKS = 2  # per worker: the one that it reads, and the next
PROGRESS_EVERY_S = 0.5  # while no result comes
KILLED = "killed"  # the end of a worker that was killed from outside
_OWN_SIGNALS = frozenset(
    (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS)
)
_FAILED, _OUT_OF_MEMORY = 1, 3  # exit codes of workers
_PR_SET_PDEATHSIG = 1  # prctl(2)
_M_TRIM_THRESHOLD = -1  # mallopt(3)
# Memory of a page's tree is kept for the next tree, not given back to the system: this saves a quarter of parsing time.
TRIM_BYTES = 64 << 20
COLLECT_EVERY_CHUNKS = 32  # some 2,000 pages
_OFFSET = struct.Struct("<q")
_NOWHERE = -1


class Poison(NamedTuple):
    """Why a worker ended over a record. Its document is not read again, and after a second end only its head."""

    reason: str
    is_head_only: bool


NO_POISON = Poison("", False)


class Worker:
    def __init__(
        self, limits: Extractor, make_reading: Callable[[], Reading], others: list["Worker"], say: Callable[[str], None]
    ):
        """Raises OSError where the machine lacks what a worker needs."""
        self.chunks: deque[tuple[int, Chunk]] = deque()  # that it has; it reads the first one
        data_max_bytes = count_data_bytes() + limits.page_memory_max_bytes
        self._shared_offset = mmap.mmap(-1, _OFFSET.size)  # shared with the child
        self._shared_offset[:] = _OFFSET.pack(_NOWHERE)
        self.connection, theirs = Pipe()
        parent = os.getpid()
        self.process = os.fork()
        if not self.process:
            gc.freeze()  # objects of the parent are not collected: not copied, nor ended without their threads
            gc.disable()  # a page makes thousands of objects and no cycles; serve() collects now and then
            code = 0
            try:
                for descriptor in (self.connection, *(other.connection for other in others)):
                    descriptor.close()  # else a worker that lives on keeps a dead one's socket open
                leave_lock()  # else a crawl whose extractor was killed stays locked until its workers are gone too
                set_bounds(parent, data_max_bytes)
                serve(theirs, self._shared_offset, limits.page_max_s, make_reading())
            except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
                pass  # the parent is gone
            except MemoryError:
                code = _OUT_OF_MEMORY
            except BaseException as error:
                code = _FAILED
                say(f"a worker failed: {error!r}")
            finally:
                os._exit(code)
        theirs.close()

    @property
    def offset(self) -> int:
        return _OFFSET.unpack(self._shared_offset)[0]

    def give(self, number: int, chunk: Chunk, poison: dict[int, Poison]) -> None:
        self.chunks.append((number, chunk))
        try:
            self.connection.send((chunk, poison))
        except OSError:
            pass  # it is dead, which _wait() finds out

    def bury(self) -> tuple[str, int]:
        """Waits for a worker that has ended. Returns why it ended, and its exit code, negative after a signal."""
        self.connection.close()
        os.kill(self.process, signal.SIGKILL)  # changes nothing if it is dead already
        code = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        self._shared_offset.close()
        if code in (-signal.SIGPROF, _OUT_OF_MEMORY):
            return MEMORY if code == _OUT_OF_MEMORY else TIMEOUT, code
        return DIED if code >= 0 or -code in _OWN_SIGNALS else KILLED, code


def count_data_bytes() -> int:
    """The bytes of this process that RLIMIT_DATA counts, now."""
    return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()


def set_bounds(parent: int, data_max_bytes: int) -> None:
    """Sets signals and limits of a worker. `data_max_bytes` includes what came with the fork, but no mapped files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # its default is to end the process, also while a parser runs
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # An orphan ends at once. The signal follows the thread that forked, which is the main one.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    if os.getppid() != parent:
        raise EOFError
    ctypes.CDLL(None).mallopt(_M_TRIM_THRESHOLD, TRIM_BYTES)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(
        resource.RLIMIT_DATA, (data_max_bytes if hard == resource.RLIM_INFINITY else min(data_max_bytes, hard), hard)
    )


def serve(connection: Connection, shared_offset: mmap.mmap, page_max_s: float, reading: Reading) -> None:
    """The life of a worker: chunks in, results out, until the socket is closed."""
    readers: dict[str, PageReader] = {}
    for number in count(1):
        chunk, poison = connection.recv()
        if number % COLLECT_EVERY_CHUNKS == 0:
            gc.collect()
        try:
            if chunk.name not in readers:
                readers.clear()  # files come one after another
                readers[chunk.name] = PageReader(chunk.path)
            result, heaviest = read_chunk(readers[chunk.name], chunk, poison, shared_offset, page_max_s, reading)
            shared_offset[:] = _OFFSET.pack(heaviest)  # the record to blame if the result does not fit into memory
        except Damaged as error:  # it was whole when it was cut
            result = Result([], Links(), 0, (error.path, error.what, error.offset))
        packed = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
        shared_offset[:] = _OFFSET.pack(_NOWHERE)
        connection.send_bytes(packed)


def read_chunk(
    reader: PageReader,
    chunk: Chunk,
    poison: dict[int, Poison],
    shared_offset: mmap.mmap,
    page_max_s: float,
    reading: Reading,
) -> tuple[Result, int]:
    """What the chunk holds, and the offset of the record with the most links."""
    findings, links, skipped, damage = [], Links(), 0, None
    position, heaviest, most = chunk.start, _NOWHERE, 0
    try:
        while (position := reader.pass_extensions(position)) < chunk.end:
            signal.setitimer(
                signal.ITIMER_PROF, page_max_s
            )  # before the offset, so that the old timer blames no new record
            shared_offset[:] = _OFFSET.pack(position)
            reason, is_head_only = poison.get(position, NO_POISON)
            try:
                if is_head_only:
                    record = reader.head_at(position)
                else:
                    content, length = reader.content_at(position)
                    if content.startswith(REQUEST_BEGIN):
                        position += length
                        continue
                    record = reader.decode(content, position, length)
            except MemoryError:
                reason, is_head_only = MEMORY, True
                record = reader.head_at(position)
            try:
                if (finding := reading.take(record, chunk.name, links, reason, is_head_only)) is not None:
                    findings.append(finding)
            except NotCanonical:
                skipped += 1
            else:
                if finding is not None and finding.page is not None and finding.page.links > most:
                    heaviest, most = position, finding.page.links
            position += record.length
    except Damaged as error:
        damage = error.path, error.what, error.offset
    signal.setitimer(signal.ITIMER_PROF, 0)
    return Result(findings, links, skipped, damage), heaviest


class Workers:
    """Reads chunks by several processes; results come in the order of the chunks."""

    def __init__(
        self,
        limits: Extractor,
        make_reading: Callable[[], Reading],
        say: Callable[[str], None],
        on_wait: Callable[[], None] = lambda: None,
    ):
        self._limits = limits
        self._make_reading = make_reading
        self._say = say
        self._on_wait = on_wait  # is called now and then while no result comes
        self._poison: dict[int, dict[int, Poison]] = {}  # by the number of a chunk and the offset of a record
        self._killed: set[tuple[int, int]] = set()  # chunks and offsets at which workers were killed from outside
        self._workers: list[Worker] = []

    def read(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, Result]]:
        """The result of each chunk, in their order."""
        for _ in range(self._limits.workers or len(os.sched_getaffinity(0))):
            self._hire()
        numbered = enumerate(chunks)
        under_way: dict[int, Chunk] = {}
        ready: dict[int, Result] = {}
        next_number = 0
        while True:
            for worker in self._workers:
                while len(worker.chunks) < QUEUED_CHUNKS and (found := next(numbered, None)) is not None:
                    number, chunk = found
                    under_way[number] = chunk
                    if chunk.damage:
                        ready[number] = Result([], Links(), 0, chunk.damage)
                    else:
                        worker.give(number, chunk, {})
            if not under_way:
                return
            if next_number not in ready:
                ready.update(self._wait())
            while next_number in ready:
                yield under_way.pop(next_number), ready.pop(next_number)
                next_number += 1

    def _wait(self) -> list[tuple[int, Result]]:
        """Waits for results of at least one worker; replaces dead workers."""
        results = []
        by_connection = {worker.connection: worker for worker in self._workers}
        while not (speaking := wait(by_connection, PROGRESS_EVERY_S)):
            self._on_wait()
        for connection in speaking:
            worker = by_connection[connection]
            try:
                result = pickle.loads(connection.recv_bytes())
            except (EOFError, OSError):  # the second where it died in the middle of a result
                self._replace(worker)
            else:
                number, _ = worker.chunks.popleft()
                self._poison.pop(number, None)
                results.append((number, result))
        return results

    def _hire(self) -> Worker:
        try:
            self._workers.append(Worker(self._limits, self._make_reading, self._workers, self._say))
        except OSError as error:
            file = f"{error.filename}: " if error.filename else ""
            raise TryLater(
                f"cannot start worker {len(self._workers) + 1}: {file}{error.strerror}; mend that, or set [extractor]"
                f" workers lower"
            ) from None
        return self._workers[-1]

    def _replace(self, dead: Worker) -> None:
        self._workers.remove(dead)
        offset, (end, code) = dead.offset, dead.bury()
        if not dead.chunks:
            return  # there are no more chunks: an idle worker would have got the next
        self._blame(*dead.chunks[0], offset, end, code)
        heir = self._hire()
        for number, chunk in dead.chunks:
            heir.give(number, chunk, self._poison.get(number, {}))

    def _blame(self, number: int, chunk: Chunk, offset: int, end: str, code: int) -> None:
        """Decides what is not read again after a worker ended over a chunk."""
        at = f"the record at offset {offset}" if offset != _NOWHERE else f"the chunk at offset {chunk.start}"
        where = f"{chunk.name}: {at}"
        if end == KILLED and (number, offset) not in self._killed:
            self._killed.add((number, offset))
            self._say(f"{where}: its worker was killed; it is read once more")
            return
        known = self._poison.setdefault(number, {})
        if offset == _NOWHERE or (offset in known and known[offset].is_head_only):
            if end == KILLED:
                raise TryLater(
                    f"{where}: its worker was killed twice; if memory ran out, set [extractor] workers lower"
                )
            limit = "page_max_s" if end == TIMEOUT else "page_memory_max_bytes"
            raise ColetorError(
                f"{where} ended its worker ({end}, exit code {code}) where no document was read: a defect, or"
                f" [extractor] {limit} is too low"
            )
        known[offset] = Poison(DIED if end == KILLED else end, offset in known)
        what = "nothing but its head is read" if known[offset].is_head_only else "its document is not read"
        self._say(f"{where} ended its worker ({end}, exit code {code}); {what}")

    def close(self) -> None:
        while self._workers:
            self._workers.pop().bury()
