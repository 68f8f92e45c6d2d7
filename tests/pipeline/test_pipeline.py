"""Several cycles in flight: they overlap, each on its own block, within the bounds per kind of stage and of pages."""

import json
import socket
import subprocess

import pytest

from contract import names
from contract.crawl_folder import create
from contract.log import KINDS
from supervise.demo import SETTINGS
from supervise.seed import leave
from tests.pipeline.judge import (
    ROOT,
    access_record,
    assert_obedient,
    assert_one_at_a_time,
    assert_truth,
    collected_urls,
)
from tests.pipeline.test_supervisor import Crawl

BLOCKS, BOUNDS = 4, {"scheduler": 1, "fetcher": 2, "extractor": 1, "verifier": 1}
DELAY_S = 0.04
SLACK_MS = 10.0  # a fetcher that did not wait would be some 40 ms too early


@pytest.fixture
def crawl(tmp_path, synthetic_web) -> Crawl:
    made = Crawl(tmp_path, *synthetic_web(8, 14), blocks=BLOCKS)
    made.settings.write_text(made.settings.read_text() + "\n[supervisor]\nfetchers = 2\ncycles_in_flight = 3\n")
    return made


def attempts(crawl: Crawl) -> list[dict]:
    lines = [json.loads(line) for path in (crawl.path / names.JOURNAL).iterdir() for line in path.open()]
    return [line for line in lines if line["event"] == "stage"]


def most_at_once(spans: list[tuple[int, int]]) -> int:
    """How many of these spans of time overlap at most; one may begin in the millisecond in which another ends."""
    moments = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    most = now = 0
    for _, change in moments:
        now += change
        most = max(most, now)
    return most


def spans_by(rows: list[dict], *columns: str) -> dict[tuple, tuple[int, int]]:
    """From the first begin to the last end of the rows that agree in some columns."""
    found: dict[tuple, tuple[int, int]] = {}
    for row in rows:
        key = tuple(row[column] for column in columns)
        begin, end = found.get(key, (row["begin_ms"], row["end_ms"]))
        found[key] = min(begin, row["begin_ms"]), max(end, row["end_ms"])
    return found


def test_cycles_overlap_within_their_bounds_and_the_result_is_exact(crawl):
    done = crawl.run("crawl", "--until-done", "--set", f"fetcher.delay_s={DELAY_S}")
    assert done.returncode == 0, done.stderr
    assert_truth(crawl.path, crawl.web)
    record = access_record(crawl.state, crawl.web.port)
    assert_obedient(record, crawl.web)
    assert_one_at_a_time(record, DELAY_S * 1000, SLACK_MS)
    assert crawl.run("check").returncode == 0
    rows = attempts(crawl)
    for stage, bound in BOUNDS.items():
        assert most_at_once([(row["begin_ms"], row["end_ms"]) for row in rows if row["stage"] == stage]) <= bound
    cycles = spans_by(rows, "cycle", "block")
    assert 2 <= most_at_once(list(cycles.values())) <= 3
    for block in {block for _, block in cycles}:
        assert most_at_once([span for (_, own), span in cycles.items() if own == block]) == 1
    assert {row["exit_code"] for row in rows} == {0}
    assert sum(row["pages"] or 0 for row in rows) == len(collected_urls(crawl.path))


@pytest.mark.parametrize("pages", [7, 40])
@pytest.mark.sampled(1)
def test_max_pages_is_exact_with_several_cycles_in_flight(crawl, pages):
    done = crawl.run("crawl", "--max-pages", str(pages))
    assert done.returncode == 0 and f"{pages} pages: --max-pages reached" in done.stdout, done.stdout + done.stderr
    assert len(collected_urls(crawl.path)) == pages
    assert all(KINDS[row["kind"]].fetches or row["stage"] == "verifier" for row in attempts(crawl))


@pytest.mark.long
def test_with_one_block_there_is_one_cycle_at_a_time(tmp_path, synthetic_web):
    crawl = Crawl(tmp_path, *synthetic_web(8, 4), servers=4, blocks=1)
    done = crawl.run("crawl", "--until-done")
    assert done.returncode == 0, done.stderr
    assert most_at_once(list(spans_by(attempts(crawl), "cycle").values())) == 1
    assert_truth(crawl.path, crawl.web)


def test_until_done_ends_when_only_servers_in_back_off_are_left(tmp_path):
    with socket.socket() as closed:  # bound, and nobody listens: connections are refused
        closed.bind(("127.0.0.1", 0))
        url = f"http://dead.test:{closed.getsockname()[1]}/one"
        (tmp_path / "hosts").write_text("127.0.0.1 dead.test\n")
        settings = SETTINGS.replace("server_backoff_s = 0.1", "server_backoff_s = 3600.0")
        (tmp_path / "pipeline.toml").write_text(settings.format(hosts=tmp_path / "hosts"))
        create(tmp_path / "crawl", 2)
        leave(tmp_path / "crawl", [url, url + "/two"])
        words = ["--crawl", tmp_path / "crawl", "--config", tmp_path / "pipeline.toml", "--until-done"]
        done = subprocess.run([ROOT / "bin/crawl", *words, "--patience", "5"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "done for now: all that waits belongs to servers that are not due before" in done.stdout
    assert "left: 2 URLs of 1 server\n" in done.stdout
    assert f"{url.removesuffix('/one')}: 2 URLs, due " in done.stdout and "connection_refused" in done.stdout
    assert f"later: bin/crawl --crawl {tmp_path / 'crawl'} --until-done\n" in done.stdout
