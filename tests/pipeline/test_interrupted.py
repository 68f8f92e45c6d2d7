"""A run that a fault ended, and what the next command makes of it: open cycles, limits, refused files."""

import json
import os
import signal
import subprocess
import sys

import pytest

from contract import names
from contract.log import SEED
from tests.pipeline.struck import STAGE, WARM, WEB_SEED, WEB_SERVERS, WITHIN_S, Struck, find, has_ended, wait_for

MOST = 17  # pages
# Becomes a command that a terminal, whose descriptor is the first argument, hangs up when it is closed.
TAKE_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
def crawl(tmp_path, synthetic_web) -> Struck:
    return Struck(tmp_path, *synthetic_web(WEB_SEED, WEB_SERVERS))


@pytest.mark.long
def test_run_cycle_resumes_what_a_killed_crawl_left_and_a_limit_on_pages_is_exact(crawl):
    """The servers in all blocks are known after some cycles; then several lists are fetched at once."""
    assert crawl.start("--cycles", 6).wait() == 0, crawl.told()
    run = crawl.start("--set", "fetcher.delay_s=0.5")
    assert wait_for(run, lambda: len(find(run, STAGE, "fetcher")) > 1), "the fetchers did not meet"
    run.kill()
    run.wait()
    opened = crawl.status()["open"]
    assert len(opened) > 1, opened
    while (code := crawl.start(name="run-cycle").wait()) == 75:
        pass  # an orphan holds the lock until it has ended itself
    assert code == 0 and crawl.status()["open"] == [], crawl.told()
    before = crawl.status()["fetched"]["answered"]
    assert crawl.start("--max-pages", MOST).wait() == 0
    assert crawl.status()["fetched"]["answered"] - before == MOST
    crawl.finish()
    crawl.judge(kills=4)


@pytest.mark.long
def test_a_crawl_of_one_block_has_one_cycle_at_a_time(tmp_path, synthetic_web):
    crawl = Struck(tmp_path, *synthetic_web(WEB_SEED, WEB_SERVERS), blocks=1)
    run = crawl.start()
    assert wait_for(run, lambda: find(run, STAGE, "fetcher"))
    run.kill()
    run.wait()
    crawl.finish()
    crawl.judge(kills=1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.sampled(1)
def test_a_stop_while_the_warm_process_imports_ends_in_order(crawl, number):
    run = crawl.start(stdout=subprocess.PIPE, text=True)
    assert wait_for(run, lambda: "began" in live_of(crawl) and find(run, WARM))
    warm = find(run, WARM)
    run.send_signal(number)
    output, _ = run.communicate()
    assert run.returncode == 0 and "stopped" in output, crawl.told()
    assert not any(os.path.exists(f"/proc/{process_id}") for process_id in warm)
    assert "Traceback" not in crawl.told()
    assert crawl.run("check").returncode == 0


def test_a_terminal_that_is_closed_stops_the_run_in_order(crawl):
    """Its exit code is that of a stop, though nothing can be printed any more."""
    ours, theirs = os.openpty()
    run = crawl.start(
        prefix=(sys.executable, "-c", TAKE_TERMINAL, str(theirs)), stdout=theirs, stderr=theirs, pass_fds=(theirs,)
    )
    os.close(theirs)
    assert wait_for(run, lambda: "began" in live_of(crawl) and find(run, WARM))
    os.close(ours)
    assert run.wait(WITHIN_S) == 0
    assert json.loads(live_of(crawl))["why"] == "stopped"


def test_under_nohup_a_run_survives_its_terminal(crawl):
    run = crawl.start("--cycles", 1, prefix=("nohup",))
    assert wait_for(run, lambda: "began" in live_of(crawl))
    run.send_signal(signal.SIGHUP)
    assert run.wait(WITHIN_S) == 0
    assert json.loads(live_of(crawl))["why"] != "stopped"


def test_a_pipe_that_nobody_reads_does_not_stop_a_run(crawl):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writing, True)
    run = crawl.start("--cycles", 1, stderr=writing)
    try:
        assert has_ended(run, WITHIN_S)
    finally:
        run.kill()
        os.close(reading)
        os.close(writing)
    assert run.returncode == 0


def live_of(crawl: Struck) -> str:
    try:
        return (crawl.path / names.LIVE).read_text()
    except OSError:
        return ""


REFUSALS = [  # of calls that the supervisor itself makes; the first ones are those of the cycle that takes in seeds
    ("mkdir", "ENOSPC", 1),
    ("fsync", "EIO", 2),
    ("link,linkat", "ENOSPC", 1),
    ("link,linkat", "ENOSPC", 2),
    ("fsync", "EIO", 9),
]


@pytest.mark.long
def test_a_disk_that_fails_the_supervisor_loses_nothing(crawl, needs):
    strace = needs("strace")
    for calls, error, when in REFUSALS:
        injected = (
            "-e",
            f"trace={calls}",
            "-e",
            f"inject={calls}:error={error}:when={when}+7",
        )  # and each 7th after it
        run = crawl.start("--cycles", 1, prefix=(strace, "-o", os.devnull, *injected))
        assert run.wait() in (0, 75), (calls, crawl.told())
        assert "Traceback" not in crawl.told(), (calls, crawl.told())
    crawl.finish()
    crawl.judge(kills=0)
    taken = [entry for entry in crawl.entries() if entry.kind == SEED]
    assert len(taken) == 1, "the seeds were taken in once"


@pytest.mark.long
def test_a_folder_that_cannot_be_written_for_a_moment_costs_a_run(crawl):
    for folder in (names.LOG, names.CYCLES, names.GENERATIONS):
        assert crawl.start("--cycles", 2).wait() == 0, crawl.told()
        path = crawl.path / folder
        crawl.errors.unlink()
        try:
            for words in (["--bind", path, path], ["-o", "remount,bind,ro", path]):
                done = subprocess.run(["mount", *words], capture_output=True, text=True)
                if done.returncode:
                    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"cannot mount: {done.stderr}")
            assert crawl.start("--cycles", 1).wait() == 75, crawl.told()
        finally:
            subprocess.run(["umount", path], capture_output=True)
        assert "Read-only file system" in crawl.told() and "Traceback" not in crawl.told(), crawl.told()
    assert crawl.start("--cycles", 2).wait() == 0, crawl.told()
    assert crawl.run("check").returncode == 0


@pytest.mark.long
def test_things_in_the_place_of_the_files_of_a_run_do_not_stop_it(crawl):
    (crawl.path / names.LIVE).mkdir()
    (crawl.path / names.LIVE / "x").write_text("")
    os.mkfifo(crawl.path / names.JOURNAL)
    (crawl.path / names.MESSAGES).symlink_to("/dev/full")
    assert crawl.start(name="run-cycle").wait() == 0, crawl.told()
    assert "lines of the journal are lost" in crawl.told()
    assert crawl.told().count("bin/status does not show what this run does, the crawl goes on") == 1
    assert has_ended(crawl.start(name="status", stdout=subprocess.DEVNULL), 600)
    assert crawl.run("check").returncode == 0
