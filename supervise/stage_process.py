"""One stage as a child process: its lock, its progress, and the pipe that ends it with the supervisor."""

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable

import psutil
import trio

from contract.crawl_folder import LOCK_VARIABLE
from contract.stage import ALIVE_VARIABLE, OTHERS_PASS_VARIABLE, PROGRESS_VARIABLE
from supervise.crawl_state import CrawlState

STDERR_LINE_MAX_BYTES = 4096
LINES_KEPT = 3  # of standard error, to say why a stage keeps dying
PIPES_GRACE_S = 1.0  # to read the rest of the pipes; a grandchild might hold them open


class Stages:
    """Runs stages of one crawl, one at a time; setting `stopping` ends the one that runs."""

    def __init__(
        self,
        crawl_state: CrawlState,
        lock: int,
        stop_grace_s: float,
        on_progress: Callable[[dict], None],
        on_line: Callable[[str], None],
    ):
        self._crawl = crawl_state.path
        self._lock = lock
        self._grace_s = stop_grace_s
        self._on_progress = on_progress
        self._on_line = on_line
        self._alive_read, self._alive_write = os.pipe()  # the write end dies with this process
        self._process: trio.Process | None = None
        self.figures: dict = {}  # the last progress that the stage reported
        self.last_lines: deque[str] = deque(maxlen=LINES_KEPT)  # of its standard error
        self.stopping = trio.Event()

    async def run(self, stage: str, cycle: int, *, others_pass: bool = False) -> int:
        """Runs a stage; returns its exit code, negative where a signal ended it."""
        self.figures = {}
        self.last_lines.clear()
        progress_read, progress_write = os.pipe()
        environment = {
            **os.environ,
            LOCK_VARIABLE: str(self._lock),
            ALIVE_VARIABLE: str(self._alive_read),
            PROGRESS_VARIABLE: str(progress_write),
            OTHERS_PASS_VARIABLE: "yes" if others_pass else "",
        }
        command = [sys.executable, "-P", "-m", f"stages.{stage}", "--crawl", str(self._crawl), "--cycle", str(cycle)]
        process = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            pass_fds=(self._lock, self._alive_read, progress_write),
            start_new_session=True,
        )
        os.close(progress_write)
        self._process = process
        async with trio.open_nursery() as outer:
            outer.start_soon(self._end_when_stopping, process)
            with trio.move_on_after(float("inf")) as reading:
                async with trio.open_nursery() as readers:
                    readers.start_soon(read_lines, trio.lowlevel.FdStream(progress_read), self._take_progress)
                    readers.start_soon(read_lines, process.stderr, self._take_line)
                    await process.wait()
                    reading.deadline = trio.current_time() + PIPES_GRACE_S
            outer.cancel_scope.cancel()
        self._process = None
        return process.returncode

    def memory_bytes(self) -> int:
        """Resident memory of all processes of the running stage; 0 where none runs."""
        try:
            first = psutil.Process(self._process.pid) if self._process else None
            return (
                sum(process.memory_info().rss for process in [first, *first.children(recursive=True)]) if first else 0
            )
        except psutil.Error:
            return 0

    async def _end_when_stopping(self, process) -> None:
        await self.stopping.wait()
        process.send_signal(signal.SIGTERM)
        with trio.move_on_after(self._grace_s):
            await process.wait()
        if process.returncode is None:
            process.kill()

    def _take_line(self, line: str) -> None:
        self.last_lines.append(line)
        self._on_line(line)

    def _take_progress(self, line: str) -> None:
        try:
            figures = json.loads(line)
        except ValueError:
            return
        if isinstance(figures, dict):
            self.figures = figures
            self._on_progress(figures)


async def read_lines(stream, take: Callable[[str], None]) -> None:
    """Calls `take` with each line; a line that is too long is cut, so that memory stays bounded."""
    pending = b""
    async with stream:
        async for piece in stream:
            *lines, pending = (pending + piece).split(b"\n")
            for line in lines:
                take(line[:STDERR_LINE_MAX_BYTES].decode("utf-8", "replace"))
            pending = pending[:STDERR_LINE_MAX_BYTES]
    if pending:
        take(pending.decode("utf-8", "replace"))
