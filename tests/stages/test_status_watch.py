"""bin/status --watch: it ends in order, leaves the terminal as it was, and takes any size and encoding of it."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.golden import GOLDEN

ROOT = Path(__file__).resolve().parent.parent.parent
SHOWN, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"  # the alternate screen


@pytest.fixture
def crawl(tmp_path):
    return Path(shutil.copytree(GOLDEN, tmp_path / "crawl"))


def command_of(crawl, *options):
    return [ROOT / "bin/status", "--crawl", crawl, "--watch", *options]


def watch_on_terminal(crawl, ends_by=signal.SIGINT, **variables):
    """Exit code and output of a command that is ended after two pages."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", **variables}
    process = subprocess.Popen(command_of(crawl, "0.1"), stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown, is_ended = b"", False
    try:
        while piece := os.read(ours, 4096):
            shown += piece
            if shown.count(b"servers  ") >= 2 and not is_ended:
                is_ended = True
                process.send_signal(ends_by)
    except OSError:
        pass  # its other end is closed: the command has ended
    os.close(ours)
    return process.wait(), shown


def test_it_ends_cleanly_on_ctrl_c(crawl):
    process = subprocess.Popen(command_of(crawl, "0.1"), stdout=subprocess.PIPE, text=True)
    pages = 0
    for line in process.stdout:
        pages += line.startswith(str(crawl))
        if pages == 2:
            break
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate()
    assert process.returncode == 0 and "Traceback" not in rest
    assert subprocess.run(command_of(crawl / "nowhere"), capture_output=True).returncode == 78


@pytest.mark.parametrize("ends_by", [signal.SIGINT, signal.SIGTERM])
def test_it_redraws_on_a_terminal_and_leaves_it_as_it_was(crawl, ends_by):
    """On the alternate screen, from which it switches back."""
    code, shown = watch_on_terminal(crawl, ends_by)
    assert code == 0 and b"Traceback" not in shown
    assert shown.count(SHOWN) == shown.count(LEFT) == 1
    assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l") >= 0, "the cursor is visible"


def test_a_dumb_terminal_gets_one_page_after_the_other(crawl):
    code, shown = watch_on_terminal(crawl, TERM="dumb")
    assert code == 0 and b"\x1b" not in shown


@pytest.mark.parametrize("variables", [{"COLUMNS": "0"}, {"PYTHONIOENCODING": "latin-1"}], ids=str)
@pytest.mark.sampled(1)
def test_a_strange_terminal_is_no_error(crawl, variables):
    """What the terminal cannot show becomes an escape."""
    folder = crawl.rename(crawl.with_name("\N{HORIZONTAL ELLIPSIS}"))
    code, shown = watch_on_terminal(folder, LINES="200", **variables)
    assert code == 0 and b"Traceback" not in shown
    assert (b"u2026" in shown) is ("PYTHONIOENCODING" in variables)


@pytest.mark.parametrize("seconds", ["inf", "1e300", "nan", "0", "86401"])
@pytest.mark.sampled(2)
def test_a_time_out_of_bounds_is_a_wrong_command_line(crawl, seconds):
    done = subprocess.run(command_of(crawl, seconds), capture_output=True, text=True)
    assert done.returncode == 64 and "expected" in done.stderr and "Traceback" not in done.stderr
