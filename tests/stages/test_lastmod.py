"""`<lastmod>` from a sitemap's record to the visit that tests it: trust per server, visits that come sooner, books."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from contract import names, revisits
from contract.config import Config, Priority, Revisit
from contract.generation import BLOCK_SERVERS, SERVERS_FILE, open_generation
from contract.log import CRAWL
from contract.tables import COLLECTED_STATE, FAILED
from examine import block_books, prepared_books
from examine.url_history import find_known, identify
from examine.visits import describe_lastmod, describe_next
from examine.why import describe, gather
from stages.verifier import merge
from stages.verifier.rebuild import rebuild_block
from storage.columns import Columns, PackedWriter, read_packed
from storage.tables import read_table, write_table
from tests.extractor_lab import WarcFile, alone, http
from tests.small_crawl import NOW_MS, Page, SmallCrawl
from tests.visited_pages import find_wrong, manifests, match_manifest

HOUR_S, DAY_S, DAY_MS = 3_600.0, 86_400.0, 86_400_000
REVISIT = Revisit(
    policy="uniform", interval_s=8 * DAY_S, interval_min_s=DAY_S, interval_max_s=80 * DAY_S, share_max=1.0
)
CONFIG = Config(revisit=REVISIT)
TRUE, FALSE, SITEMAP = "http://true.test/", "http://false.test/", "http://maps.test/sitemap.xml"
PAGES = (TRUE, FALSE)


def entry(path: str, at_s: float) -> str:
    date = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"<url><loc>{path}</loc><lastmod>{date}</lastmod></url>"


def test_dates_come_into_the_tables_but_none_after_the_visit(tmp_path):
    """One URL in two spellings has the newer date of both."""
    now_s = NOW_MS // 1000
    given = {"/old": now_s - DAY_S, "/now": now_s, "/soon": now_s + HOUR_S, "/ahead": now_s + 365 * DAY_S}
    spelled = {"/x/../two": 10, "/two": 9}
    text = "".join(entry(f"http://a.test{path}", at_s) for path, at_s in {**given, **spelled}.items())
    file = WarcFile()
    file.answer("http://a.test/sitemap.xml", http(f"<urlset>{text}</urlset>".encode(), 200, "application/xml"))
    rows = {row["url"]: row["lastmod_s"] for row in alone(tmp_path, file).rows("UrlsExtraidas.parquet")}
    wanted = {"/old": now_s - DAY_S, "/now": now_s, "/soon": 0, "/ahead": 0, "/two": 10}
    assert rows == {f"http://a.test{path}": lastmod_s for path, lastmod_s in wanted.items()}


def test_a_sitemap_gives_no_dates_to_another_registered_domain(tmp_path):
    """Else anyone could claim that pages of others change, until no claim of theirs is trusted."""
    own, foreign = ("http://www.evil.test/", "https://evil.test/a"), ("http://victim.test/", "http://x.victim.test/")
    text = "".join(entry(url, NOW_MS // 1000 - DAY_S) for url in (*own, *foreign))
    file = WarcFile()
    file.answer("http://evil.test/sitemap.xml", http(f"<urlset>{text}</urlset>".encode(), 200, "application/xml"))
    rows = {row["url"]: row for row in alone(tmp_path, file).rows("UrlsExtraidas.parquet")}
    assert {url for url, row in rows.items() if row["lastmod_s"]} == set(own) and set(rows) == {*own, *foreign}


class Days:
    """A crawl of two pages and a sitemap of a third server, day by day."""

    def __init__(self, small: SmallCrawl):
        self.small = small
        small.seed([*PAGES, SITEMAP])
        small.absorb_all()

    def turn(self, day: float, pages: dict[str, Page], url: str = TRUE) -> list[str]:
        """A cycle of the block of a URL, in which only these pages are reached; returns its list."""
        now_ms = NOW_MS + round(day * DAY_MS)
        log = self.small.history()
        block = identify(self.small.crawl, log, url).block
        plan = self.small.plan(CRAWL, block, now_ms)
        listed = self.small.schedule(plan)
        self.small.harvest(plan, {name: replace(page, at_ms=now_ms) for name, page in pages.items()})
        self.small.verify(plan)
        return listed

    def server(self, url: str) -> dict:
        return self.known(url)["server"]

    def known(self, url: str) -> dict:
        log = self.small.history()
        return find_known(self.small.crawl.path, log, identify(self.small.crawl, log, url), self.small.config)

    def claims(self, url: str) -> tuple[int, int]:
        """(tested, true)."""
        return self.server(url)["lastmod_claims"], self.server(url)["lastmod_true"]


def content(number: int, **more) -> Page:
    return Page(digest=bytes([number]) * 16, **more)


def dated(day: float, *urls: str) -> Page:
    """A sitemap that says that these pages changed on that day."""
    return content(99, links=list(urls), lastmods=dict.fromkeys(urls, NOW_MS // 1000 + round(day * DAY_S)))


@pytest.fixture
def days(tmp_path) -> Days:
    """One block; both pages were seen on day 0."""
    days = Days(SmallCrawl(tmp_path / "crawl", 1, CONFIG))
    days.turn(0, {TRUE: content(1), FALSE: content(1)})
    return days


def test_a_server_whose_claims_are_true_gains_trust_and_one_that_lies_loses_it(days):
    for turn in range(1, 5):
        assert not set(days.turn(9 * turn - 4, {SITEMAP: dated(9 * turn - 5, *PAGES)})) & set(PAGES)
        listed = days.turn(9 * turn, {TRUE: content(1 + turn), FALSE: content(1, is_revisit=turn % 2 == 0)})
        assert set(PAGES) <= set(listed)
    assert (days.claims(TRUE), days.claims(FALSE)) == ((4, 4), (4, 0))
    assert find_wrong(days.small) == {}
    days.turn(38, {SITEMAP: dated(37, *PAGES)})  # the last visit was on day 36: 8 days, or (1 - p) of them
    assert "4 of its 4 tested lastmod dates were true" in describe_lastmod(0, days.server(TRUE))
    assert TRUE not in days.turn(37.3, {})  # p = 5 / 6, so after 1.33 days
    assert TRUE in days.turn(37.4, {}) and FALSE not in days.turn(42.6, {})  # p = 1 / 6: after 6.67 days
    assert FALSE in days.turn(42.7, {})


def test_a_block_without_dates_reads_none(days, monkeypatch):
    """Neither the scheduler nor the merge of a turn with visits."""
    read, names_read = Columns.read, set()

    def watch(columns: Columns, name: str, start: int, stop: int):
        names_read.add(name)
        return read(columns, name, start, stop)

    monkeypatch.setattr(Columns, "read", watch)
    monkeypatch.setattr(merge, "judge_claims", None)
    monkeypatch.setattr(revisits, "claim_trust", None)
    plan = days.small.plan(CRAWL, 0, NOW_MS + 9 * DAY_MS)
    assert set(PAGES) <= set(days.small.schedule(plan))
    assert "state" in names_read and "lastmod_s" not in names_read
    days.small.harvest(plan, {url: content(2, at_ms=NOW_MS + 9 * DAY_MS) for url in PAGES})
    assert days.small.verify(plan)["changed"] == 2


def test_why_prints_the_date_and_what_the_dates_of_its_server_were_worth(days):
    days.turn(1, {SITEMAP: dated(0.5, *PAGES)})
    days.turn(8, {TRUE: content(2), FALSE: content(1)})
    told = {}
    for url in (TRUE, FALSE, SITEMAP):
        lines = describe(gather(days.small.crawl, url, NOW_MS), days.small.crawl.path)
        told[url] = [line.partition(",")[2] for line in lines if line.startswith("lastmod ")]
    assert told == {
        TRUE: [" by a sitemap; http://true.test: 1 of its 1 tested lastmod date was true"],
        FALSE: [" by a sitemap; http://false.test: 0 of its 1 tested lastmod date was true"],
        SITEMAP: [],
    }


def test_rebuild_counts_the_same_claims(days):
    days.turn(1, {SITEMAP: dated(0.5, *PAGES)})
    days.turn(8, {TRUE: content(2), FALSE: content(1)})
    (live(days.small) / SERVERS_FILE).write_bytes(b"damaged")
    assert "the same bytes" in rebuild_block(days.small.crawl, days.small.history(), 0)
    assert (days.claims(TRUE), days.claims(FALSE)) == ((1, 1), (1, 0))


def test_without_a_claim_nothing_changes(days):
    """A date of before the last visit is none, and none is tested by a visit."""
    days.turn(0.5, {SITEMAP: dated(-1, *PAGES)})
    assert not set(days.turn(7.9, {})) & set(PAGES)
    assert set(PAGES) <= set(days.turn(8, {TRUE: content(2), FALSE: content(2)}))
    assert days.claims(TRUE) == days.claims(FALSE) == (0, 0)


def test_a_claim_that_cannot_be_judged_is_not_tested(days):
    """A content that is not known, or a visit that failed; the latter is a visit all the same, and ends the claim."""
    days.turn(1, {SITEMAP: dated(0.5, *PAGES)})
    days.turn(8, {TRUE: Page(), FALSE: Page(outcome=FAILED, reason="timeout_connect")})
    assert days.claims(TRUE) == days.claims(FALSE) == (0, 0)
    days.turn(17, {TRUE: content(3), FALSE: content(3)})
    assert days.claims(TRUE) == days.claims(FALSE) == (0, 0)


def test_a_claim_makes_the_block_due(days):
    """Of both pages at once, through a cycle of its own; a rule with an interval of its own keeps that."""
    (before,) = manifests(days.small)
    days.turn(1, {SITEMAP: dated(0.5, *PAGES)})
    (after,) = manifests(days.small)
    assert (before["revisit_due_ms"], after["revisit_due_ms"]) == (NOW_MS + 8 * DAY_MS, NOW_MS + 4 * DAY_MS)
    assert days.turn(3.9, {}) == [] and set(days.turn(4, {})) == set(PAGES)


def test_a_rule_with_an_interval_keeps_it(tmp_path):
    days = Days(
        SmallCrawl(
            tmp_path / "crawl", 1, replace(CONFIG, priority=(Priority(surt="test,true,", interval_s=6 * DAY_S),))
        )
    )
    days.turn(0, {TRUE: content(1), FALSE: content(1)})
    days.turn(1, {SITEMAP: dated(0.5, *PAGES)})
    assert (days.turn(5.9, {}), set(days.turn(6, {}))) == ([FALSE], set(PAGES))


@pytest.mark.parametrize("policy", ["uniform", "proportional", "optimal"])
def test_scheduler_verifier_and_why_agree_on_when_a_page_is_due(tmp_path, policy):
    days = Days(SmallCrawl(tmp_path / "crawl", 1, replace(CONFIG, revisit=replace(REVISIT, policy=policy))))
    days.turn(0, {url: content(1) for url in (*PAGES, SITEMAP)})
    days.turn(10, {TRUE: content(2), FALSE: content(1), SITEMAP: dated(9, *PAGES)})
    days.turn(10.25, {SITEMAP: dated(10.2, TRUE)})
    assert days.claims(TRUE) == (0, 0)
    (manifest,) = manifests(days.small)
    due = {url: days.known(url)["next"]["due_at_ms"] for url in (*PAGES, SITEMAP)}
    assert manifest["revisit_due_ms"] == min(due.values()) == due[TRUE] < due[FALSE]
    day = (due[TRUE] - NOW_MS) / DAY_MS
    assert TRUE not in days.turn(day - 0.001, {}) and TRUE in days.turn(day, {})
    told = describe_next(days.known(TRUE), days.small.config, NOW_MS)
    assert "its sitemap says that it has changed since the last visit" in told
    assert "sitemap" not in describe_next(days.known(FALSE), days.small.config, NOW_MS)


def test_claims_cross_aux_and_survive_splits(tmp_path):
    """The sitemap is of another block than the pages, and in the end each half has its servers' counts."""
    small = SmallCrawl(tmp_path / "crawl", 2, CONFIG)
    pages = [f"http://s{number}.test/" for number in range(12)]
    small.seed([*pages, SITEMAP])
    small.absorb_all()
    days = Days.__new__(Days)
    days.small = small
    home = identify(small.crawl, small.history(), SITEMAP).block
    away = [url for url in pages if identify(small.crawl, small.history(), url).block != home]
    days.turn(0, dict.fromkeys(away, content(1)), away[0])
    days.turn(1, {SITEMAP: dated(0.5, *pages)}, SITEMAP)
    assert find_wrong(small) == {}, "the dates wait in AUX"
    small.absorb_all()
    assert all(days.known(url)["lastmod_s"] for url in pages)
    assert set(days.turn(4, {url: content(1 + number % 2) for number, url in enumerate(away)}, away[0])) == set(away)
    wanted = {url: (1, number % 2) for number, url in enumerate(away)}
    assert {url: days.claims(url) for url in away} == wanted
    days.turn(5, {SITEMAP: dated(4.5, *away)}, SITEMAP)
    small.absorb_all()
    (due_before,) = {manifest["revisit_due_ms"] for manifest in manifests(small) if manifest["block"] == 1 - home}
    small.grow(0)
    small.grow(1)
    assert {url: days.claims(url) for url in away} == wanted and find_wrong(small) == {}
    dues = [manifest["revisit_due_ms"] for manifest in manifests(small) if manifest["collected"]]
    assert due_before in dues  # that of the servers whose claim was true


# The books.


def live(small: SmallCrawl):
    return small.crawl.path / names.generation(0, small.crawl_state.log.generation(0))


def forge_server(small: SmallCrawl, server: str, **columns: int) -> None:
    path = live(small) / SERVERS_FILE
    rows = read_table(path, BLOCK_SERVERS).to_pylist()
    rows = [{**row, **(columns if row["server"] in server else {})} for row in rows]
    write_table(path, pa.Table.from_pylist(rows, schema=BLOCK_SERVERS))
    match_manifest(path)


@pytest.mark.parametrize(
    "claims, true, is_wrong", [(1, 1, False), (1, 0, False), (1, 2, True), (2, 1, True), (0, 1, True)]
)
def test_books_find_more_claims_than_visits_could_test(days, claims, true, is_wrong):
    days.turn(8, {TRUE: content(2), FALSE: content(2)})
    forge_server(days.small, TRUE, lastmod_claims=claims, lastmod_true=true)
    assert list(find_wrong(days.small)) == [prepared_books.TESTED] * is_wrong


@pytest.mark.parametrize("name", ["lastmod_s", "linked_day"])
@pytest.mark.parametrize("change", [-1, 1])
def test_books_find_a_tampered_latest_value(days, name, change):
    days.turn(1, {SITEMAP: dated(0.5, *PAGES)})
    assert find_wrong(days.small) == {}
    path = live(days.small) / f"{name}.npy.zst"
    values = np.array(read_packed(path))
    row = int(np.flatnonzero(values)[0])
    values[row] += change
    path.unlink()
    writer = PackedWriter(path, values.dtype.str)
    writer.append(values)
    writer.close()
    match_manifest(path)
    wrong = find_wrong(days.small)
    assert list(wrong) == [block_books.LATEST]
    assert len(wrong[block_books.LATEST]) == 1 and f"row {row}: {name} of" in wrong[block_books.LATEST][0]


def test_what_a_rule_refused_may_have_less_but_not_more(tmp_path):
    """A domain of one server at most: URLs of the second one are refused, and what a sitemap says of them is lost."""
    small = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    days = Days(small)
    days.turn(0, {TRUE: content(1), FALSE: content(1)})
    narrow = replace(CONFIG, verifier=replace(CONFIG.verifier, server_max_urls=1))
    small.config = narrow
    days.turn(1, {SITEMAP: dated(0.5, "http://true.test/more", TRUE)})
    assert find_wrong(small) == {}
    small.config = CONFIG
    days.turn(9, {TRUE: content(2, links=["http://true.test/more"])})
    assert days.known("http://true.test/more")["lastmod_s"] == 0
    assert find_wrong(small) == {}
    generation = open_generation(small.crawl.path, 0, small.crawl_state.log.generation(0))
    assert int((generation.rows["state"] == COLLECTED_STATE).sum()) == 3
