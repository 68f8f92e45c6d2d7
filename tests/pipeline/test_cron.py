"""From cron and systemd: no mail, no overlap, and what a killed run left is finished; the unit files are valid."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from contract.crawl_folder import hold_lock, open_folder
from contract.log import CRAWL, replay
from contract.plan import open_cycles
from tests.pipeline.judge import ROOT
from tests.pipeline.test_supervisor import Crawl, find_stage, wait_for

UNITS = ROOT / "docs" / "systemd"


def as_cron(crawl: Crawl) -> dict:
    """How cron runs a line of a crontab: a shell, hardly any environment, no terminal."""
    line = shlex.join([str(ROOT / "bin/run-cycle"), "--crawl", str(crawl.path), "--quiet"])
    python = Path(os.__file__).resolve().parents[2] / "bin"  # .venv exists, so no other Python is looked for
    return {
        "args": ["/bin/sh", "-c", line],
        "env": {"HOME": "/", "LOGNAME": "nobody", "PATH": f"/usr/bin:/bin:{python}", "SHELL": "/bin/sh"},
        "cwd": "/",
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
    }


def count_cycles(crawl: Crawl) -> int:
    return replay(crawl.path, 2).kinds[CRAWL]


def test_a_run_from_cron_does_its_cycle_and_prints_nothing(crawled):
    before = count_cycles(crawled)
    done = subprocess.run(**as_cron(crawled))
    assert (done.returncode, done.stdout) == (0, b"") and count_cycles(crawled) == before + 1


def test_runs_from_cron_do_not_overlap_and_the_second_prints_nothing(crawled):
    before = count_cycles(crawled)
    lock = hold_lock(open_folder(crawled.path))
    done = subprocess.run(**as_cron(crawled))
    os.close(lock)
    assert (done.returncode, done.stdout) == (75, b"") and count_cycles(crawled) == before


@pytest.mark.long
def test_the_next_run_from_cron_finishes_what_a_killed_one_left(crawled):
    before = count_cycles(crawled)
    killed = subprocess.Popen(**as_cron(crawled))
    wait_for(lambda: killed.poll() is not None or find_stage(killed, "fetcher"), "the fetcher")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    opened = open_cycles(crawled.path, replay(crawled.path, 2))

    def run_again():
        done = subprocess.run(**as_cron(crawled))
        assert done.stdout == b"" and done.returncode in (0, 75), "75: an orphan holds the lock for an instant"
        return done.returncode == 0

    wait_for(run_again, "the next run")
    log = replay(crawled.path, 2)
    assert log.kinds[CRAWL] > before and all(log.is_closed(cycle) for cycle in opened)


@pytest.mark.parametrize("unit", sorted(path.name for path in UNITS.iterdir()))
def test_systemd_accepts_the_unit_files_of_the_documents(unit, tmp_path, needs):
    for path in UNITS.iterdir():
        text = path.read_text().replace("/srv/coletor", str(ROOT)).replace("User=coletor", "User=root")
        (tmp_path / path.name).write_text(text)
    done = subprocess.run(
        [needs("systemd-analyze"), "verify", "--man=no", tmp_path / unit], capture_output=True, text=True
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "coletor" in line and str(tmp_path) in line]
    assert done.returncode == 0 and ours == [], done.stderr
