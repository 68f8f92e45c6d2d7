"""A disk that fails under any stage: exit code 75, the file is named, and a rerun leaves the same bytes."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from contract.config import Config
from contract.log import CRAWL
from supervise.launch import ONE_THREAD
from tests.fetcher_lab import RawServer, ok, pages_of
from tests.sampling import sampling
from tests.small_crawl import SmallCrawl

ROOT = Path(__file__).resolve().parent.parent.parent
QUICK_CASES = 4
HOSTS, PAGES = 4, 6


def test_a_failing_disk_loses_nothing_at_any_stage(tmp_path, needs):
    """Errors and short writes at sampled calls; see disk_sweep."""
    needs("strace")
    pages = {f"/{number}": ok(f"<a href=/new{number}>x</a>".encode()) for number in range(PAGES)}
    with RawServer(pages_of(pages)) as server:
        (tmp_path / "hosts").write_text("".join(f"127.0.0.1 h{number}.test\n" for number in range(HOSTS)))
        crawl = SmallCrawl(tmp_path / "crawl", blocks=1, config=settings(tmp_path / "hosts"))
        crawl.seed([f"http://h{host}.test:{server.port}{path}" for host in range(HOSTS) for path in pages])
        crawl.absorb_all()
        plan = crawl.plan(CRAWL, 0)
        words = [crawl.crawl.path, plan.cycle, tmp_path / "scratch", sampling.seed]
        (tmp_path / "scratch").mkdir()
        done = subprocess.run(
            [
                sys.executable,
                "-P",
                "-m",
                "tests.crash.disk_sweep",
                *map(str, words),
                "0" if sampling.is_complete else str(QUICK_CASES),
            ],
            cwd=ROOT,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    struck = {stage: int(number) for stage, number in (word.split("=") for word in done.stdout.split())}
    if sampling.is_complete:
        assert all(number >= 5 for number in struck.values()), struck
    else:
        assert sum(struck.values()), struck


def settings(hosts: Path) -> Config:
    config = Config()
    fetcher = replace(
        config.fetcher,
        contact="mailto:nobody@localhost",
        hosts_file=str(hosts),
        allow_private_addresses=True,
        delay_s=0.0,
        sync_every_pages=2,
    )
    return replace(config, fetcher=fetcher, extractor=replace(config.extractor, workers=1))
