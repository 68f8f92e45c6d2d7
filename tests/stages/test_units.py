"""Numbers for people, and lines that fit the terminal they are printed on."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from contract import names
from contract.lines import fit, fit_manual
from contract.units import count, duration, moment, size
from stages.fetcher.slots import FILE_BYTES
from tests.at_terminal import run_at_terminal
from tests.golden import BLOCK, GOLDEN, LAST
from tests.sampling import sampling

ROOT = Path(__file__).resolve().parent.parent.parent
NOUNS = [
    "pages",
    "URLs",
    "cycles",
    "commits",
    "files",
    "rows",
    "links",
    "servers",
    "blocks",
    "hops",
    "requests",
    "failures",
    "lines",
    "seeds",
    "clusters",
    "slots",
    "tables",
    "attempts",
]
COMMANDS = [  # that print counts of a small crawl
    ["status"],
    ["check"],
    ["fork", "--list"],
    ["show", "log"],
    ["show", "slots"],
    ["show", f"cycles/{LAST:08d}"],
    ["show", "--duplicates"],
    ["show", f"cycles/{LAST:08d}/extractor/MetadadosUrlsColetadas.parquet"],
    ["show", names.generation(BLOCK, LAST)],
]


def test_counts():
    assert [count(0, "page"), count(1, "page"), count(12345, "page"), count(2, "entry", "entries")] == [
        "0 pages",
        "1 page",
        "12,345 pages",
        "2 entries",
    ]


@pytest.mark.parametrize(
    "number, text",
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (5_234_567, "5.2 MB"),
        (999_949, "999.9 kB"),
        (999_960, "1.0 MB"),
        (3.2e15, "3,200.0 TB"),
    ],
)
def test_sizes(number, text):
    assert size(number) == text


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "0 s"),
        (0.011, "0.01 s"),
        (2.0, "2 s"),
        (9.999, "10 s"),
        (59.6, "1 min"),
        (98, "1 min 38 s"),
        (3_600, "1 h"),
        (5_880, "1 h 38 min"),
        (86_400 * 3 + 4 * 3_600 + 59, "3 d 4 h"),
        (86_401, "1 d"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    "zone, text",
    [
        ("UTC", "2026-11-18 00:22:16 UTC"),
        ("America/Sao_Paulo", "2026-11-17 21:22:16 -03:00"),
        ("Asia/Kolkata", "2026-11-18 05:52:16 +05:30"),
    ],
)
def test_moments_have_their_time_zone(monkeypatch, zone, text):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert moment(1_794_961_336_000) == text
    finally:
        monkeypatch.undo()
        time.tzset()
    assert moment(10**18) == f"{10**18} ms"


def test_lines_are_broken_between_words_on_a_terminal_only():
    text = "one two three four five six seven eight nine https://a.test/" + "x" * 50
    assert fit(text, None) == text and fit(text, 200) == text
    broken = fit(text, 40).split("\n")
    assert broken[0] == "one two three four five six seven eight" and broken[-1] == "  https://a.test/" + "x" * 50
    manual = "show: prints.\n\n  bin/show FILE                     what it is\n\n" + "A sentence of words. " * 10
    assert fit_manual(manual, None) == fit_manual(manual, 300) == manual
    filled = fit_manual(manual, 60)
    assert max(map(len, filled.splitlines())) <= 60 and "\n  bin/show FILE                     what it is\n" in filled


@pytest.fixture(scope="module")
def crawl(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("units")
    shutil.copytree(GOLDEN, folder / "crawl")
    (folder / "crawl" / names.SLOTS).write_bytes(bytes(FILE_BYTES))
    return folder / "crawl"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.sampled(3)
def test_what_commands_print_fits_and_has_the_right_plural(crawl, command):
    """Narrow terminals get short lines; a pipe gets them whole; there is no `1 pages` in either."""
    words = [ROOT / "bin" / command[0], *command[1:], "--crawl", crawl]
    piped = subprocess.run(words, capture_output=True, text=True)
    assert piped.returncode == 0 and not re.search(rf"(?<![\d,.])1 ({'|'.join(NOUNS)})\b", piped.stdout), piped.stdout
    code, shown = run_at_terminal(words, columns=70)
    assert code == 0
    too_long = [
        line
        for line in shown.splitlines()
        if len(line) > 70 and " " in line.strip() and max(map(len, line.split())) < 60
    ]
    assert not too_long
    if command[0] == "show" and "--duplicates" not in command:
        return  # a table: what finds no room on a terminal is cut
    # The disk fills up meanwhile.
    assert re.sub("disk.*?blocks", "", "".join(shown.split())) == re.sub(
        "disk.*?blocks", "", "".join(piped.stdout.split())
    )


def test_manuals_fit_a_narrow_terminal():
    first, stride = sampling.stride(4)
    for path in sorted((ROOT / "bin").iterdir())[first - 1 :: stride]:
        if path.name not in ("test", "bench", "lint"):
            code, shown = run_at_terminal([path, "--help"], columns=80, env={**os.environ, "COLUMNS": "80"})
            prose = [line for line in shown.splitlines() if not line.startswith("  ")]
            assert code == 0 and prose and max(map(len, prose)) <= 80, path.name


def test_status_has_human_units(crawl):
    shown = subprocess.run([ROOT / "bin/status", "--crawl", crawl], capture_output=True, text=True).stdout
    status = json.loads(subprocess.run([ROOT / "bin/status", "--crawl", crawl, "--json"], capture_output=True).stdout)
    assert size(status["fetched"]["bytes"]) in shown and moment(status["began_at_ms"]) in shown
