"""The text of robots.txt: ends of lines, encodings, delays, sitemaps, texts made to cost, answers that hold none."""

import time

import pytest
from protego import Protego

from contract.robots import WORK_MAX, Answer, Rules, find_target, read_answer
from contract.robots_groups import SITEMAPS_MAX, read_sitemaps
from contract.warc import HttpMessage
from synthweb.robots import BARRED, LATE, ORDINARY
from tests.unit.test_robots_rules import EVERYBODY, SITE, allowed


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_ends_of_lines(end):
    text = end.join(["User-agent: um", "Disallow: /", "", "User-agent: *", "", "", "Disallow: /a"])
    for last in ("", end, end * 3):
        assert (
            Rules((text + last).encode(), "coletor", SITE).rule_for(SITE + "/a")
            == "Disallow: /a (line 7, for user-agent *)"
        )


@pytest.mark.parametrize(
    "start, is_read",
    [
        (b"", True),
        (b"\xef\xbb\xbf", True),
        (b"\xef\xbb", True),
        (b"\xef", True),
        (b"\xef\x11\xbf", False),
        (b"\xbb\xbf", False),
        (b"x", False),
    ],
)
def test_byte_order_marks(start, is_read):
    assert Rules(start + b"User-agent: *\nDisallow: /", "coletor", SITE).allows(SITE + "/a") is not is_read


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16be", "utf-16le", "utf-8-sig", "latin-1"])
def test_encodings_of_the_text(encoding):
    assert allowed("User-agent: *\r\nDisallow: /a\r\n".encode(encoding), "/a", "/b") == "/b"


def test_lines_may_be_long():
    path = "/" + "a" * 6000
    assert (
        allowed(f"{EVERYBODY}Disallow: {path}\nDisallow: /{'b' * 20_000}", path, path[:-1], "/b") == path[:-1] + " /b"
    )


@pytest.mark.parametrize(
    "text, delay_s",
    [
        ("User-agent: *\nCrawl-delay: 2.5", 2.5),
        ("User-agent: *\nCrawl-delay: .5", 0.5),
        ("User-agent: *\nCrawl delay 3", 3),
        ("User-agent: um\nCrawl-delay: 2", 0),
        ("Crawl-delay: 2", 0),
        ("User-agent: *\nCrawl-delay: -2", 0),
        ("User-agent: *\nCrawl-delay: nan", 0),
        ("User-agent: *\nCrawl-delay: 1" + "0" * 400, 604_800),
        ("User-agent: *\nCrawl-delay: 10 s", 10),
        ("User-agent: *\nCrawl-delay:", 0),
        ("User-agent: *\nCrawl-delay: 2\nUser-agent: coletor\nCrawl-delay: 3", 3),
        ("User-agent: coletor\nCrawl-delay: 3\nDisallow:\nUser-agent: *\nCrawl-delay: 2", 3),
        ("User-agent: *\nCrawl-delay: 2\nDisallow:\nUser-agent: coletor\nDisallow: /a", 2),
        ("User-agent: *\nCrawl-delay: 2\nUser-agent: um\nCrawl-delay: 9", 2),
    ],
)
def test_delays(text, delay_s):
    assert Rules(text.encode(), "coletor", SITE).delay_s == delay_s


def test_sitemaps_stand_anywhere_and_are_canonical():
    text = (
        "Sitemap: HTTP://Site.test:80/s.xml#x\nUser-agent: um\nsite-map: https://other.test/a b\nDisallow: /\nSITEMAP http://site.test/s.xml\n"
        "Sitemap: /relative.xml\nSitemap: ftp://site.test/\nSitemap: http://[\nSitemap:\nSitemap: http://site.test/\xff\n"
    )
    assert Rules(text.encode("latin-1"), "coletor", SITE).sitemaps == (
        "http://site.test/s.xml",
        "https://other.test/a%20b",
        "http://site.test/%EF%BF%BD",
    )
    many = b"".join(b"Sitemap: http://site.test/%d\n" % n for n in range(SITEMAPS_MAX + 5))
    assert len(Rules(many, "coletor", SITE).sitemaps) == SITEMAPS_MAX
    for one in (
        text.encode("latin-1"),
        many,
        b"\xff\xfe" + "Sitemap: http://site.test/s".encode("utf-16-le"),
        b"Disallow: /sitemap",
        b"",
    ):
        assert read_sitemaps(one) == list(Rules(one, "coletor", SITE).sitemaps)


def test_the_rule_that_decided_is_told():
    rules = Rules(
        (
            b"# hello\r\n\r\nUser-agent: *\r\nDisallow: /\r\n\r\nUser-agent: "
            b"Coletor/2\r\ndisalow:/p\x1b[2J\xff # no\r\nAllow: /index.html"
        ),
        "Coletor",
        SITE,
    )
    assert rules.rule_for(SITE + "/p%1B[2J%FFx") == "Disallow: /p\\x1b[2J\\xff (line 7, for user-agent coletor)"
    assert rules.rule_for(SITE + "/") == "Allow: /index.html (line 8, for user-agent coletor)"
    assert rules.rule_for(SITE + "/q") == rules.rule_for(SITE + "/robots.txt") == "no rule"
    assert (
        Rules(b"User-agent: *\nAllow: /a", "coletor", SITE).rule_for(SITE + "/a/b")
        == "Allow: /a (line 2, for user-agent *)"
    )


def test_agrees_with_another_reader_on_the_made_web():
    for robots in (*ORDINARY, LATE, BARRED):
        text = robots.text()
        for path, query in (*robots.probes, ("/", ""), ("/artigos/1/", "")):
            url = SITE + path + ("?" + query if query else "")
            assert Rules(text.encode(), "coletor", SITE).allows(url) == Protego.parse(text).can_fetch(url, "coletor")


def filled(line) -> bytes:
    """A robots.txt of about 500 KiB of such lines."""
    lines, size = [EVERYBODY.encode()], 0
    while size < 500 << 10:
        lines.append(line(len(lines)))
        size += len(lines[-1])
    return b"".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        filled(lambda n: b"Allow: /*a*a*a*a$\n"),
        filled(lambda n: b"Allow: /*a*a*a*%d$\n" % n),
        filled(lambda n: b"Allow:/*%x\n" % n),
        filled(lambda n: b"Allow: /%s%d\n" % (b"*a" * 400, n)),
        filled(lambda n: b"Allow: /%s*b\n" % (b"a*" * n)),
        filled(lambda n: b"Allow: /*%sb%s%d\n" % (b"a" * 500, b"a" * 500, n)),
        filled(lambda n: b"Allow: /%d\n" % n),
        filled(lambda n: b"Allow: /%s\n" % (b"a" * n)),
        filled(lambda n: b"User-agent: a%d\nDisallow: /\n" % n),
        filled(lambda n: b"User-agent: *\n"),
        filled(lambda n: b"Sitemap: http://a.test/%d\n" % n),
        filled(lambda n: b"Allow " + b" " * n + b"\n"),
        b"User-agent: *\nAllow: /" + b"*a" * 250_000,
        b"Allow" + b" " * 500_000 + b"x x",
        b"allow" * 100_000,
        b"User-agent: *\nAllow: " + b"/index.htm" * 50_000,
        b"\xff" * 500_000,
        b"%41" * 170_000,
    ],
    ids=range(18),
)
@pytest.mark.sampled(6)
def test_hostile_texts_cost_little(text):
    begun = time.process_time()
    rules = Rules(text, "coletor", SITE)
    read_s = time.process_time() - begun
    for length in (10, 100, 2000, 7900):
        rules.allows(SITE + "/" + "a" * length)
    assert read_s < 5 and time.process_time() - begun - read_s < 2, "measured: 0.3 s and at most 0.02 s a question"


def test_more_work_than_is_bearable_forbids():
    text = EVERYBODY.encode() + b"Allow: /\n" + b"".join(b"Disallow: /*x%05d\n" % n for n in range(5000))
    rules = Rules(text, "coletor", SITE)
    longest = WORK_MAX // (5000 * 7) - 100
    assert rules.allows(SITE + "/" + "a" * (longest - 1)) and rules.allows(SITE + "/robots.txt")
    assert not rules.allows(SITE + "/" + "a" * longest)
    assert rules.rule_for(SITE + "/" + "a" * longest).startswith("forbidden: too many rules")


def answer(status: int, body: bytes = b"", redirects: int = 0, limit: int = 1000, **headers: str) -> Answer:
    return read_answer(
        SITE + "/robots.txt", redirects, "answered", HttpMessage(status, list(headers.items()), body), limit
    )


@pytest.mark.parametrize(
    "location, target",
    [
        ("/r", "http://site.test/r"),
        ("https://site.test/robots.txt", "https://site.test/robots.txt"),
        ("//other.test:81/r#x", "http://other.test:81/r"),
        ("http://other.test", "http://other.test/"),
        ("", ""),
        ("mailto:a@b", ""),
        ("http://[", ""),
        ("ftp://site.test/robots.txt", ""),
    ],
)
def test_redirects_lead_to_any_server(location, target):
    assert find_target(SITE + "/robots.txt", location) == target
    for status in (301, 302, 303, 307, 308):
        assert answer(status, Location=location) == (Answer(None, target) if target else Answer(b"", ""))
        assert answer(status, Location=location, redirects=5) == Answer(b"", "")


def test_a_line_that_was_cut_off_is_dropped():
    whole = b"User-agent: *\nDisallow: /private\n"
    assert answer(200, whole).text == whole and answer(200, whole[:-1]).text == whole[:-1]
    assert answer(200, whole, limit=len(whole)).text == whole
    assert answer(200, whole, limit=len(whole) - 1).text == answer(200, whole, limit=20).text == b"User-agent: *\n"
    assert answer(200, whole, limit=13).text == b""
    assert answer(200, whole.replace(b"\n", b"\r"), limit=20).text == b"User-agent: *\r"
