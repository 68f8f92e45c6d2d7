"""What robots.txt allows, case by case: RFC 9309, what Google's parser adds to it, and answers that are no robots.txt.

Percent-encoding is by the RFC, where Google's parser leaves to its callers to encode a URL, and lines may be of any length.
"""

import time

import pytest
from protego import Protego

from contract.robots import WORK_MAX, Answer, Rules, find_target, read_answer
from contract.robots_groups import SITEMAPS_MAX, read_sitemaps
from contract.warc import HttpMessage
from synthweb.robots import BARRED, LATE, ORDINARY

SITE = "http://site.test"
EVERYBODY = "User-agent: *\n"


def allowed(text: str | bytes, *paths: str, agent: str = "coletor") -> str:
    """Of these paths, those that the text allows, with blanks between."""
    rules = Rules(text if isinstance(text, bytes) else text.encode(), agent, SITE)
    return " ".join(path for path in paths if rules.allows(SITE + path))


@pytest.mark.parametrize(
    "text, agent, expected",
    [
        # names of agents
        ("User-agent: coletor\nDisallow: /a", "coletor", "/b"),
        ("User-agent: coletor\nDisallow: /a", "outro", "/a /b"),
        ("User-agent: COLETOR\nDisallow: /a", "coletor", "/b"),
        ("User-agent: coletor\nDisallow: /a", "ColeTor", "/b"),
        ("User-agent: coletor/1.2\nDisallow: /a", "coletor", "/b"),
        ("User-agent: coletor (of somebody)\nDisallow: /a", "coletor", "/b"),
        ("User-agent: coletor 7\nDisallow: /a", "coletor2.0", "/b"),
        ("User-agent: coletor-de-paginas\nDisallow: /a", "coletor", "/a /b"),
        ("User-agent: coletor\nDisallow: /a", "coletor-de-paginas", "/a /b"),
        ("User-agent: cole\nDisallow: /a", "coletor", "/a /b"),
        ("User-agent: meu_coletor-x\nDisallow: /a", "Meu_Coletor-X", "/b"),
        ("User-agent:\nDisallow: /a", "coletor", "/a /b"),
        ("User-agent: 2\nDisallow: /a", "2", "/a /b"),
        ("User-agent: *\nDisallow: /a", "2", "/b"),
        ("User-agent: *\nDisallow: /a", "", "/b"),
        ("User-agent: coletor\nDisallow: /a", "", "/a /b"),
        # everybody
        ("User-agent: *\nDisallow: /a", "coletor", "/b"),
        ("User-agent: * and all\nDisallow: /a", "coletor", "/b"),
        ("User-agent: *bot\nDisallow: /a", "coletor", "/a /b"),
        ("User-agent: *\nDisallow: /\nUser-agent: coletor\nDisallow: /a", "coletor", "/b"),
        ("User-agent: coletor\nDisallow: /a\nUser-agent: *\nDisallow: /", "coletor", "/b"),
        ("User-agent: coletor\nUser-agent: *\nDisallow: /a", "coletor", "/b"),
        ("User-agent: coletor\nDisallow:\nUser-agent: *\nDisallow: /", "coletor", "/a /b"),
        ("User-agent: *\nDisallow: /\nUser-agent: coletor", "coletor", "/a /b"),
        ("User-agent: *\nDisallow: /\nUser-agent: coletor x\nAllow: /a\nDisallow: /", "coletor", "/a"),
        # groups
        ("User-agent: um\nUser-agent: coletor\nUser-agent: dois\nDisallow: /a", "coletor", "/b"),
        ("User-agent: coletor\n\n\nDisallow: /a", "coletor", "/b"),
        ("User-agent: um\n\nUser-agent: coletor\nDisallow: /a", "um", "/b"),
        ("User-agent: um\nDisallow: /a\n\nDisallow: /b", "um", ""),
        ("User-agent: coletor\nDisallow: /a\nUser-agent: um\nDisallow: /b", "coletor", "/b"),
        (
            "User-agent: coletor\nDisallow: /a\nUser-agent: um\nDisallow: /\nUser-agent: coletor\nDisallow: /b",
            "coletor",
            "",
        ),
        ("User-agent: *\nDisallow: /a\nUser-agent: um\nDisallow: /\nUser-agent: *\nDisallow: /b", "coletor", ""),
        ("Disallow: /a\nUser-agent: coletor\nDisallow: /b", "coletor", "/a"),
        ("Disallow: /", "coletor", "/a /b"),
        ("", "coletor", "/a /b"),
        # lines of other kinds end no row of names
        ("User-agent: coletor\nSitemap: http://site.test/s\nUser-agent: *\nDisallow: /a", "coletor", "/b"),
        ("User-agent: coletor\nInvented: yes\nUser-agent: *\nDisallow: /a", "coletor", "/b"),
        ("User-agent: coletor\nCrawl-delay: 1\nUser-agent: *\nDisallow: /a", "coletor", "/b"),
        ("User-agent: coletor\n???\nUser-agent: um\nDisallow: /a", "coletor", "/b"),
        ("User-agent: coletor\nDisallow:\nUser-agent: um\nDisallow: /a", "coletor", "/a /b"),
    ],
)
def test_which_group_applies(text, agent, expected):
    assert allowed(text, "/a", "/b", agent=agent) == expected


@pytest.mark.parametrize(
    "line, expected",
    [
        ("Disallow: /a", "/b"),
        ("disallow: /a", "/b"),
        ("DISALLOW: /a", "/b"),
        ("dIsAlLoW:/a", "/b"),
        ("\t Disallow \t:\t /a \t", "/b"),
        ("Disallow: /a # why", "/b"),
        ("Disallow: /a#why", "/b"),
        ("# Disallow: /a", "/a /b"),
        ("Disallow", "/a /b"),
        ("Disallow:", "/a /b"),
        ("Disallow: # /a", "/a /b"),
        ("Allow:", "/a /b"),
        (": /a", "/a /b"),
        ("Disallow /a", "/b"),
        ("Disallow\t /a", "/b"),
        ("Disallow /a or so", "/a /b"),
        ("Disallow/a", "/a /b"),
        ("Dissallow: /a", "/b"),
        ("Dissalow: /a", "/b"),
        ("Disalow: /a", "/b"),
        ("Diasllow: /a", "/b"),
        ("Disallaw: /a", "/b"),
        ("Disallowed: /a", "/b"),
        ("Deny: /a", "/a /b"),
        ("Noindex: /a", "/a /b"),
        ("xDisallow: /a", "/a /b"),
        ("Disallow: a", "/b"),
        ("Disallow: http://site.test/a", "/b"),
        ("Disallow: *a", "/b"),
        ("Disallow: http://site.test", ""),
        ("\xa0Disallow: /a", "/a /b"),
        ("\ufeffDisallow: /a", "/a /b"),
        ("Disallow: /a\0", "/b"),
    ],
)
def test_how_a_line_is_read(line, expected):
    assert allowed(EVERYBODY + line, "/a", "/b") == expected


@pytest.mark.parametrize(
    "value",
    [
        "https://other.example/",
        "http://other.example",
        "http://other.example/a",
        "//other.example/",
        "https://site.test/",
        "http://site.test:8080/",
        "http://www.site.test/",
        "http://site.test.example/",
        "http://sitetest/",
        "http://site.test@other.example/",
        "ftp://site.test/",
        "ws://site.test/",
        "http://*.site.test/",
        "https://*",
        "http://",
        "http:///",
        "http://[",
        "http://site.test:99999/",
        "http://\xff/",
        "HTTPS://OTHER.example/a",
    ],
)
def test_a_rule_that_names_another_server_is_none(value):
    assert allowed(f"{EVERYBODY}Disallow: {value}", "/", "/a") == "/ /a"
    assert allowed(f"{EVERYBODY}Disallow: /\nAllow: {value}", "/", "/a") == ""


@pytest.mark.parametrize(
    "origin",
    [
        "http://site.test",
        "HTTP://SITE.Test",
        "http://site.test:80",
        "http://site.test.",
        "http://s%69te.test",
        "http://user:secret@site.test",
        "http://s\N{FULLWIDTH LATIN SMALL LETTER I}te.test",
    ],
)
def test_a_rule_that_names_the_server_itself_counts_by_its_path(origin):
    assert allowed(f"{EVERYBODY}Disallow: {origin}/a", "/a/x", "/b") == "/b"
    assert allowed(f"{EVERYBODY}Disallow: /\nAllow: {origin}/a*x$", "/a/x", "/a", "/b") == "/a/x"
    for whole in ("", "/", "/*", "*"):
        assert allowed(f"{EVERYBODY}Disallow: {origin}{whole}", "/", "/a") == ""
        assert allowed(f"{EVERYBODY}Disallow: /\nAllow: {origin}{whole}", "/", "/a") == "/ /a"
    assert allowed(f"{EVERYBODY}Disallow: {origin}?x", "/", "/?x") == "/"
    assert allowed(f"{EVERYBODY}Disallow: {origin}$", "/", "/a") == "/a"


def test_the_origin_of_a_rule_has_scheme_host_and_port():
    paths = {"https://a.test": "/s", "http://a.test": "/h", "http://a.test:8080": "/p", "https://[2001:db8::1]": "/6"}
    text = EVERYBODY + "".join(f"Disallow: {server.upper()}{path}\n" for server, path in paths.items())
    for server, forbidden in paths.items():
        rules = Rules(text.encode(), "coletor", server)
        assert [path for path in ("/s", "/h", "/p", "/6") if not rules.allows(server + path)] == [forbidden]


@pytest.mark.parametrize("value", ["a", "a/b", "?a", ".", "$", "mailto:a", "http:a", "Special:Search"])
def test_a_slash_that_is_missing_closes_and_does_not_open(value):
    path = "/" + value.rstrip("$")
    assert allowed(f"{EVERYBODY}Disallow: {value}", path, "/b") == "/b"
    assert allowed(f"{EVERYBODY}Disallow: /\nAllow: {value}", path, "/b") == ""


def test_a_line_for_another_server_still_ends_the_names_above_it():
    assert allowed("User-agent: coletor\nDisallow: https://other.example/\nUser-agent: um\nDisallow: /", "/a") == "/a"


@pytest.mark.parametrize(
    "name", ["USER-AGENT:", "useragent:", "User agent:", "user-agent", "User-Agents:", "uSeR-aGeNt :"]
)
def test_how_user_agent_is_spelt(name):
    assert allowed(f"{name} coletor\nDisallow: /a", "/a", "/b") == "/b"


@pytest.mark.parametrize(
    "rules, expected",
    [
        # the beginning of a path, in its own case
        ("Disallow: /\nAllow: /fish", "/fish /fish.html /fish/salmon /fishheads /fish?id=1"),
        ("Disallow: /\nAllow: /fish*", "/fish /fish.html /fish/salmon /fishheads /fish?id=1"),
        ("Disallow: /\nAllow: /fish/", "/fish/salmon"),
        ("Disallow: /\nAllow: /FISH", ""),
        ("Disallow: /\nAllow: /*fish", "/fish /fish.html /fish/salmon /fishheads /fish?id=1 /catfish /?id=fish"),
        ("Disallow: /\nAllow: /*.html$", "/fish.html"),
        ("Disallow: /\nAllow: /*.html", "/fish.html"),
        ("Disallow: /\nAllow: /fish*s", "/fish/salmon /fishheads"),
        ("Disallow: /\nAllow: /*i*h*", "/fish /fish.html /fish/salmon /fishheads /fish?id=1 /catfish /?id=fish"),
        ("Disallow: /\nAllow: /fish$", "/fish"),
        ("Disallow: /\nAllow: /fi$sh", ""),
        ("Disallow: /\nAllow: /fish*$", "/fish /fish.html /fish/salmon /fishheads /fish?id=1"),
        ("Disallow: /\nAllow: /***?id=***", "/fish?id=1 /?id=fish"),
        ("Disallow: /\nAllow: /*sh*sh", ""),
        ("Disallow: /\nAllow: /*h*h$", ""),
        ("Disallow: /\nAllow: /f*fish$", ""),
        # the longest rule, not the first; Allow where they are as long
        ("Allow: /fish\nDisallow: /fish/salmon", "/fish /fish.html /fishheads /fish?id=1 /catfish /?id=fish"),
        ("Disallow: /fish/salmon\nAllow: /fish\nDisallow: /", "/fish /fish.html /fishheads /fish?id=1"),
        ("Disallow: /fish\nAllow: /fish\nDisallow: /", "/fish /fish.html /fish/salmon /fishheads /fish?id=1"),
        ("Allow: /fish\nDisallow: /*.html\nDisallow: /c\nDisallow: /?", "/fish /fish/salmon /fishheads /fish?id=1"),
        ("Disallow: /fish\nAllow: /fish*\nDisallow: /", "/fish /fish.html /fish/salmon /fishheads /fish?id=1"),
        ("Disallow: /*\nAllow: /fish$", "/fish"),
        ("Disallow: \nAllow: \n", "/fish /fish.html /fish/salmon /fishheads /fish?id=1 /catfish /?id=fish"),
    ],
)
def test_which_rule_decides(rules, expected):
    paths = "/fish", "/fish.html", "/fish/salmon", "/fishheads", "/fish?id=1", "/catfish", "/?id=fish"
    assert allowed(EVERYBODY + rules, *paths) == expected


@pytest.mark.parametrize(
    "rule, path, matches",
    [
        ("/~ana", "/%7Eana", True),
        ("/%7eana", "/~ana", True),
        ("/%7Eana", "/~ana/x", True),
        ("/b%61z", "/baz", True),
        ("/caf\u00e9", "/caf%C3%A9", True),
        ("/caf%c3%a9", "/caf%C3%A9", True),
        ("/caf%C3%A9", "/caf%c3%a9", True),
        ("/\u30c4", "/%E3%83%84", True),
        ("/\u30c4", "/%E3%83%85", False),
        ("/\u30c4", "/\u30c4", True),
        ("/a b", "/a%20b", True),
        ("/{id}", "/%7Bid%7D", True),
        ("/a|b", "/a|b", True),
        ("/a|b", "/a%7Cb", True),
        ("/a%2Fb", "/a/b", False),
        ("/a%2fb", "/a%2Fb", True),
        ("/a%3Fb", "/a?b", False),
        ("/%25", "/%", False),
        ("/%zz", "/%zz", True),
        ("/a%2Ab", "/a*b", True),
        ("/a%2Ab", "/axb", False),
        ("/a%24", "/a$b", True),
        ("/a%24", "/a", False),
        ("/a*b", "/a*b", True),
        ("/a$", "/a$", False),
        ("/a$b", "/a%24b", True),
        ("/q?u=http://x.test/?y&z", "/q?u=http://x.test/?y&z", True),
        ("/q?a=1", "/q?a=12", True),
        ("/q?a=1", "/q?b=1&a=1", False),
        ("/a#b", "/a", True),
        ("/a", "/a#b", True),
        ("/robots", "/robots.txt", False),
        ("/robots", "/robots.txt?x", True),
        ("/", "/robots.txt", False),
        ("/", "/", True),
        ("/", "", True),
    ],
)
def test_spellings_of_paths(rule, path, matches):
    assert Rules(f"{EVERYBODY}Disallow: {rule}".encode(), "coletor", SITE).allows(SITE + path) is not matches


def test_octets_that_are_no_utf_8_are_octets():
    assert allowed(b"User-agent: *\nDisallow: /S\xe3o", "/S%E3o", "/S%C3%A3o") == "/S%C3%A3o"


def test_allowing_the_index_allows_its_folder():
    text = EVERYBODY + "Disallow: /\nAllow: /x/index.html\nAllow: /y/index.htm\nAllow: /z/index.html/"
    assert (
        allowed(text, "/x/", "/x/index.html", "/x/index.htm", "/x/a", "/x", "/y/", "/z/", "/z/index.html/a")
        == "/x/ /x/index.html /y/ /z/index.html/a"
    )
    assert allowed(EVERYBODY + "Disallow: /x/index.html", "/x/", "/x/index.html") == "/x/"


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
        b"# hello\r\n\r\nUser-agent: *\r\nDisallow: /\r\n\r\nUser-agent: Coletor/2\r\ndisalow:/p\x1b[2J\xff # no\r\nAllow: /index.html",
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
