"""The warm process is killed after it has forked a stage and before it has said so: the stage ends by itself."""

import os
import subprocess

import pytest
import trio

from supervise.flights import Flight
from tests.stages.test_warm_process import bench  # noqa: F401 - a fixture


def test_killed_between_fork_and_answer_the_stage_ends_and_runs_again(bench, needs):  # noqa: F811
    async def body(stages, launcher):
        first = await stages.run("scheduler", Flight(bench.plan))
        tracer = kill_at_answer(needs("strace"), launcher.process_id)
        lost = await stages.run("scheduler", Flight(bench.plan))
        tracer.communicate()
        return first, lost, await stages.run("scheduler", Flight(bench.plan))

    first, lost, again = bench.run(body)
    assert first.code == 0 and lost.is_lost and again.code == 0, bench.lines
    assert len(bench.deaths) == 1


@pytest.mark.long
def test_killed_between_fork_and_answer_with_a_stage_that_does_not_end_by_itself(bench, needs):  # noqa: F811
    """It waits for its plan; the pipe that ended with the warm process ends it."""

    async def body(stages, launcher):
        await stages.run("scheduler", Flight(bench.plan))
        bench.block_stages()
        tracer = kill_at_answer(needs("strace"), launcher.process_id)
        with trio.fail_after(300):
            lost = await stages.run("scheduler", Flight(bench.plan))
        tracer.communicate()
        bench.free_stages()
        return lost, await stages.run("scheduler", Flight(bench.plan))

    lost, again = bench.run(body)
    assert lost.is_lost and again.code == 0, bench.lines


def kill_at_answer(strace: str, process_id: int) -> subprocess.Popen:
    """Returns once strace is attached; it follows no forks, so stages are left alone."""
    words = ["-e", "trace=sendmsg", "-e", "inject=sendmsg:signal=KILL:when=1"]
    tracer = subprocess.Popen(
        [strace, "-p", str(process_id), "-o", os.devnull, *words], stderr=subprocess.PIPE, text=True
    )
    lines = tracer.stderr.readline()
    assert "attached" in lines, lines
    return tracer
