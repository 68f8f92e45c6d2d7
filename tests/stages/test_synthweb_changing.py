"""Judges the judge: pages of the changing web change as often as they should, and its answers are as HTTP says."""

import http.client
import json
import subprocess
import sys
from datetime import datetime
from email.utils import parsedate_to_datetime
from xml.etree import ElementTree

import pytest

from synthweb import ChangingWeb, set_clock
from synthweb.changing import DAY_MS, DEAF, DRIFTING, PER_DAY, START_MS
from synthweb.changing_web import is_unchanged
from tests.served_web import PATIENCE_S, ROOT

SEED, SERVERS, PAGES = 5, 6, 40
DAYS = 300
END_MS = START_MS + DAYS * DAY_MS


@pytest.fixture(scope="module")
def web() -> ChangingWeb:
    return ChangingWeb(SEED, SERVERS, PAGES, 8080)


@pytest.fixture(scope="module")
def pages(web):
    return web.truth().pages


def of_kind(pages, kind):
    return [page for page in pages.values() if page.kind == kind]


@pytest.mark.parametrize("kind", PER_DAY)
def test_pages_of_each_kind_change_at_its_rate(pages, kind):
    found = of_kind(pages, kind)
    mean = sum(page.version(END_MS) for page in found) / len(found) / DAYS
    assert len(found) > 10 and mean == pytest.approx(PER_DAY[kind], rel=0.2)


def test_rates_of_the_others_differ_much_and_are_kept(pages):
    found = of_kind(pages, "lognormal")
    rates = sorted(page.per_day for page in found)
    assert rates[len(rates) // 10] * 10 < rates[-len(rates) // 10]
    expected = sum(rates) * DAYS
    assert sum(page.version(END_MS) for page in found) == pytest.approx(expected, rel=0.1)


def test_the_same_seed_gives_the_same_web_in_any_order_of_asking(web):
    again = ChangingWeb(SEED, SERVERS, PAGES, 8080)
    moments = [START_MS + day * DAY_MS for day in (0, 1, 30, 90)]
    place = next(page.url for page in of_kind(web.truth().pages, "daily"))
    answers = [web.answer(place.host, place.target(), moment) for moment in moments]
    later_first = [again.answer(place.host, place.target(), moment) for moment in reversed(moments)]
    assert answers == later_first[::-1] and len({answer.body for answer in answers}) > 1
    assert web.seeds() == again.seeds() and web.hosts() == again.hosts()


def test_a_version_lasts_from_its_change_to_the_next(pages):
    for page in pages.values():
        for version in (0, 1, 5):
            began = page.changed_at_ms(version)
            if began < END_MS:
                assert page.version(began) == version and (version == 0 or page.version(began - 1) == version - 1)
                assert page.fresh_until_ms(began) == min(page.changed_at_ms(version + 1), page.gone_ms)


def test_pages_go_and_come(web, pages):
    gone, late = of_kind(pages, "gone")[0], next(page for page in pages.values() if page.late)
    assert web.answer(gone.url.host, gone.url.target(), gone.gone_ms - 1).status == 200
    assert web.answer(gone.url.host, gone.url.target(), gone.gone_ms).status in (404, 410)
    change, new = late.late[0]
    for moment, status in ((new.born_ms - 1, 404), (new.born_ms, 200)):
        assert web.answer(new.url.host, new.url.target(), moment).status == status
        body = web.answer(late.url.host, late.url.target(), moment).body
        assert (new.url.text(8080).encode() in body) == (status == 200)
    assert new.url.text(8080).encode() in web.body(late, change + 3), "what is linked once stays linked"


def test_every_page_is_reached_from_the_seeds(web, pages):
    truth, moment = web.truth(), START_MS + 60 * DAY_MS
    reached, waiting = set(), list(web.seeds())
    while waiting:
        if (url := waiting.pop()) in reached:
            continue
        reached.add(url)
        if truth.at(url, moment) is not None:
            page = pages[url]
            body = web.body(page, page.version(moment)).decode()
            waiting += [line.split('"')[1] for line in body.splitlines() if "href" in line]
    assert reached >= truth.existing(moment)


def test_conditions_are_obeyed_but_for_two_servers(web, pages):
    moment = START_MS + 50 * DAY_MS
    seen = set()
    for page in pages.values():
        if not page.exists(moment) or page.kind == "second":
            continue
        ask = (page.url.host, page.url.target())
        headers = dict(web.answer(*ask, moment).headers)
        assert page.validators != "none" or not headers.keys() & {"ETag", "Last-Modified"}
        conditions = headers.get("ETag", ""), headers.get("Last-Modified", "")
        answer = web.answer(*ask, moment, *conditions, attempt=2)
        number = list(web.servers).index(page.url.host)
        if number == DEAF or page.validators == "none":
            assert answer.status == 200
        elif number == DRIFTING and page.validators in ("both", "etag"):
            assert answer.status == 200 and answer.body == web.answer(*ask, moment).body
            assert dict(answer.headers)["ETag"] != conditions[0]
        else:
            assert answer.status == 304 and answer.body == b"" and answer.framing == "none"
            seen.add(page.validators)
        later = page.fresh_until_ms(moment)
        if page.per_day and later < page.gone_ms:
            assert web.answer(*ask, later, *conditions, attempt=2).status == 200
            since = dict(web.answer(*ask, later).headers).get("Last-Modified")
            assert since is None or parsedate_to_datetime(since).timestamp() == later // 1000
    assert seen == {"both", "etag", "modified"}


@pytest.mark.parametrize(
    "etag, modified, none_match, since, unchanged",
    [
        ('"a"', "", '"b", W/"a"', "", True),
        ('W/"a"', "", '"a"', "", True),
        ('"a"', "", "*", "", True),
        ('"a"', "Tue, 01 Jan 2030 00:00:00 GMT", '"b"', "Tue, 01 Jan 2030 00:00:00 GMT", False),
        ("", "Tue, 01 Jan 2030 00:00:00 GMT", "", "Tue, 01 Jan 2030 00:00:01 GMT", True),
        ("", "Tue, 01 Jan 2030 00:00:01 GMT", "", "Tue, 01 Jan 2030 00:00:00 GMT", False),
        ("", "Tue, 01 Jan 2030 00:00:01 GMT", "", "yesterday", False),
        ("", "", '"a"', "", False),
    ],
)
def test_what_counts_as_unchanged(etag, modified, none_match, since, unchanged):
    assert is_unchanged(etag, modified, none_match, since) == unchanged


def test_sitemaps_are_true_but_those_of_liars(pages):
    dated, moment = ChangingWeb(SEED, SERVERS, PAGES, 8080, sitemaps=True), START_MS + 20 * DAY_MS
    assert [dated.lies(host) for host in dated.hosts()] == [False, False, True] * 2
    for host in dated.hosts():
        robots = dated.answer(host, "/robots.txt", moment)
        assert robots.body.decode() == f"Sitemap: http://{host}:8080/sitemap.xml\n"
        root = ElementTree.fromstring(dated.answer(host, "/sitemap.xml", moment).body)
        dates = {loc.text: datetime.fromisoformat(date.text).timestamp() * 1000 for loc, date in root}
        assert set(dates) == {url for url, page in pages.items() if page.url.host == host and page.exists(moment)}
        for url, at_ms in dates.items():
            true_ms = pages[url].changed_at_ms(pages[url].version(moment))
            wanted = moment - 60_000 if dated.lies(host) else true_ms - true_ms % 1000
            assert at_ms == (moment + 365 * DAY_MS if pages[url].url.path == "/" else wanted)


def test_without_sitemaps_there_is_no_robots_txt(web):
    host = next(iter(web.hosts()))
    assert {web.answer(host, target, START_MS).status for target in ("/robots.txt", "/sitemap.xml")} == {404}


def test_freshness_is_known(web, pages):
    truth, moment = web.truth(), START_MS + 20 * DAY_MS
    existing = truth.existing(moment)
    copies = [(url, truth.at(url, moment), moment) for url in existing]
    assert truth.freshness(copies, moment) == 1
    assert truth.freshness(copies[: len(copies) // 2], moment) == pytest.approx(0.5, abs=0.01)
    stale = sum(pages[url].version(END_MS) > pages[url].version(moment) for url in truth.existing(END_MS) & existing)
    born = len(truth.existing(END_MS) - existing)
    assert truth.freshness(copies, END_MS) == pytest.approx(1 - (stale + born) / len(truth.existing(END_MS)))
    assert truth.freshness(copies, moment - 1) == 0


def test_mean_freshness_is_the_exact_integral(web, pages):
    truth, daily = web.truth(), next(url for url, page in pages.items() if page.kind == "daily")
    page = pages[daily]
    lives = sum(max(0, min(p.gone_ms, END_MS) - max(p.born_ms, START_MS)) for p in pages.values())
    first, second = page.changed_at_ms(1), page.changed_at_ms(2)
    visits = [(daily, first), (daily, first + 1_000)]  # the second one adds nothing
    assert truth.mean_freshness(visits, START_MS, END_MS) * lives == pytest.approx(second - first)
    late = [(daily, (first + second) / 2)]
    assert truth.mean_freshness(late, START_MS, END_MS) * lives == pytest.approx((second - first) / 2)
    assert truth.mean_freshness([(daily, second)], START_MS, second) == 0


def test_it_is_served_at_the_moment_that_a_test_sets(tmp_path):
    state = tmp_path / "state"
    command = [sys.executable, "-P", "-m", "synthweb", "changing", "--seed", "5", "--servers", "2", "--pages", "9"]
    command += ["--port", "0", "--state", str(state), "--until-eof"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stderr.readline()  # it speaks once it listens
    web = ChangingWeb(5, 2, 9, json.loads((state / "ready.json").read_bytes())["port"])
    asked = f"changing-{DRIFTING}.test"  # it obeys If-Modified-Since
    page = next(
        page
        for page in web.truth().pages.values()
        if (page.url.host, page.validators) in ((asked, "both"), (asked, "modified")) and page.version(END_MS)
    )
    connection = http.client.HTTPConnection(web.hosts()[page.url.host], web.port, timeout=PATIENCE_S)

    def ask(**headers):
        host = f"{page.url.host}:{web.port}"
        connection.request("GET", page.url.target(), headers={"Host": host, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.getheader("Last-Modified")

    status, body, modified = ask()
    assert (status, body) == (200, web.body(page, 0))
    set_clock(state, END_MS)
    assert ask(**{"If-Modified-Since": modified})[:2] == (200, web.body(page, page.version(END_MS)))
    assert ask(**{"If-Modified-Since": ask()[2]})[:2] == (304, b"")
    assert ask()[0] == 200, "nothing of the 304 is left in the connection"
    connection.close()
    process.stdin.close()
    assert process.wait(timeout=PATIENCE_S) == 0
    process.stderr.close()
    lines = [json.loads(line) for line in (state / "access.jsonl").read_text().splitlines()]
    assert [line["started_wall_ms"] for line in lines[:2]] == [START_MS, END_MS]
