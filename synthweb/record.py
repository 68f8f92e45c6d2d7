"""What a served web leaves in its state folder: hosts, ready.json and the record of every request."""

import json
import os
import time
from collections import Counter, defaultdict
from pathlib import Path

from synthweb.changing_web import ChangingWeb
from synthweb.web import Web
from synthweb.wire import Request


class AccessRecord:
    """`access.jsonl`: one line a request, flushed at once, so that a judge reads it while the web is served.

    A request starts when its head is read whole and ends when its answer is ready to be sent: a client that
    has read an answer finds the line, and its next request never seems to overlap the last. Both by the
    monotonic clock, which is one for all processes of a machine.
    """

    def __init__(self, folder: Path) -> None:
        self._file = open(folder / "access.jsonl", "a", encoding="utf-8")

    def write(self, started: tuple[float, float], address: str, request: Request | None, status: int) -> None:
        """Without a request, what was sent could not be read as one."""
        started_ms, started_wall_ms = started
        line = {
            "started_ms": started_ms,
            "ended_ms": monotonic_ms(),
            "started_wall_ms": started_wall_ms,
            "address": address,
            "host": request.host if request else "",
            "target": request.target if request else "",
            "status": status,
            "user_agent": request.user_agent if request else "",
        }
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def count_asked(folder: Path) -> Counter[tuple[str, str]]:
    """How often each URL was asked by the record: a web that is started again goes on counting."""
    asked: Counter[tuple[str, str]] = Counter()
    path = folder / "access.jsonl"
    if path.exists():
        for text in path.read_text("utf-8").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue  # cut off when the last one was killed
            asked[line["host"], line["target"]] += 1
    return asked


def monotonic_ms() -> float:
    return time.monotonic() * 1000


def write_hosts(hosts: dict[str, str], folder: Path) -> None:
    """`hosts`, in the form of hosts(5): an address, then its names."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, address in hosts.items():
        names[address].append(name)
    replace_text(folder / "hosts", "".join(f"{address} {' '.join(names[address])}\n" for address in sorted(names)))


def write_ready(web: Web | ChangingWeb, folder: Path) -> None:
    """`ready.json` is there exactly while the web listens."""
    ready = {"port": web.port, "pid": os.getpid(), "servers": len(web.servers), "seeds": web.seeds()}
    replace_text(folder / "ready.json", json.dumps(ready) + "\n")


def remove_ready(folder: Path) -> None:
    (folder / "ready.json").unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    aside = path.with_name(path.name + ".new")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)
