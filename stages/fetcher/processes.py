"""Several fetcher processes that divide one list by host; they keep politeness between them through `slots`.

The first process forks the others. Each gets its part of the list and of the budgets, and writes page files with
numbers of its own. It reports progress and result through a pipe, one JSON object per line. A signal to the first
process stops all of them in order. When the first process dies, another pipe ends, and so do the others.
"""

import json
import os
import selectors
import signal
import threading
import traceback
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import xxhash

from contract import names
from contract.command import run
from contract.config import Fetcher
from contract.errors import EX_CONFIG, EX_DATAERR, EX_TEMPFAIL, BadConfiguration, BadInput, ColetorError, TryLater
from contract.pause import ADDRESS
from contract.stage import PROGRESS_VARIABLE, Progress
from contract.url import host_of, server_of
from stages.fetcher.addresses import Gate
from stages.fetcher.download import download
from stages.fetcher.fetch_task import FetchTask, Part, Result
from stages.fetcher.resolver import Resolver
from stages.fetcher.resume import read_history, remove_asides
from stages.fetcher.slots import FileSlots
from stages.fetcher.stopping import say
from stages.fetcher.suspects import Suspects, forget_runs, key_of, read_suspects
from storage.publish import ASIDE

SHARED_BUDGETS = (
    "transfers_max",
    "connections_max",
    "bandwidth_max_bytes_per_s",
    "dns_queries_max",
    "bodies_memory_max_bytes",
)
PIECE_BYTES = 1 << 16
URLS_NAMED_MAX = 3


class Interrupted(TryLater):
    """Somebody ended the work."""


class Died(ColetorError):
    """A signal ended a process: the supervisor counts that as a death of the stage."""


class Child(NamedTuple):
    number: int
    process_id: int
    reports: int  # the descriptor that its lines come from


def fetch(task: FetchTask) -> Result:
    """Fetches what is left of the list, with `processes` processes."""
    suspects = read_suspects(task.folder)
    if suspects.keys:
        return fetch_carefully(task, suspects)
    if task.config.processes == 1:
        return download(task, suspects)
    result = Processes(task).run(suspects)
    remove_asides(task.folder)
    return result


def fetch_carefully(task: FetchTask, suspects: Suspects) -> Result:
    """The same after a death: a child process asks the suspects last, so that the first process survives."""
    while True:
        try:
            Processes(replace(task, urls=suspects.without(task.urls))).run(suspects)
            return Processes(task).run_one(read_suspects(task.folder, suspects.attempt))
        except Interrupted:
            raise
        except ColetorError:
            before, suspects = suspects, read_suspects(task.folder, suspects.attempt)
            if suspects.deaths == before.deaths:
                raise
            if suspects.is_hopeless:
                say_hopeless(task.urls, suspects)
                raise
            say("a fetcher process died: what it had in flight is asked last, one at a time")


def say_hopeless(urls: list[str], suspects: Suspects) -> None:
    named = [url for url in urls if suspects.likely & {key_of(url), key_of(server_of(url))}][:URLS_NAMED_MAX]
    if named:
        say(
            f"the fetcher died {suspects.fruitless} times in a row, and no other page passed in between to show that "
            f"the machine is not the cause. It was asking for {' or '.join(named)}; "
            "[scope] reject_surts leaves a URL out"
        )


def share_of(config: Fetcher, number: int, parts_count: int) -> Fetcher:
    """One part of the budgets that hold for all parts together; the first ones get the remainder."""
    parts = {}
    for name in SHARED_BUDGETS:
        whole, rest = divmod(getattr(config, name), parts_count)
        parts[name] = max(1, whole + (number < rest)) if getattr(config, name) else 0
    return replace(config, **parts)


def settings_among(config: Fetcher, fetchers: int) -> Fetcher:
    """The settings of one of several fetchers of a crawl: its share of the budgets, and pauses per address.

    Fetchers know each other's requests by the address only, so among them the delay always holds there.
    """
    if fetchers == 1:
        return config
    scope = (*config.delay_scope, *({ADDRESS} - set(config.delay_scope)))
    return replace(share_of(config, fetchers - 1, fetchers), delay_scope=scope)  # no fetcher gets the remainder


def part_of(server: str, processes: int) -> int:
    """Which process asks a server; the same one for all servers of a host."""
    return xxhash.xxh3_64_intdigest(host_of(server).encode()) % processes


class Processes:
    def __init__(self, task: FetchTask):
        self._task = task
        self._processes = task.config.processes
        self._slots_path = task.slots.path or task.folder / f"{ASIDE}slots"
        self._first_number = read_history(task.folder).next_number  # and torn ends are cut, before a process writes
        self._alive_read, self._alive_write = os.pipe()
        self._progress = Progress(names.FETCHER)
        self._figures: dict[int, dict] = {}
        self._results: dict[int, Result] = {}
        self._signals = 0
        # Errors of the configuration are reported once, here.
        Resolver(task.config, Gate(task.config.allow_private_addresses))

    def run(self, suspects: Suspects) -> Result:
        """Divides the list among the processes."""
        parts = range(self._processes)
        return self._run([lambda number=number: self._download_part(number, suspects) for number in parts], suspects)

    def run_one(self, suspects: Suspects) -> Result:
        """One process fetches all that is left, suspects last."""
        return self._run([lambda: download(self._with_own_slots(), suspects)], suspects)

    def _with_own_slots(self) -> FetchTask:
        """For a child: the locks of a file that it opened itself end with it."""
        return replace(self._task, slots=FileSlots(self._slots_path))

    def _run(self, works: list[Callable[[], Result]], suspects: Suspects) -> Result:
        children = [self._fork(number, work) for number, work in enumerate(works)]
        before = {
            kind: signal.signal(kind, lambda *_: self._interrupt(children))
            for kind in (signal.SIGTERM, signal.SIGINT)
            if signal.getsignal(kind) != signal.SIG_IGN
        }
        try:
            self._listen(children)
            codes = [os.waitstatus_to_exitcode(os.waitpid(child.process_id, 0)[1]) for child in children]
        finally:
            os.close(self._alive_write)  # a process that still works ends now
            os.close(self._alive_read)
            for kind, handler in before.items():
                signal.signal(kind, handler)
        if self._signals:
            forget_runs(self._task.folder, suspects)
            raise Interrupted("interrupted: run it again to resume")
        self._judge(codes)
        results = [self._results[number] for number in sorted(self._results)]
        return Result(
            add_up(result.counts for result in results),
            [pair for result in results for pair in result.not_reached],
            add_up(result.errors for result in results),
        )

    def _judge(self, codes: list[int]) -> None:
        if EX_DATAERR in codes:
            raise BadInput("a fetcher process found damage (see above)")
        if EX_CONFIG in codes:
            raise BadConfiguration("a fetcher process rejects the configuration (see above)")
        if 1 in codes:
            raise ColetorError("a defect in a fetcher process (see above)")
        if killed := [code for code in codes if code < 0]:
            raise Died(f"a fetcher process was killed by signal {-min(killed)}")
        if any(codes):
            raise TryLater("a fetcher process could not continue (see above): run it again to resume")

    def _interrupt(self, children: list[Child]) -> None:
        """The first signal ends all in order, the second at once, even a process that is stopped."""
        self._signals += 1
        self._stop(children, signal.SIGTERM if self._signals == 1 else signal.SIGKILL)

    def _stop(self, children: list[Child], kind: int) -> None:
        for child in children:
            try:
                os.kill(child.process_id, kind)
            except ProcessLookupError:
                pass

    def _listen(self, children: list[Child]) -> None:
        """Takes the reports of the processes until all have ended; where one fails, the others are stopped."""
        pending = {child.number: b"" for child in children}
        with selectors.DefaultSelector() as selector:
            for child in children:
                selector.register(child.reports, selectors.EVENT_READ, child)
            while selector.get_map():
                for key, _ in selector.select():
                    child = key.data
                    piece = os.read(child.reports, PIECE_BYTES)
                    *lines, pending[child.number] = (pending[child.number] + piece).split(b"\n")
                    for line in lines:
                        self._take(child.number, json.loads(line))
                    if not piece:
                        selector.unregister(child.reports)
                        os.close(child.reports)
                        if child.number not in self._results and not self._signals:
                            self._stop(children, signal.SIGTERM)

    def _take(self, number: int, report: dict) -> None:
        if "counts" in report:
            not_reached = [tuple(pair) for pair in report["not_reached"]]
            self._results[number] = Result(report["counts"], not_reached, report["errors"])
        else:
            self._figures[number] = report
            if self._progress.is_due():
                self._progress.report(**join_figures(list(self._figures.values())))

    def _fork(self, number: int, work: Callable[[], Result]) -> Child:
        reports, report_to = os.pipe()
        process_id = os.fork()
        if process_id:
            os.close(report_to)
            return Child(number, process_id, reports)
        os.close(reports)
        os.close(self._alive_write)
        try:
            run(lambda: self._work_quietly(work, report_to), names.FETCHER)
        except SystemExit as ended:
            os._exit(ended.code)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def _work_quietly(self, work: Callable[[], Result], report_to: int) -> int:
        try:
            self._work(work, report_to)
        except TryLater:  # the first process reports it once for all
            return EX_TEMPFAIL
        return 0

    def _work(self, work: Callable[[], Result], report_to: int) -> None:
        """The life of one child process."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C reaches us through the first process
        threading.Thread(target=self._end_with_parent, daemon=True).start()
        os.environ[PROGRESS_VARIABLE] = str(report_to)
        result = work()
        with open(report_to, "wb") as file:
            file.write(json.dumps(result._asdict()).encode() + b"\n")

    def _download_part(self, number: int, suspects: Suspects) -> Result:
        servers = {
            server: part_of(server, self._processes) == number for server in {server_of(url) for url in self._task.urls}
        }
        return download(
            replace(
                self._with_own_slots(),
                urls=[url for url in self._task.urls if servers[server_of(url)]],
                config=share_of(self._task.config, number, self._processes),
                part=Part(
                    number,
                    self._processes,
                    self._first_number,
                    lambda server: part_of(server, self._processes) == number,
                    suspects.attempt,
                    suspects.next_run + number,
                ),
            )
        )

    def _end_with_parent(self) -> None:
        os.read(self._alive_read, 1)
        os.kill(os.getpid(), signal.SIGTERM)


def join_figures(reports: list[dict]) -> dict:
    """The progress of all processes as one: the next request is the earliest, the time that is left the longest."""
    total = add_up(reports)
    for name, choose in (("outage_s", max), ("left_s", max), ("next_ms", min)):
        # A process that has nothing left to ask says nothing about the next request.
        known = [figures.get(name, 0) for figures in reports if name != "next_ms" or figures.get("hosts", 0)]
        total[name] = choose(known, default=0)
    return total


def add_up(reports: Iterable[dict]) -> dict:
    """The figures of all processes together."""
    total: dict = {}
    for figures in reports:
        for name, value in figures.items():
            if isinstance(value, dict):
                total[name] = add_up([total.get(name, {}), value])
            elif isinstance(value, int):
                total[name] = total.get(name, 0) + value
    return total
