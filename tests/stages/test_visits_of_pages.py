"""Pages that are asked again, from the list to the books: real records, and all stages but the fetcher."""

from pathlib import Path

import pytest

from contract import names
from contract.config import Config, Revisit, Scope
from contract.log import CRAWL
from contract.plan import Plan, write_plan
from contract.tables import FAILED, URL_LIST
from contract.warc import NOT_MODIFIED
from examine.check import check_all
from examine.findings import Findings
from stages.extractor.__main__ import extract_cycle
from stages.verifier.rebuild import rebuild_block
from storage.publish import publishing, read_manifest
from storage.tables import read_table, write_table
from tests.extractor_lab import WarcFile, coletor, http
from tests.small_crawl import NOW_MS, SmallCrawl
from tests.visited_pages import match_manifest, sides

HOURS_MS = 3 * 3_600_000
SEEDS = [f"http://s{number}.test/" for number in range(8)]
REVISIT = Revisit(policy="uniform", interval_s=3_600.0, interval_min_s=60.0, interval_max_s=36_000.0, share_max=1.0)
CONFIG = Config(revisit=REVISIT, scope=Scope(accept_suffixes=("test",)))


def list_all(small: SmallCrawl, plan: Plan) -> list[dict]:
    """The scheduler's list, with every collected page that it does not have."""
    small.schedule(plan)
    path = small.crawl.path / names.cycle(plan.cycle) / names.SCHEDULER / names.URL_LIST
    rows = read_table(path, URL_LIST).to_pylist()
    blank = {field.name: "" if str(field.type) == "string" else 0 for field in URL_LIST}
    for url, side in sides(small).items():
        if url not in {row["url"] for row in rows}:
            again = {"revisit": True, "counted": bool(side["parsed"]), "order": len(rows)}
            rows.append({**blank, **small.keyed(url), **again})
    write_table(path, type(read_table(path, URL_LIST)).from_pylist(rows, schema=URL_LIST))
    match_manifest(path)
    return rows


def answer(file: WarcFile, url: str, turn: int, is_revisit: bool) -> None:
    """By the number of the page: it changes, it is as before, it is gone for a time, or its server fails."""
    kind = len(url) + ord(url[8]) + turn if is_revisit else 0
    links = "".join(f"<a href={link}>.</a>" for link in [*SEEDS, f"{SEEDS[turn]}new{turn}"])
    if kind % 5 == 0:
        file.answer(url, http(f"<p>{url} {turn}</p>{links}".encode()))
    elif kind % 5 == 1:
        file.add("revisit", url, http(b"", 304), WARC_Profile=NOT_MODIFIED, **coletor("answered", "", 3, True, "", ""))
    elif kind % 5 == 2:
        file.answer(url, http(b"gone", 404))
    elif kind % 5 == 3:
        file.no_answer(url, FAILED, "timeout_connect")
    else:
        file.answer(url, http(b"<p>always the same"))


def turn_round(small: SmallCrawl, turn: int) -> dict:
    log = small.crawl_state.log
    now_ms = NOW_MS + turn * HOURS_MS
    plan = Plan(small.crawl_state.next_cycle(), CRAWL, 0, log.blocks, log.generation(0), now_ms, small.config)
    write_plan(small.crawl.path, plan)
    listed, file = list_all(small, plan), WarcFile(at_ms=now_ms)
    for row in listed:
        answer(file, row["url"], turn, row["revisit"])
    folder = small.crawl.path / names.cycle(plan.cycle) / names.FETCHER
    with publishing(folder) as manifest:
        (folder / names.PAGES).mkdir()
        (folder / names.PAGES / "00000.warc.zst").write_bytes(file.data())
        manifest["counts"] = {"listed": len(listed)}
    extract_cycle(small.crawl, plan, None)
    return small.verify(plan)


@pytest.fixture(scope="module")
def visited(tmp_path_factory) -> tuple[SmallCrawl, list[dict]]:
    small = SmallCrawl(tmp_path_factory.mktemp("visited") / "crawl", 1, CONFIG)
    small.seed(SEEDS)
    small.absorb_all()
    return small, [turn_round(small, turn) for turn in range(6)]


def test_books_agree_when_pages_are_asked_again(visited):
    small, reports = visited
    for name in ("revisited", "unchanged", "changed", "gone", "missed"):
        assert reports[0][name] == 0 and sum(report[name] for report in reports) > 2, name
    findings = Findings()
    check_all(small.crawl, small.history(), findings)
    assert findings.wrong == {}
    folders = [small.crawl.path / names.cycle(report["cycle"]) / names.EXTRACTOR for report in reports]
    answered = sum(read_manifest(folder)["counts"]["answered"] for folder in folders)
    assert reports[-1]["visits"] == sum(side["visits"] for side in sides(small).values()) == answered > 40


def test_block_is_due_once_the_interval_is_over(visited):
    _, reports = visited
    for turn, report in enumerate(reports):
        assert NOW_MS + turn * HOURS_MS < report["revisit_due_ms"] < NOW_MS + turn * HOURS_MS + 3_700_000


def test_rebuild_from_the_tables_makes_the_same_generation(visited, tmp_path):
    """All turns again, from nothing."""
    small = visited[0].copy(tmp_path / "crawl")
    for block in (small.crawl.path / names.GENERATIONS).glob("*/*"):
        for path in Path(block).glob("collected_*"):
            path.write_bytes(b"damaged")
    assert "from nothing by 7 turns, the same bytes" in rebuild_block(small.crawl, small.history(), 0)
