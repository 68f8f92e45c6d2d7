"""Child processes: run to their end with their CPU time, or kept running while something else is measured."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from contract.errors import BadConfiguration, TryLater

END_GRACE_S = 10.0
READY_MAX_S = 60.0


class Spent(NamedTuple):
    wall_s: float
    cpu_s: float  # user and system, of the process and the children that it waited for


class Child:
    """A process that is measured; killed when it takes longer than `limit_s`."""

    def __init__(self, command: list, log: Path, stdout: Path | None = None, limit_s: float = 1_800.0):
        self._log = log
        self._command = [str(word) for word in command]
        with open(stdout or os.devnull, "wb") as output, open(log, "wb") as errors:
            self._began = time.perf_counter()
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        self._limit = threading.Timer(limit_s, self._process.kill)
        self._limit.daemon = True
        self._limit.start()

    def wait(self, codes: tuple[int, ...] = (0,)) -> Spent:
        """What it spent, once it has ended; TryLater where its exit code is none of these."""
        _, status, usage = os.wait4(self._process.pid, 0)
        wall_s = time.perf_counter() - self._began
        self._limit.cancel()
        self._process.returncode = os.waitstatus_to_exitcode(status)  # or Popen waits for it again
        if self._process.returncode not in codes:
            raise TryLater(
                f"{' '.join(self._command[:6])} ...: ended with {self._process.returncode}; {last_line(self._log)}"
            )
        return Spent(wall_s, usage.ru_utime + usage.ru_stime)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def has_ended(self) -> bool:
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        self._limit.cancel()


def run_child(
    command: list, log: Path, stdout: Path | None = None, limit_s: float = 1_800.0, codes: tuple[int, ...] = (0,)
) -> Spent:
    child = Child(command, log, stdout, limit_s)
    try:
        return child.wait(codes)
    finally:
        child.kill()


@contextmanager
def running(command: list, log: Path) -> Iterator[subprocess.Popen]:
    """A server that lives as long as the block; its standard output is a pipe."""
    try:
        with open(log, "wb") as errors:
            process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
    except FileNotFoundError:
        raise BadConfiguration(f"{command[0]} is not installed: apt-get install {command[0]}") from None
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def read_listening(process: subprocess.Popen, log: Path) -> str:
    """What a server that prints `listening ADDRESS:PORT` says that it listens on."""
    limit = threading.Timer(READY_MAX_S, process.kill)
    limit.start()
    line = process.stdout.readline().decode()
    limit.cancel()
    if not line.startswith("listening "):
        raise TryLater(f"{' '.join(map(str, process.args[:5]))} ...: did not come up; {last_line(log)}")
    return line.split()[1]


def last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"


@contextmanager
def on_cores(cores: list[int]) -> Iterator[None]:
    """What is started within the block runs on these cores only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
