"""When a server may be listed again.

Failures back off, then it is given up; a long pause or one that it asked for is waited for.
"""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from contract import names
from contract.config import Config, Fetcher, Verifier
from contract.generation import open_generation
from contract.log import CRAWL
from contract.pause import CYCLE_MAX_MS
from contract.tables import CYCLE_SERVERS, FAILED
from stages.verifier.server_table import judge
from storage.tables import read_table
from supervise.turns import Sleep, Turn, next_turn
from tests.small_crawl import NOW_MS, Page, SmallCrawl

CONFIG = Config(
    fetcher=Fetcher(server_failures_max=3, delay_s=5.0), verifier=Verifier(server_backoff_s=60.0, server_backoffs_max=2)
)
LAST = 1_000_000
ROOT = Path(__file__).resolve().parent.parent.parent


def one_server(failures: int = 0, delay_ms: int = 0, ready_at_ms: int = 0) -> dict[str, np.ndarray]:
    return {
        "failures": np.array([failures], np.uint32),
        "delay_ms": np.array([delay_ms], np.uint32),
        "last_request_at_ms": np.array([LAST]),
        "ready_at_ms": np.array([ready_at_ms]),
    }


@pytest.mark.parametrize(
    "failures, delay_ms, due_at_ms, given_up",
    [
        (0, 0, 0, False),
        (2, 0, 0, False),
        (3, 0, LAST + 60_000, False),
        (4, 0, LAST + 120_000, False),
        (5, 0, LAST + 240_000, True),
        (0, 10_000, 0, False),
        (0, 3_600_000, LAST + 3_600_000, False),
        (3, 3_600_000, LAST + 3_600_000, False),
        (4_000_000_000, 0, None, True),
    ],
)
def test_when_a_server_is_due(failures, delay_ms, due_at_ms, given_up):
    servers = one_server(failures, delay_ms)
    judge(servers, LAST, CONFIG)
    assert bool(servers["given_up"][0]) == given_up
    assert due_at_ms is None or int(servers["due_at_ms"][0]) == due_at_ms


DAY_MS = 86_400_000


@pytest.mark.parametrize(
    "failures, ready_at_ms, due_at_ms",
    [
        (0, LAST + 5, LAST + 5),
        (3, LAST + 5, LAST + 60_000),
        (3, LAST + 70_000, LAST + 70_000),
        (0, LAST + DAY_MS, LAST + DAY_MS),
        (0, LAST + 100 * DAY_MS, LAST + CYCLE_MAX_MS + DAY_MS),
        (0, (1 << 63) - 1, LAST + CYCLE_MAX_MS + DAY_MS),
    ],
)
def test_a_server_is_left_alone_as_long_as_it_asked(failures, ready_at_ms, due_at_ms):
    """What no clock that is right can have written is cut to a moment that comes."""
    servers = one_server(failures, 0, ready_at_ms)
    judge(servers, LAST, CONFIG)
    assert int(servers["due_at_ms"][0]) == due_at_ms and int(servers["ready_at_ms"][0]) <= due_at_ms
    judge(servers, LAST + 1000, CONFIG)
    assert int(servers["due_at_ms"][0]) == due_at_ms  # it does not move away


def test_the_next_plan_knows_when_a_server_is_ready(tmp_path):
    busy, other = "http://busy.example/", "http://other.example/"
    small = SmallCrawl(tmp_path / "crawl", blocks=1)
    small.seed([busy, busy + "2", other])
    small.absorb_all()
    plan = small.plan(CRAWL, 0)
    assert sorted(small.schedule(plan)) == [busy, busy + "2", other]
    ready_at_ms = NOW_MS + 3_600_000
    small.harvest(plan, {busy: Page(FAILED, "http_429")}, servers={"http://busy.example": {"ready_at_ms": ready_at_ms}})
    small.verify(plan)

    plan = small.plan(CRAWL, 0)
    assert small.schedule(plan) == [other]
    small.harvest(plan, {other: Page()})
    small.verify(plan)
    views = small.crawl_state.views()
    assert next_turn(views, NOW_MS) == Sleep(ready_at_ms) and next_turn(views, ready_at_ms) == Turn(CRAWL, 0)
    assert small.schedule(small.plan(CRAWL, 0)) == []

    plan = small.plan(CRAWL, 0, now_ms=ready_at_ms)
    assert sorted(small.schedule(plan)) == [busy, busy + "2"]
    folder = small.crawl.path / names.cycle(plan.cycle) / names.SCHEDULER
    assert read_table(folder / names.SERVERS, CYCLE_SERVERS).column("ready_at_ms").to_pylist() == [ready_at_ms]
    generation = open_generation(small.crawl.path, 0, plan.generation)
    assert sorted(generation.servers.column("ready_at_ms").to_pylist()) == [0, ready_at_ms]


def test_the_scheduler_tells_the_sitemaps_of_the_stored_robots_txt(tmp_path):
    """The text is what is kept; a table of sitemaps beside it could only disagree."""
    small = SmallCrawl(tmp_path / "crawl", blocks=1)
    small.seed(["http://mapped.example/", "http://mapped.example/2", "http://plain.example/"])
    small.absorb_all()
    plan = small.plan(CRAWL, 0)
    small.schedule(plan)
    seen = {"robots": b"User-agent: *\nSitemap: http://mapped.example/s.xml\n", "sitemaps": ["http://another.example/"]}
    small.harvest(plan, {}, servers={"http://mapped.example": seen})
    small.verify(plan)
    plan = small.plan(CRAWL, 0)
    small.schedule(plan)
    path = small.crawl.path / names.cycle(plan.cycle) / names.SCHEDULER / names.SERVERS
    found = {row["server"]: row["sitemaps"] for row in read_table(path, CYCLE_SERVERS).to_pylist()}
    assert found == {"http://mapped.example": ["http://mapped.example/s.xml"], "http://plain.example": []}
    shown = subprocess.run([ROOT / "bin/show", path], capture_output=True, text=True)
    assert shown.returncode == 0 and "  http://mapped.example/s.xml " in shown.stdout, shown.stderr
