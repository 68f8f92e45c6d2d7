"""Worker processes that read chunks of page files, each page under limits of time and memory, and that may die of one.

Theory. Workers are forked, so that they have the list and the configuration without being told. A worker gets chunks over a
socket and sends back what they hold. Before each record it writes the record's offset into memory that it shares with us,
and sets a timer of CPU time whose signal kills it: so a page that hangs inside a parser ends its worker like one that
crashes it, and whoever finds the worker dead knows which page it was and why. That page is then poison: a new worker reads the chunk
again, the poison's document excepted. Whatever the number of workers, and whoever dies, the results are the same.
"""

import gc
import mmap
import os
import pickle
import resource
import signal
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

from contract.config import Extractor
from contract.errors import BadInput
from contract.url import NotCanonical
from contract.warc import PageReader
from stages.extractor.chunks import Chunk
from stages.extractor.reading import Links, Reading, Result
from storage.errors import Damaged

QUEUED_CHUNKS = 2  # a worker has: one that it reads, and the next
TIMEOUT, DIED = "timeout", "died"  # what reading a document came to
_OFFSET = struct.Struct("<q")
_NOWHERE = -1

Poison = dict[tuple[str, int], str]  # file and offset of a record -> what reading its document came to


class Worker:
    def __init__(self, limits: Extractor, make_reading: Callable[[], Reading], others: list["Worker"], say: Callable[[str], None]):
        self.chunks: deque[tuple[int, Chunk]] = deque()  # those that it has, the one that it reads first
        self._place = mmap.mmap(-1, _OFFSET.size)  # shared with the child
        self._place[:] = _OFFSET.pack(_NOWHERE)
        self.connection, theirs = Pipe()
        self.process = os.fork()
        if not self.process:
            try:
                for descriptor in (self.connection, *(other.connection for other in others)):
                    descriptor.close()  # else a worker that lives on keeps a dead one's socket open
                serve(theirs, self._place, limits, make_reading())
            except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
                pass  # whoever gave us work is gone
            except BaseException as error:
                say(f"a worker failed: {error!r}")
            finally:
                os._exit(0)
        theirs.close()

    @property
    def offset(self) -> int:
        return _OFFSET.unpack(self._place)[0]

    def give(self, number: int, chunk: Chunk, poison: Poison) -> None:
        self.chunks.append((number, chunk))
        reasons = {offset: reason for (name, offset), reason in poison.items() if name == chunk.name}
        self.connection.send((chunk, reasons))

    def bury(self) -> str:
        """Waits for a worker that has ended, and says of what."""
        self.connection.close()
        _, status = os.waitpid(self.process, 0)
        self._place.close()
        return TIMEOUT if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF else DIED

    def end(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        self.bury()


def serve(connection: Connection, place: mmap.mmap, limits: Extractor, reading: Reading) -> None:
    """The life of a worker: chunks in, results out, until the socket is closed."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # its default is to end the process, also while a parser runs
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit_memory(limits.page_memory_max_bytes)
    gc.freeze()  # what came with the fork is not walked, and so not copied
    readers: dict[str, PageReader] = {}
    while True:
        chunk, poison = connection.recv()
        if chunk.name not in readers:
            readers.clear()  # files come one after another
            readers[chunk.name] = PageReader(chunk.path)
        result = read_chunk(readers[chunk.name], chunk, poison, place, limits.page_max_s, reading)
        connection.send_bytes(pickle.dumps(result, pickle.HIGHEST_PROTOCOL))


def limit_memory(most_bytes: int) -> None:
    """Of its own data, beyond what the process has now; page files, which are mapped, do not count."""
    data_bytes = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = data_bytes + most_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def read_chunk(reader: PageReader, chunk: Chunk, poison: dict[int, str], place: mmap.mmap, page_max_s: float, reading: Reading) -> Result:
    findings, links, skipped, damage = [], Links(), 0, None
    position = chunk.start
    try:
        place[:] = _OFFSET.pack(position)
        signal.setitimer(signal.ITIMER_PROF, page_max_s)
        for record in reader.records(chunk.start, chunk.end):
            try:
                if (finding := reading.take(record, chunk.name, links, poison.get(record.offset, ""))) is not None:
                    findings.append(finding)
            except NotCanonical:
                skipped += 1
            position = record.offset + record.length
            place[:] = _OFFSET.pack(position)
            signal.setitimer(signal.ITIMER_PROF, page_max_s)
    except Damaged as error:
        damage = error.path, error.what, error.offset
    signal.setitimer(signal.ITIMER_PROF, 0)
    place[:] = _OFFSET.pack(_NOWHERE)
    return Result(findings, links, skipped, damage)


class Workers:
    """Reads chunks by several processes; results come in the order of the chunks."""

    def __init__(self, limits: Extractor, make_reading: Callable[[], Reading], say: Callable[[str], None]):
        self._limits = limits
        self._make_reading = make_reading
        self._say = say
        self._poison: Poison = {}
        self._workers: list[Worker] = []

    def read(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, Result]]:
        """The result of each chunk, in their order."""
        for _ in range(self._limits.workers or len(os.sched_getaffinity(0))):
            self._workers.append(self._hire())
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
                        worker.give(number, chunk, self._poison)
            if not under_way:
                return
            if next_number not in ready:
                ready.update(self._wait())
            while next_number in ready:
                yield under_way.pop(next_number), ready.pop(next_number)
                next_number += 1

    def _wait(self) -> list[tuple[int, Result]]:
        """Results that have come, from one worker or more; the dead are replaced."""
        results = []
        for connection in wait([worker.connection for worker in self._workers]):
            worker = next(worker for worker in self._workers if worker.connection is connection)
            try:
                result = pickle.loads(connection.recv_bytes())
            except (EOFError, ConnectionResetError):
                self._replace(worker)
            else:
                results.append((worker.chunks.popleft()[0], result))
        return results

    def _hire(self) -> Worker:
        return Worker(self._limits, self._make_reading, self._workers, self._say)

    def _replace(self, dead: Worker) -> None:
        offset, reason = dead.offset, dead.bury()
        name = dead.chunks[0][1].name
        if offset == _NOWHERE or (name, offset) in self._poison:
            raise BadInput(f"{name}: a worker ended ({reason}) where no document was read, at offset {offset}; this is a fault of ours, "
                           f"or memory ran out")
        self._say(f"{name}: the document at offset {offset} ended its worker ({reason}); it counts as one without links")
        self._poison[name, offset] = reason
        self._workers.remove(dead)
        heir = self._hire()
        self._workers.append(heir)
        for number, chunk in dead.chunks:
            heir.give(number, chunk, self._poison)

    def close(self) -> None:
        while self._workers:
            self._workers.pop().end()
