"""A standalone list: fetched without a crawl folder, one line per URL on standard output, a summary at the end."""

import fcntl
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from contract import names
from contract.command import load_configuration
from contract.config import Config, Fetcher, require_contact
from contract.config_file import parse_toml
from contract.errors import BadInput, TryLater, Usage
from contract.stage import expect_ours
from contract.url import Keys
from stages.fetcher.fetch_task import FetchTask, Result
from stages.fetcher.pre_refusals import refuse_before
from stages.fetcher.processes import fetch
from stages.fetcher.reasons import FORBIDDEN_ADDRESS
from stages.fetcher.slots import MemorySlots
from stages.fetcher.stopping import say
from stages.fetcher.url_list import read_list, read_revisits
from storage.publish import ASIDE, FORMAT, describe, encode_json, make_folder, publishing, put, read_json

EVERY_S = 0.5  # lines for a program are written together
INTERRUPTED_S = 1.0  # for lines that are still to be written
NO_LIMIT_S = 365 * 86_400.0  # no other stage waits for a standalone list, so it may take its time
BEGUN_WITH = f"{ASIDE}list"  # names the list that an unfinished folder belongs to


def fetch_standalone(arguments) -> int:
    if arguments.out is None:
        raise Usage("--out DIR: name the folder for the pages of your list")
    config = load_configuration(arguments)
    expect_ours(arguments.out, [names.PAGES])
    if arguments.list.exists() and not arguments.list.is_file():
        raise Usage(f"{arguments.list}: expected a file, which a resumed run can read again; save your list to one")
    urls = read_list(arguments.list)
    if not urls:
        raise BadInput(f"{arguments.list}: expected URLs, one per line, such as https://example.org/; found none")
    require_contact(config.fetcher)
    make_folder(arguments.out)
    lock = hold_folder(arguments.out)
    try:
        bind_to_list(arguments.out, arguments.list)
        fetch_into(arguments, config, urls)
    finally:
        os.close(lock)
    return 0


def fetch_into(arguments, config: Config, urls: list[str]) -> None:
    keys, lines, limited = Keys(0), Lines(config.fetcher.processes > 1), limit_time(config.fetcher, arguments)
    task = FetchTask(
        arguments.out,
        urls,
        {},
        limited,
        refuse_before(urls, config.scope, keys),
        arguments.list.name,
        MemorySlots(),
        keys.domain,
        lines.print,
        read_revisits(arguments.list),
        on_end=lines.close,
    )
    try:
        with publishing(arguments.out, resume=True) as manifest:
            result = fetch(task)
            for url, reason in result.not_reached:
                lines.print(url, f"not_reached:{reason}" if reason else "not_reached", 0, 0)
            manifest.update(
                {
                    "stage": names.FETCHER,
                    "inputs": {arguments.list.name: describe(arguments.list)},
                    "config_digest": config.digest(),
                    "counts": result.counts,
                }
            )
    finally:
        lines.close()
    for sentence in sum_up(result, limited, arguments.out):
        say(sentence)


def limit_time(config: Fetcher, arguments) -> Fetcher:
    """`cycle_max_s` limits a standalone list only if it was set."""
    is_set = any(text.strip().startswith("fetcher.cycle_max_s") for text in arguments.set)
    if path := arguments.config:
        is_set |= "cycle_max_s" in parse_toml(path.read_bytes(), path).get("fetcher", {})
    return config if is_set else replace(config, cycle_max_s=NO_LIMIT_S)


def bind_to_list(folder: Path, path: Path) -> None:
    """Usage where the unfinished folder was begun with another list, which could then not be resumed."""
    note, found = folder / BEGUN_WITH, describe(path)
    if not note.exists():
        put(note, encode_json({"format": FORMAT, "list": path.name, **found}))
        return
    begun = read_json(note)
    if begun.get("xxh3") != found["xxh3"]:
        raise Usage(
            f"{folder} was begun with another list, or {path} has changed since (begun with {begun.get('list')!r}, "
            f"{begun.get('bytes')} bytes; {path.name!r} has {found['bytes']}): name another folder, or remove it"
        )


def sum_up(result: Result, config: Fetcher, folder: Path) -> Iterator[str]:
    """The result of the list, in sentences."""
    counts = result.counts
    yield (
        f"{counts['listed']:,} listed: {counts['answered']:,} answered, {counts['failed']:,} failed, "
        f"{counts['refused']:,} refused, {counts['not_reached']:,} not reached; "
        f"pages in {folder / names.PAGES} (bin/show prints them)"
    )
    if late := sum(not reason for _, reason in result.not_reached):
        yield (
            f"{late:,} were not reached in time (fetcher.cycle_max_s = {config.cycle_max_s:g}), "
            "or their server was left alone after failures"
        )
    if result.errors.get(FORBIDDEN_ADDRESS) and not config.allow_private_addresses:
        yield (
            "addresses of this machine and of private networks are asked only with "
            "--set fetcher.allow_private_addresses=true"
        )


def hold_folder(folder: Path) -> int:
    """The descriptor that keeps a second run out of the folder; TryLater where another run holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise TryLater(f"{folder}: another run writes here; try again when it has ended") from None
    return descriptor


class Lines:
    """One line per URL on standard output, written by a thread: a slow reader delays no transfer."""

    def __init__(self, is_shared: bool):
        self._pending: list[str] = []
        self._handed_over_at_s = 0.0
        is_seen = sys.stdout is not None and sys.stdout.isatty()
        self._every_s = 0.0 if is_shared or is_seen else EVERY_S  # lines of several processes must not mix
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._failure: OSError | None = None
        self._writer: threading.Thread | None = None

    def print(self, url: str, what: str, size_bytes: int, total_ms: int) -> None:
        if self._failure is not None:
            raise self._failure
        self._pending.append(f"{what} {size_bytes} {total_ms} {url}\n")
        now_s = time.monotonic()
        if now_s - self._handed_over_at_s >= self._every_s:
            self._handed_over_at_s = now_s
            self._hand_over()

    def _hand_over(self) -> None:
        if self._writer is None:
            self._writer = threading.Thread(target=self._write, daemon=True)
            self._writer.start()
        self._waiting.put("".join(self._pending))
        self._pending = []

    def close(self, is_interrupted: bool = False) -> None:
        """Waits until all is written, as long as a reader reads; but not for long after an interrupt."""
        if self._pending:
            self._hand_over()
        if self._writer is not None:
            self._waiting.put(None)
            self._writer.join(INTERRUPTED_S if is_interrupted else None)
            self._writer = None
        if self._failure is not None:
            raise self._failure

    def _write(self) -> None:
        try:
            while (text := self._waiting.get()) is not None:
                if sys.stdout is not None:
                    sys.stdout.write(text)
                    sys.stdout.flush()
        except OSError as error:
            self._failure = error
