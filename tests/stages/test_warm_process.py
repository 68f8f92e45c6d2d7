"""The warm process: one thread, stages that are processes of their own, and what happens when it dies."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import trio

from contract import names
from contract.crawl_folder import hold_lock
from contract.log import CRAWL
from supervise.crawl_state import CrawlState
from supervise.flights import Flight
from supervise.launch import Cold, Warm
from supervise.stage_process import Stages
from tests.small_crawl import SmallCrawl

WITHIN_S = 300  # reached only where it hangs


class Bench:
    """A crawl with a planned cycle whose scheduler has something to do, and the two ways to start it."""

    def __init__(self, folder: Path):
        small = SmallCrawl(folder / "crawl", blocks=1)
        small.seed([f"http://a.test/{number}" for number in range(20)])
        small.absorb_all()
        self.crawl, self.settings = small.crawl, small.config.supervisor
        self.plan = small.plan(CRAWL, 0)
        self.deaths: list[int] = []
        self.lines: list[str] = []
        self.lock = hold_lock(self.crawl)

    def note(self, line: str, *about) -> None:
        self.lines.append(line)

    def block_stages(self) -> None:
        """From now on a stage waits for its plan, until it is ended."""
        plan = self.crawl.path / names.cycle(self.plan.cycle) / names.PLAN
        plan.rename(plan.with_name("kept"))
        os.mkfifo(plan)

    def free_stages(self) -> None:
        plan = self.crawl.path / names.cycle(self.plan.cycle) / names.PLAN
        plan.with_name("kept").rename(plan)

    def run(self, body, *, is_cold: bool = False):
        async def main():
            async with trio.open_nursery() as nursery:
                if is_cold:
                    launcher = Cold(self.lock, nursery)
                else:
                    launcher = Warm(
                        self.crawl.path, self.lock, nursery, self.settings, self.lines.append, self.deaths.append
                    )
                stages = Stages(CrawlState(self.crawl), launcher, self.settings, lambda cycle: None, self.note)
                try:
                    with trio.fail_after(WITHIN_S):
                        result = await body(stages, launcher)
                finally:
                    nursery.cancel_scope.cancel()
                    launcher.close()
            return result

        return trio.run(main)


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    os.close(made.lock)


async def wait_until(condition):
    while not (found := condition()):
        await trio.sleep(0.005)
    return found


def has_ended(process: psutil.Process) -> bool:
    """Also where nobody has asked for its exit code yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("is_cold", [False, True])
@pytest.mark.sampled(1)
def test_a_stage_gives_its_exit_code_and_what_it_used(bench, is_cold):
    async def body(stages, launcher):
        flight = Flight(bench.plan)
        return await stages.run("scheduler", flight), flight

    ended, flight = bench.run(body, is_cold=is_cold)
    assert ended.code == 0 and not ended.is_lost, bench.lines
    assert ended.cpu_s > 0 and ended.memory_peak_bytes >= 0 and ended.written_bytes is not None
    assert (flight.start_ms is None) == is_cold


def test_the_warm_process_has_one_thread_and_its_stages_are_sessions_with_a_title(bench):
    async def body(stages, launcher):
        first = await stages.run("scheduler", Flight(bench.plan))
        await wait_until(lambda: "llvmlite" in Path(f"/proc/{launcher.process_id}/maps").read_text())
        await stages.run("scheduler", Flight(bench.plan))  # its answer comes after what was being loaded
        threads = os.listdir(f"/proc/{launcher.process_id}/task")
        second = await stages.run("fetcher", Flight(bench.plan))
        bench.block_stages()
        flight = Flight(bench.plan)
        seen = {}

        async def look():
            await wait_until(lambda: flight.start_ms)
            process = psutil.Process(flight.process_id)
            seen.update(title=process.cmdline(), session=os.getsid(process.pid), pid=process.pid, parent=process.ppid())
            process.terminate()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            third = await stages.run("fetcher", flight)
        return first, second, third, threads, seen, launcher.process_id

    first, second, third, threads, seen, warm = bench.run(body)
    assert first.code == 0 and len(threads) == 1
    assert second.code == 78 and "fetcher.contact" in " ".join(bench.lines), "it has no contact"
    assert third.code == -signal.SIGTERM
    assert seen["title"][1:] == ["-P", "-m", "stages.fetcher", "--crawl", str(bench.crawl.path), "--cycle", "2"]
    assert seen["session"] == seen["pid"] and seen["parent"] == warm


def test_when_the_warm_process_dies_its_stages_end_and_a_new_one_starts(bench):
    async def body(stages, launcher):
        bench.block_stages()
        flight = Flight(bench.plan)

        async def kill():
            await wait_until(lambda: flight.start_ms)
            found.append(psutil.Process(flight.process_id))
            os.kill(launcher.process_id, signal.SIGKILL)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(kill)
            lost = await stages.run("scheduler", flight)
        bench.free_stages()
        return lost, await stages.run("scheduler", flight)

    found = []
    lost, again = bench.run(body)
    assert has_ended(found[0])
    assert lost.is_lost and bench.deaths == [-signal.SIGKILL]
    assert again.code == 0 and not again.is_lost


def test_a_warm_process_that_dies_while_it_imports_loses_the_stage_and_no_more(bench):
    async def body(stages, launcher):
        launcher.start()
        os.kill(launcher.process_id, signal.SIGKILL)
        return await stages.run("scheduler", Flight(bench.plan)), await stages.run("scheduler", Flight(bench.plan))

    lost, again = bench.run(body)
    assert lost.is_lost and again.code == 0


def test_a_stop_ends_a_stage_by_sigterm_and_after_the_grace_by_force(bench):
    async def body(stages, launcher):
        bench.block_stages()
        flight = Flight(bench.plan)

        async def stop():
            await wait_until(lambda: flight.start_ms)
            os.kill(flight.process_id, signal.SIGSTOP)  # SIGTERM alone does not end it now
            stages.stopping.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop)
            return await stages.run("scheduler", flight)

    bench.settings = replace(bench.settings, stop_grace_s=0.05)
    assert bench.run(body).code in (-signal.SIGKILL, -signal.SIGTERM), "both are pending when it is killed"


def test_a_stage_that_hangs_is_ended(bench):
    async def body(stages, launcher):
        launcher.hang_s = WITHIN_S  # importing takes more than a second
        bench.block_stages()
        return await stages.run("scheduler", Flight(bench.plan))

    bench.settings = replace(bench.settings, hang_s=1.0)
    assert bench.run(body).code == -signal.SIGKILL
    assert any("has done nothing for 1 s: it is ended and run again" in line for line in bench.lines)


def test_a_warm_process_that_hangs_is_ended_and_replaced(bench):
    async def body(stages, launcher):
        await stages.run("scheduler", Flight(bench.plan))
        first = launcher.process_id
        os.kill(first, signal.SIGSTOP)
        launcher.hang_s, hang_s = 0.1, launcher.hang_s
        lost = await stages.run("scheduler", Flight(bench.plan))
        launcher.hang_s = hang_s
        return lost, first, await stages.run("scheduler", Flight(bench.plan)), launcher.process_id

    lost, first, again, second = bench.run(body)
    assert lost.is_lost and again.code == 0 and first != second


def test_a_stop_does_not_wait_for_a_warm_process_that_hangs(bench):
    async def body(stages, launcher):
        await stages.run("scheduler", Flight(bench.plan))
        os.kill(launcher.process_id, signal.SIGSTOP)
        launcher.hang_s = float("inf")  # only the stop ends it
        stages.stopping.set()
        return await stages.run("scheduler", Flight(bench.plan))

    bench.settings = replace(bench.settings, stop_grace_s=0.05)
    assert bench.run(body).is_lost
