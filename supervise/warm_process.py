"""The warm process: it has imported what stages import, and forks each stage from itself, in milliseconds.

Theory. A supervisor starts it once and sends requests over a socket: one JSON object per message, with two descriptors,
the stage's progress pipe and its standard error. The process forks. The child becomes the stage: its own session,
standard streams, environment, arguments and process title, and then the same main() as `bin/STAGE`. The answers are
messages too: `started` with a pidfd of the stage, and `ended` with its wait status and what it used.

Fork needs a process with one thread. So the libraries that start threads when they are imported are told not to
(ONE_THREAD of launch.py), and nothing is computed here.

Compiled loops take as long to load as all other imports. They are loaded in the first quiet moment: a run with little
to do ends before, and the first stages of a long one, which have little to do, need not wait. A stage that is forked
before that loads them itself if it has enough to do (storage/compiled.py).

Three processes depend on each other. When the supervisor dies, its end of the socket closes, and this process ends.
When this process ends, for any reason, the pipe that its stages watch (contract/stage.py) ends, and so do they.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from setproctitle import setproctitle

from contract.command import run
from contract.crawl_folder import open_folder
from contract.stage import ALIVE_VARIABLE, PROGRESS_VARIABLE
from storage.compiled import is_loaded, load_all
from supervise.all_stages import MAINS
from supervise.launch import MESSAGE_MAX_BYTES

DESCRIPTORS_MAX = 2
QUIET_MS = 250  # without a request or an end; stages of a small cycle take less


class Child(NamedTuple):
    number: int  # of the request
    process_id: int
    shared_bytes: int  # resident memory of the warm process when it forked the child


class WarmProcess:
    def __init__(self, connection: socket.socket):
        self._connection = connection
        self._alive_read, self._alive_write = os.pipe()  # the write end is in this process alone
        self._children: dict[int, Child] = {}  # by pidfd
        self._settle()

    def _settle(self) -> None:
        """What is here now stays: a collection in a stage does not touch, and so not copy, these pages."""
        gc.collect()
        gc.freeze()
        self._resident_bytes = resident_bytes()

    def serve(self) -> None:
        """Forks a stage per request, until the supervisor's end of the socket is closed."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        while True:
            events = poll.poll(None if is_loaded() else QUIET_MS)
            if not events:
                load_all()
                self._settle()
            for descriptor, _ in events:
                if descriptor in self._children:
                    poll.unregister(descriptor)
                    self._report_end(descriptor)
                elif (pidfd := self._take_request()) is None:
                    return
                else:
                    poll.register(pidfd, select.POLLIN)

    def _take_request(self) -> int | None:
        """Starts the stage that a message asks for; returns its pidfd, none where the supervisor is gone."""
        message, descriptors, _, _ = socket.recv_fds(self._connection, MESSAGE_MAX_BYTES, DESCRIPTORS_MAX)
        if not message:
            return None
        request = json.loads(message)
        progress, errors = descriptors
        process_id = os.fork()
        if not process_id:
            become_stage(lambda: self._enter(request, progress, errors), request["stage"], progress)
        pidfd = os.pidfd_open(process_id)
        self._children[pidfd] = Child(request["number"], process_id, self._resident_bytes)
        os.close(progress)
        os.close(errors)
        self._send({"number": request["number"], "started": process_id}, [pidfd])
        return pidfd

    def _report_end(self, pidfd: int) -> None:
        child = self._children.pop(pidfd)
        _, status, used = os.wait4(child.process_id, 0)
        os.close(pidfd)
        self._send(
            {
                "number": child.number,
                "ended": os.waitstatus_to_exitcode(status),
                "cpu_s": used.ru_utime + used.ru_stime,
                # Pages that it shares with this process are not its own.
                "memory_peak_bytes": max(0, used.ru_maxrss * 1024 - child.shared_bytes),
                "read_bytes": used.ru_inblock * 512,
                "written_bytes": used.ru_oublock * 512,
            }
        )

    def _send(self, message: dict, descriptors: list[int] | None = None) -> None:
        try:
            socket.send_fds(self._connection, [json.dumps(message).encode()], descriptors or [])
        except OSError:
            pass  # the supervisor is gone, which the next look at the socket shows

    def _enter(self, request: dict, progress: int, errors: int) -> None:
        """In the child: what a process that was started by itself would have."""
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor, target in ((null, 0), (null, 1), (errors, 2)):
            os.dup2(descriptor, target)
        for descriptor in (null, errors, self._alive_write, *self._children):
            os.close(descriptor)
        self._connection.close()
        os.environ.update(request["environment"])
        os.environ |= {ALIVE_VARIABLE: str(self._alive_read), PROGRESS_VARIABLE: str(progress)}
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = [f"stages.{request['stage']}", *request["arguments"]]
        setproctitle(request["title"])
        report(progress, began_ns=time.monotonic_ns())


def report(progress: int, **figures: int) -> None:
    try:
        os.write(progress, json.dumps(figures).encode() + b"\n")
    except OSError:
        pass  # the supervisor is gone


def become_stage(enter: Callable[[], None], stage: str, progress: int) -> None:
    """Runs a stage in the forked child, to its exit code. Does not return."""
    code = 1
    try:
        enter()
        run(MAINS[stage], stage)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            report(progress, private_bytes=private_bytes())
            sys.stderr.flush()
        finally:
            os._exit(code)


def private_bytes() -> int:
    """Memory of this process that it shares with no other."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Arguments: the descriptor of the socket, and the crawl folder, whose suffix list is read for all stages."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(connection.fileno(), False)
    open_folder(Path(sys.argv[2])).keys()
    WarmProcess(connection).serve()


if __name__ == "__main__":
    main()
