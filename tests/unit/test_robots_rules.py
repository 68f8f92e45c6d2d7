"""What robots.txt allows, case by case: RFC 9309, what Google's parser adds to it, and answers that are no robots.txt.

Percent-encoding follows the RFC; Google's parser leaves the encoding of a URL to its callers. Lines have any length.
"""

import pytest

from contract.robots import Rules

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
