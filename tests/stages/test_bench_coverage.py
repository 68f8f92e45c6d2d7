"""bin/bench coverage: what the server's log tells, what is counted, and what explains a difference."""

import pytest

from bench.coverage.asking import CRAWLER, WGET, Asked, read_log
from bench.coverage.comparison import UNEXPLAINED, Referer, Row, count_sorts, explain_ours, explain_theirs, group
from bench.coverage.evidence import Books, Evidence
from bench.coverage.sites import read_file
from bench.nginx import Host, Site, write_configuration
from contract.config import Extractor
from tests.extractor_lab import Cycle, configured, page_file

PAGE = Asked(200, "text/html")
FOLLOW = frozenset(Extractor().follow)
HOME = "http://a.test/dir/"
SEEN = Referer(HOME, True, "", "<script>x = \"<a href='\" + base + \"'>\"</script><a href='plain'>")


def test_a_log_is_read_by_agent_and_robots_txt_is_left_out():
    text = "".join(
        f"a.test:81\t{path}\t{status}\t{kind}\t{referer}\t{agent}/1.0\n"
        for path, status, kind, referer, agent in (
            ("/robots.txt", 200, "text/plain", "", WGET),
            ("/b%7ec", 500, "text/html", "", WGET),
            ("/b~c?q", 200, "text/html; charset=x", "http://A.test:81", WGET),
            ("/other", 404, "-", "", CRAWLER),
        )
    )
    assert read_log(text, WGET) == {
        "http://a.test:81/b%7ec": Asked(500, "text/html"),
        "http://a.test:81/b~c?q": Asked(200, "text/html", "http://a.test:81/"),
    }
    assert read_log(text, CRAWLER) == {"http://a.test:81/other": Asked(404, "-")}


def test_sorts_are_counted_with_documents_first():
    ours = {"a": PAGE, "b": PAGE, "d": Asked(404, "")}
    theirs = {"a": PAGE, "c": Asked(200, "image/png"), "d": Asked(404, ""), "e": Asked(301, "text/html")}
    assert count_sorts(ours, theirs) == [
        Row("text/html", 1, 0, 1),
        Row("other files", 0, 1, 0),
        Row("redirects", 0, 1, 0),
        Row("status 404", 1, 0, 0),
    ]


@pytest.mark.parametrize(
    "url, evidence, rule, referer, why",
    [
        ("a.gif", Evidence(), "reject_extensions", SEEN, "extension rejected: gif"),
        ("a", Evidence({"a"}, is_followed=True), "path_depth_max", SEEN, "rejected by path_depth_max"),
        ("a", Evidence({"link", "form"}), "", SEEN, "kind not followed: form, link"),
        ("a", Evidence({"a", "image"}, is_nofollow=True), "", SEEN, "nofollow"),
        ("a", Evidence({"a"}, is_followed=True, outcome="refused", reason="robots"), "", SEEN, "refused: robots"),
        (
            "a",
            Evidence({"a"}, is_followed=True, outcome="failed", reason="timeout"),
            "",
            SEEN,
            f"{UNEXPLAINED}: followed, and then failed timeout",
        ),
        ("a", Evidence({"a"}, is_followed=True), "", SEEN, f"{UNEXPLAINED}: followed, and then not reached"),
        ("a", Evidence({"a"}), "", SEEN, f"{UNEXPLAINED}: links are not followed (a)"),
        ("%22%20+%20base%20+%20%22", Evidence(), "", SEEN, "a string in a script, which wget takes for markup"),
        ("plain", Evidence(), "", SEEN, f"{UNEXPLAINED}: no link to it was found in {HOME}"),
        ("%5Cx", Evidence(), "", SEEN, "a back-slash, which browsers take for a slash and wget for a letter"),
        (
            "x",
            Evidence(),
            "",
            Referer(HOME + "s.css", False, "reject_extensions", ""),
            "found in a file that was not fetched (extension rejected: css)",
        ),
        (
            "x",
            Evidence(),
            "",
            Referer("", False, "", ""),
            f"{UNEXPLAINED}: no link to it was found, nor where wget found one",
        ),
    ],
)
def test_why_the_crawler_did_not_ask(url, evidence, rule, referer, why):
    assert explain_theirs(HOME + url, evidence, rule, FOLLOW, referer) == why


@pytest.mark.parametrize(
    "evidence, why",
    [
        (Evidence({"text"}, {"pdf"}, True), "kind that wget does not know: text"),
        (Evidence({"a"}, {"office"}, True), "found in what wget does not read: office"),
        (Evidence({"a", "text"}, {"html", "text"}, True), f"{UNEXPLAINED}: a, text"),
        (Evidence(), f"{UNEXPLAINED}: no link to it was found"),
    ],
)
def test_why_wget_did_not_ask(evidence, why):
    assert explain_ours(evidence) == why


def test_groups_are_told_with_the_largest_first():
    assert list(group({"b1", "a1", "b2"}, lambda url: url[0]).items()) == [("b", ["b1", "b2"]), ("a", ["a1"])]


def test_the_crawl_tells_which_links_lead_to_a_url_and_what_became_of_it(tmp_path):
    one, two, picture = HOME + "1", HOME + "2", HOME + "p.png"
    file = page_file(
        {
            one: f"<a href=2 rel=nofollow>x</a><img src={picture}>",
            two: f"<link rel=canonical href={two}><a href={picture}>p</a>",
        }
    )
    cycle = Cycle(tmp_path / "crawl", {one: 0, two: 1}, file, config=configured("extractor", keep_links="all"))
    cycle.extract()
    books = Books(tmp_path / "crawl")
    found = books.of([two, picture, HOME + "unknown"])
    assert (books.cycles, books.collected[one]) == (1, ("answered", ""))
    assert found[two] == Evidence({"a", "canonical"}, {"html"}, True, False, "answered")
    assert found[picture] == Evidence({"image", "a"})
    assert found[HOME + "unknown"] == Evidence()


def test_links_that_all_say_nofollow_are_told(tmp_path):
    one, two = HOME + "1", HOME + "2"
    cycle = Cycle(tmp_path / "crawl", {one: 0}, page_file({one: "<a href=2 rel=nofollow>x</a>"}))
    cycle.extract()
    assert Books(tmp_path / "crawl").of([two])[two] == Evidence({"a"}, is_nofollow=True)


def test_what_a_site_serves(tmp_path):
    (tmp_path / "d e").mkdir()
    (tmp_path / "d e" / "index.html").write_text("index")
    hosts = {Site("a.test", "127.0.0.1"): Host(tmp_path, [])}
    assert (
        read_file(hosts, "http://a.test:81/d%20e/") == read_file(hosts, "http://a.test/d%20e/index.html?q") == "index"
    )
    assert read_file(hosts, "http://a.test/none") == read_file(hosts, "http://b.test/") == ""


def test_names_share_an_address_and_its_options_are_given_once(tmp_path):
    hosts = [
        Host(tmp_path / "one", ["127.2.1.1", "127.2.0.1"], "one.test"),
        Host(tmp_path / "two", ["127.2.1.2", "127.2.0.1"], "two.test", "User-agent: *\n"),
    ]
    text = write_configuration(hosts, 81, tmp_path, tmp_path / "log")
    assert text.count("listen 127.2.0.1:81 backlog=4096;") == text.count("listen 127.2.0.1:81;") == 1
    assert (
        "server_name two.test;" in text
        and 'return 200 "User-agent: *\\n"' in text
        and f"access_log {tmp_path / 'log'} asked" in text
    )
    assert "access_log off" in write_configuration(hosts, 81, tmp_path, None)
