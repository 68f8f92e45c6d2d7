"""Several fetcher processes at work on one list, which they divide by host; politeness between them goes through `slots`.

Each is forked off with its part of the list and of the budgets, writes page files of its own numbers, and tells its
progress and result through a pipe, one JSON object a line. A signal to the first process stops all in order; when it
dies, so do the others, whose other pipe then ends.
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
from contract.stage import PROGRESS_VARIABLE, Progress
from contract.url import host_of, server_of
from stages.fetcher.addresses import Gate
from stages.fetcher.download import download
from stages.fetcher.fetch_task import Job, Part, Result
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


class Member(NamedTuple):
    number: int
    process_id: int
    told: int  # the descriptor that its lines come from


def fetch(job: Job) -> Result:
    """Fetches what is left of the list with as many processes as the configuration says."""
    suspects = read_suspects(job.folder)
    if suspects.keys:
        return fetch_carefully(job, suspects)
    if job.config.processes == 1:
        return download(job, suspects)
    result = Team(job).run(suspects)
    remove_asides(job.folder)
    return result


def fetch_carefully(job: Job, suspects: Suspects) -> Result:
    """The same after a death: suspects are asked last, by one process, and the first process outlives what kills it."""
    while True:
        try:
            Team(replace(job, urls=suspects.without(job.urls))).run(suspects)
            return Team(job).run_one(read_suspects(job.folder, suspects.attempt))
        except Interrupted:
            raise
        except ColetorError:
            before, suspects = suspects, read_suspects(job.folder, suspects.attempt)
            if suspects.deaths == before.deaths:
                raise
            if suspects.is_hopeless:
                say_hopeless(job.urls, suspects)
                raise
            say("a fetcher process died: what it had in flight is asked last, one at a time")


def say_hopeless(urls: list[str], suspects: Suspects) -> None:
    named = [url for url in urls if suspects.likely & {key_of(url), key_of(server_of(url))}][:URLS_NAMED_MAX]
    if named:
        say(
            f"the fetcher died {suspects.fruitless} times in a row, and no other page passed in between to show that the "
            f"machine is not the cause. It was asking for {' or '.join(named)}; [scope] reject_surts leaves a URL out"
        )


def share_of(config: Fetcher, number: int) -> Fetcher:
    """One process's part of the budgets that hold for all together; what cannot be divided goes to the first ones."""
    parts = {}
    for name in SHARED_BUDGETS:
        whole, rest = divmod(getattr(config, name), config.processes)
        parts[name] = max(1, whole + (number < rest)) if getattr(config, name) else 0
    return replace(config, **parts)


def part_of(server: str, processes: int) -> int:
    """Which process asks a server: all servers of a host are asked by the same one."""
    return xxhash.xxh3_64_intdigest(host_of(server).encode()) % processes


class Team:
    def __init__(self, job: Job):
        self._job = job
        self._processes = job.config.processes
        self._slots_path = job.slots.path or job.folder / f"{ASIDE}slots"
        self._first_number = read_history(job.folder).next_number  # and torn ends are cut, before anybody writes
        self._alive_read, self._alive_write = os.pipe()
        self._progress = Progress(names.FETCHER)
        self._figures: dict[int, dict] = {}
        self._results: dict[int, Result] = {}
        self._signals = 0
        Resolver(
            job.config, Gate(job.config.allow_private_addresses)
        )  # what is wrong with the configuration is told once, here

    def run(self, suspects: Suspects) -> Result:
        """Divides the list among the processes."""
        parts = range(self._processes)
        return self._run([lambda number=number: self._download_part(number, suspects) for number in parts], suspects)

    def run_one(self, suspects: Suspects) -> Result:
        """One process does all that is left, suspects last."""
        return self._run([lambda: download(self._job, suspects)], suspects)

    def _run(self, works: list[Callable[[], Result]], suspects: Suspects) -> Result:
        members = [self._fork(number, work) for number, work in enumerate(works)]
        before = {
            kind: signal.signal(kind, lambda *_: self._interrupt(members))
            for kind in (signal.SIGTERM, signal.SIGINT)
            if signal.getsignal(kind) != signal.SIG_IGN
        }
        try:
            self._listen(members)
            codes = [os.waitstatus_to_exitcode(os.waitpid(member.process_id, 0)[1]) for member in members]
        finally:
            os.close(self._alive_write)  # whoever is still at work ends now
            os.close(self._alive_read)
            for kind, handler in before.items():
                signal.signal(kind, handler)
        if self._signals:
            forget_runs(self._job.folder, suspects)
            raise Interrupted("interrupted: run it again to go on")
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
            raise BadConfiguration("a fetcher process does not take the configuration (see above)")
        if 1 in codes:
            raise ColetorError("a defect in a fetcher process (see above)")
        if killed := [code for code in codes if code < 0]:
            raise Died(f"a fetcher process was killed by signal {-min(killed)}")
        if any(codes):
            raise TryLater("a fetcher process could not go on (see above): run it again to go on")

    def _interrupt(self, members: list[Member]) -> None:
        """The first signal ends all in order, the second at once, also one that is stopped."""
        self._signals += 1
        self._stop(members, signal.SIGTERM if self._signals == 1 else signal.SIGKILL)

    def _stop(self, members: list[Member], kind: int) -> None:
        for member in members:
            try:
                os.kill(member.process_id, kind)
            except ProcessLookupError:
                pass

    def _listen(self, members: list[Member]) -> None:
        """Takes what the processes tell until all have ended; where one fails, the others are stopped."""
        pending = {member.number: b"" for member in members}
        with selectors.DefaultSelector() as selector:
            for member in members:
                selector.register(member.told, selectors.EVENT_READ, member)
            while selector.get_map():
                for key, _ in selector.select():
                    member = key.data
                    piece = os.read(member.told, PIECE_BYTES)
                    *lines, pending[member.number] = (pending[member.number] + piece).split(b"\n")
                    for line in lines:
                        self._take(member.number, json.loads(line))
                    if not piece:
                        selector.unregister(member.told)
                        os.close(member.told)
                        if member.number not in self._results and not self._signals:
                            self._stop(members, signal.SIGTERM)

    def _take(self, number: int, told: dict) -> None:
        if "counts" in told:
            self._results[number] = Result(
                told["counts"], [tuple(pair) for pair in told["not_reached"]], told["errors"]
            )
        else:
            self._figures[number] = told
            if self._progress.is_due():
                longest_s = max(figures.get("outage_s", 0) for figures in self._figures.values())
                self._progress.report(**add_up(self._figures.values()) | {"outage_s": longest_s})

    def _fork(self, number: int, work: Callable[[], Result]) -> Member:
        told, tell = os.pipe()
        process_id = os.fork()
        if process_id:
            os.close(tell)
            return Member(number, process_id, told)
        os.close(told)
        os.close(self._alive_write)
        try:
            run(lambda: self._work_quietly(work, tell), names.FETCHER)
        except SystemExit as ended:
            os._exit(ended.code)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def _work_quietly(self, work: Callable[[], Result], tell: int) -> int:
        try:
            self._work(work, tell)
        except TryLater:  # told once, by the first process
            return EX_TEMPFAIL
        return 0

    def _work(self, work: Callable[[], Result], tell: int) -> None:
        """The life of one process."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C reaches us through the first process
        threading.Thread(target=self._end_with_parent, daemon=True).start()
        os.environ[PROGRESS_VARIABLE] = str(tell)
        result = work()
        with open(tell, "wb") as file:
            file.write(json.dumps(result._asdict()).encode() + b"\n")

    def _download_part(self, number: int, suspects: Suspects) -> Result:
        servers = {
            server: part_of(server, self._processes) == number for server in {server_of(url) for url in self._job.urls}
        }
        return download(
            replace(
                self._job,
                urls=[url for url in self._job.urls if servers[server_of(url)]],
                config=share_of(self._job.config, number),
                slots=FileSlots(self._slots_path, is_shared=True),
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


def add_up(told: Iterable[dict]) -> dict:
    """The figures of all processes together."""
    total: dict = {}
    for figures in told:
        for name, value in figures.items():
            if isinstance(value, dict):
                total[name] = add_up([total.get(name, {}), value])
            elif isinstance(value, int):
                total[name] = total.get(name, 0) + value
    return total
