"""Makes the golden crawl anew, after a format has changed on purpose: .venv/bin/python -m tests.golden.make

A few cycles of a small synthetic web, and more until the three pages of revisited_pages.py were asked again: a rule of
[[priority]] has an interval of a second for them. The last cycle lists one of them. The folder is committed; tests read
it with today's programs and make it again.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from contract import config_file as configuration
from contract import names
from contract.crawl_folder import create
from supervise.demo import SETTINGS
from supervise.seed import leave
from tests.golden import GOLDEN, REVISITED, SUFFIX_LIST
from tests.golden.revisited_pages import ADDRESS, served

ROOT = Path(__file__).resolve().parent.parent.parent
CYCLES, CYCLES_MAX, WAIT_MAX_H = 3, 20, 0.002
PAGES = {"same", "body", "changed"}
RULES = f"""
[revisit]
policy = "uniform"

[[priority]]
pattern = '^http://{REVISITED}:'
weight = 2.0
interval_s = 1.0
"""


def main() -> None:
    state = (
        Path(tempfile.gettempdir()) / "coletor-golden"
    )  # its name is in the plans and the configuration, so it is the same every time
    with state_folder(state), served() as port:
        web = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "synthweb",
                "serve",
                "--seed",
                "6",
                "--servers",
                "4",
                "--port",
                "0",
                "--state",
                state,
                "--until-eof",
            ],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        web.stderr.readline()  # said once it listens
        shutil.rmtree(GOLDEN, ignore_errors=True)
        GOLDEN.mkdir()
        (GOLDEN / "public_suffix_list.dat").write_text(SUFFIX_LIST)
        (GOLDEN / "log").mkdir()
        (state / "pipeline.toml").write_text(SETTINGS.format(hosts="hosts") + RULES)
        with open(state / "hosts", "a") as hosts:
            hosts.write(f"{ADDRESS} {REVISITED}\n")
        create(GOLDEN, 2, hash_seed=17, config=configuration.load(state / "pipeline.toml"))
        seeds = json.loads((state / "ready.json").read_bytes())["seeds"]
        leave(GOLDEN, [*seeds, *(f"http://{REVISITED}:{port}/{name}" for name in ("", *PAGES))])
        crawl_cycles(CYCLES)
        for _ in range(CYCLES_MAX):
            if PAGES - read_revisits():
                crawl_cycles(1)
        if PAGES - read_revisits():
            sys.exit(f"expected revisits of {sorted(PAGES)} within {CYCLES_MAX} cycles, found {read_revisits()}")
        web.stdin.close()
        web.wait()
    for name in (names.LOCK, names.LIVE, names.MESSAGES, names.LOG_SUMMARY, names.SLOTS):  # of a run, not of the crawl
        (GOLDEN / name).unlink()
    shutil.rmtree(GOLDEN / names.JOURNAL)
    write_shown()


def crawl_cycles(cycles: int) -> None:
    """One cycle in flight, so that the numbers of cycles follow the order of commits."""
    limits = ["--cycles", str(cycles), "--max-hours", str(WAIT_MAX_H), "--set", "supervisor.cycles_in_flight=1"]
    subprocess.run([ROOT / "bin/crawl", "--crawl", GOLDEN, *limits], check=True)


def read_revisits() -> set[str]:
    """The last path segments of the pages that lists have asked again."""
    listed = [
        row
        for path in sorted(GOLDEN.glob(f"{names.CYCLES}/*/{names.SCHEDULER}/{names.URL_LIST}"))
        for row in pq.read_table(path, columns=["url", "revisit"]).to_pylist()
    ]
    return {row["url"].rpartition("/")[2] for row in listed if row["revisit"]}


def write_shown() -> None:
    """In a process of its own: SHOWN depends on the last cycle, which this one read before it made the crawl."""
    subprocess.run([sys.executable, "-m", "tests.golden.shown"], check=True, cwd=ROOT)


@contextmanager
def state_folder(path: Path):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    yield
    shutil.rmtree(path)


if __name__ == "__main__":
    main()
