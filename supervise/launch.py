"""Two ways to start a stage: forked from the warm process, in milliseconds, or as a command of its own, cold.

Both give a Launched: a process of its own session, known by a pidfd, which no other process can take over.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

import trio

from contract.config import Supervisor
from contract.crawl_folder import LOCK_VARIABLE
from contract.stage import ALIVE_VARIABLE, PROGRESS_VARIABLE

COLD_VARIABLE = "COLETOR_COLD"  # set: stages are started cold, for comparisons
MESSAGE_MAX_BYTES = 1 << 16
LINE_MAX_BYTES = 4096
# For the environment of the warm process: OpenBLAS and Arrow's allocator start threads when they are imported, and a
# process with several threads cannot be forked safely.
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


class Ended(NamedTuple):
    """How a stage ended, and what it used."""

    code: int  # negative: the signal that ended it
    cpu_s: float | None = None  # of the stage and its workers
    memory_peak_bytes: int | None = None  # of its largest process, without pages of the warm process
    read_bytes: int | None = None  # from disk
    written_bytes: int | None = None  # to disk
    is_lost: bool = False  # the warm process died: the stage was ended with it, whatever it did


class Work(NamedTuple):
    """What to start."""

    stage: str
    arguments: list[str]
    environment: dict[str, str]
    progress: int  # descriptors for its progress and its standard error
    errors: int

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-P", "-m", f"stages.{self.stage}", *self.arguments]


class Launched:
    def __init__(self, process_id: int, pidfd: int):
        self.process_id = process_id
        self.pidfd = pidfd
        self.result: Ended | None = None
        self._has_ended = trio.Event()

    def end(self, result: Ended) -> None:
        if self.result is None:
            self.result = result
            os.close(self.pidfd)
            self._has_ended.set()

    async def wait(self) -> Ended:
        await self._has_ended.wait()
        return self.result

    def signal(self, kind: int) -> None:
        """Sends a signal, unless the stage has ended."""
        if self.result is None:
            try:
                signal.pidfd_send_signal(self.pidfd, kind)
            except ProcessLookupError:
                pass


class Cold:
    """Starts each stage as a command; the pipe that ends with this process ends the stage too."""

    deaths = 0  # there is no warm process

    def __init__(self, lock: int, nursery: trio.Nursery):
        self._lock = lock
        self._nursery = nursery
        self._alive_read, self._alive_write = os.pipe()

    async def launch(self, work: Work) -> Launched:
        process = subprocess.Popen(
            work.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=work.errors,
            env={
                **os.environ,
                **work.environment,
                LOCK_VARIABLE: str(self._lock),
                ALIVE_VARIABLE: str(self._alive_read),
                PROGRESS_VARIABLE: str(work.progress),
            },
            pass_fds=(self._lock, self._alive_read, work.progress),
            start_new_session=True,
        )
        launched = Launched(process.pid, os.pidfd_open(process.pid))
        self._nursery.start_soon(self._await_end, process, launched)
        return launched

    async def _await_end(self, process: subprocess.Popen, launched: Launched) -> None:
        await trio.lowlevel.wait_readable(launched.pidfd)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        launched.end(
            Ended(
                process.returncode,
                used.ru_utime + used.ru_stime,
                used.ru_maxrss * 1024,
                used.ru_inblock * 512,
                used.ru_oublock * 512,
            )
        )

    def kill(self) -> None:
        """There is no process between this one and its stages."""

    def close(self) -> None:
        os.close(self._alive_write)
        os.close(self._alive_read)


class Request:
    """A stage that the warm process was asked for."""

    def __init__(self):
        self.is_answered = trio.Event()
        self.launched: Launched | None = None  # none also where the warm process died before it answered


class Warm:
    """Has stages forked by the warm process (supervise/warm_process.py), and starts a new one when it has died."""

    def __init__(
        self,
        crawl: Path,
        lock: int,
        nursery: trio.Nursery,
        settings: Supervisor,
        on_line: Callable[[str], None],
        on_death: Callable[[int], None],
    ):
        self._crawl = crawl
        self._lock = lock
        self._nursery = nursery
        self._grace_s = settings.stop_grace_s
        self.hang_s = settings.hang_s
        self._on_line = on_line
        self._on_death = on_death  # gets the exit code
        self.deaths = 0  # of warm processes
        self._process: subprocess.Popen | None = None
        self._connection: socket.socket | None = None
        self._numbers = count(1)
        self._requests: dict[int, Request] = {}  # by their numbers, until the stage has ended

    def start(self) -> None:
        """Starts the warm process, unless it lives. It imports while this process does other things."""
        if self._connection is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "supervise.warm_process", str(theirs.fileno()), str(self._crawl)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, **ONE_THREAD, LOCK_VARIABLE: str(self._lock)},
                pass_fds=(self._lock, theirs.fileno()),
                start_new_session=True,
            )
        ours.setblocking(False)
        self._connection = ours
        errors = trio.lowlevel.FdStream(os.dup(self._process.stderr.fileno()))
        self._process.stderr.close()
        self._nursery.start_soon(read_lines, errors, self._on_line)
        self._nursery.start_soon(self._listen, ours, self._process)

    @property
    def process_id(self) -> int:
        return self._process.pid if self._process else 0

    async def launch(self, work: Work) -> Launched | None:
        """Starts a stage; none where the warm process died before it answered."""
        self.start()
        number, request = next(self._numbers), Request()
        message = {
            "number": number,
            "stage": work.stage,
            "arguments": work.arguments,
            "environment": work.environment,
            "title": " ".join(work.command),
        }
        self._requests[number] = request
        connection = self._connection
        while True:
            try:
                socket.send_fds(connection, [json.dumps(message).encode()], [work.progress, work.errors])
            except BlockingIOError:
                await trio.lowlevel.wait_writable(connection)
                continue
            except OSError:
                pass  # it has just died, which _listen finds out
            break
        with trio.move_on_after(self.hang_s) as waiting:
            await request.is_answered.wait()
        if waiting.cancelled_caught:  # it is stopped, or hangs in an import
            self.kill()
            await request.is_answered.wait()
        return request.launched

    async def _listen(self, connection: socket.socket, process: subprocess.Popen) -> None:
        """Takes the answers of one warm process, until it has ended; then ends its stages."""
        while True:
            await trio.lowlevel.wait_readable(connection)
            try:
                message, descriptors, _, _ = socket.recv_fds(connection, MESSAGE_MAX_BYTES, 1)
            except BlockingIOError:
                continue
            except ConnectionError:
                break
            if not message:
                break
            self._take(json.loads(message), descriptors)
        self._connection = None
        connection.close()
        process.kill()
        requests, self._requests = self._requests, {}
        for request in requests.values():
            request.is_answered.set()
            if request.launched is not None:
                self._nursery.start_soon(self._end_lost, request.launched)
        self.deaths += 1
        self._on_death(process.wait())

    def _take(self, message: dict, descriptors: list[int]) -> None:
        number = message.pop("number")
        request = self._requests[number]
        if "started" in message:
            request.launched = Launched(message["started"], descriptors[0])
            request.is_answered.set()
        else:
            del self._requests[number]
            request.launched.end(Ended(message.pop("ended"), **message))

    async def _end_lost(self, launched: Launched) -> None:
        """Ends a stage whose warm process died; it does so by itself too, because its pipe has ended."""
        launched.signal(signal.SIGTERM)
        with trio.move_on_after(self._grace_s):
            await trio.lowlevel.wait_readable(launched.pidfd)
        launched.signal(signal.SIGKILL)
        await trio.lowlevel.wait_readable(launched.pidfd)
        launched.end(Ended(-signal.SIGTERM, is_lost=True))

    def kill(self) -> None:
        """Ends the warm process; its stages end with it."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Ends the warm process; no stage runs any more."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()


async def read_lines(stream: trio.lowlevel.FdStream, take: Callable[[str], None]) -> None:
    """Calls `take` with each line; a line that is too long is cut, so that memory stays bounded."""
    pending = b""
    async with stream:
        async for piece in stream:
            *lines, pending = (pending + piece).split(b"\n")
            for line in lines:
                take(line[:LINE_MAX_BYTES].decode("utf-8", "replace"))
            pending = pending[:LINE_MAX_BYTES]
    if pending:
        take(pending.decode("utf-8", "replace"))
