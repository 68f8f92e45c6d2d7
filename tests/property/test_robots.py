"""robots.txt: no bytes make it raise, and on small alphabets it agrees with a reading as naive as can be."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from contract.robots import Rules
from tests.sampling import sampling

SITE = "http://a.test"
PIECES = [
    b"User-agent:",
    b"user-agent *\n",
    b"coletor",
    b"Disallow: /",
    b"Allow: ",
    b"Crawl-delay:",
    b"Sitemap: http://",
    b"*",
    b"$",
    b"%",
    b"%7e",
    b"%C3",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b":",
    b"#",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xe3",
    b"/",
    b"?",
    b"index.html",
    b"[",
    b"9",
]
HOSTILE = st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=20)), max_size=60).map(b"".join)


def matches(pattern: str, path: str) -> bool:
    if pattern == "$":
        return path == ""
    if pattern == "":
        return True
    if pattern[0] == "*":
        return any(matches(pattern[1:], path[skipped:]) for skipped in range(len(path) + 1))
    return path[:1] == pattern[0] and matches(pattern[1:], path[1:])


def decide(groups: list[tuple[list[str], list[tuple[bool, str]]]], path: str) -> bool:
    named = [rules for names, rules in groups if "coletor" in names]
    chosen = named or [rules for names, rules in groups if "*" in names]
    fitting = [
        (len(pattern), is_allow)
        for rules in chosen
        for is_allow, pattern in rules
        if pattern and matches(pattern, path)
    ]
    return max(fitting)[1] if fitting else True


PATTERNS = st.one_of(
    st.just(""),
    st.text("a/*$", max_size=8).map(lambda text: "/" + text),
    st.text("ab*", max_size=6).map(lambda text: "*" + text),
)
GROUPS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["coletor", "*", "outro"]), min_size=1, max_size=2),
        st.lists(st.tuples(st.booleans(), PATTERNS), min_size=1, max_size=5),
    ),
    max_size=4,
)


@given(GROUPS, st.text("ab/$", max_size=10))
@settings(max_examples=sampling.examples(1000))
def test_agrees_with_a_naive_reading(groups, rest):
    lines = []
    for names, rules in groups:
        lines += [f"User-agent: {name}" for name in names]
        lines += [f"{'Allow' if is_allow else 'Disallow'}: {pattern}" for is_allow, pattern in rules]
    rules = Rules("\n".join(lines).encode(), "Coletor/1.0", SITE)
    assert rules.allows(f"{SITE}/{rest}") == decide(groups, "/" + rest)


@given(HOSTILE, st.text(max_size=20), st.text(max_size=30))
@settings(max_examples=sampling.examples(500))
def test_never_raises(text, agent, rest):
    begun = time.process_time()
    rules = Rules(text, agent, SITE)
    for url in (rest, f"{SITE}/{rest}"):
        assert rules.allows(url) in (True, False) and rules.rule_for(url).isprintable()
    assert 0 <= rules.delay_s <= 604_800
    assert all(url.startswith(("http://", "https://")) for url in rules.sitemaps)
    assert time.process_time() - begun < 1


@given(HOSTILE)
@settings(max_examples=sampling.examples(200))
def test_what_was_told_is_what_was_done(text):
    rules = Rules(text, "coletor", SITE)
    for path in ("/", "/9", "/%C3?", "/index.html"):
        told = rules.rule_for(SITE + path)
        assert rules.allows(SITE + path) == (not told.startswith("Disallow"))
