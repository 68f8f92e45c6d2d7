"""Folding twice is folding once, whichever rules are on, and what comes out is canonical."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from contract.canonical import Canonical
from contract.config import URL_RULES, Url
from contract.url import NotCanonical, canonicalise
from tests.sampling import sampling

HEX = "0123456789abcdef0123456789ABCDEF"
ASP = "lit3py55t21z5v55vlm25s55"
LABELS = st.sampled_from(
    ["www", "www1", "WWW", "a", "com", "br", "ü", "xn--tda", "1", "0x1", "", "a;b", "(s(x))", f"x;jsessionid={HEX}"]
)
HOSTS = st.lists(LABELS, min_size=1, max_size=5).map(".".join) | st.sampled_from(["[::1]", "1.2.3.4"])
BITS = st.sampled_from(
    [
        f";jsessionid={HEX}",
        f"jsessionid={HEX}",
        ";",
        ";x=1",
        f"(S({ASP}))",
        f"(a(x)s({ASP}))",
        "(",
        ")",
        "..",
        ".",
        "%2e",
        "%2E",
        "index.html",
        "Index.PHP",
        "default.asp",
        "home.html",
        "A",
        "b",
        "%C3%87",
        "%",
        "ç",
        " ",
        f".node;jsessionid={HEX}!x",
        "\\",
        "www.a",
    ]
)
SEGMENTS = st.lists(BITS, max_size=4).map("".join)
NAMES = st.sampled_from(
    [
        "utm_source",
        "UTM_x",
        "utm_",
        "fbclid",
        "gclid",
        "id",
        "",
        "sid",
        "PHPSESSID",
        "jsessionid",
        "cfid",
        "CFTOKEN",
        "aspsessionidABCDEFGH",
        "?",
        "ç",
    ]
)
VALUES = st.sampled_from(
    ["", "=", f"={HEX}", "=1", "=A?b", "=ABCDEFGHABCDEFGHABCDEFGH", f"={HEX};jsessionid={HEX}", "=%26", "=a=b"]
)
QUERIES = st.lists(st.tuples(NAMES, VALUES).map("".join), max_size=6).map("&".join)
TEXTS = st.builds(
    "http{}://{}{}/{}{}".format,
    st.sampled_from(["", "s"]),
    HOSTS,
    st.sampled_from(["", ":81"]),
    st.lists(SEGMENTS, max_size=5).map("/".join),
    QUERIES.map(lambda query: query and "?" + query),
)
RULES = st.sets(st.sampled_from(URL_RULES)).map(lambda rules: Url(rules=tuple(rules)))


@settings(max_examples=sampling.examples(600))
@given(TEXTS, RULES)
@example(f"http://a.test/x/..;jsessionid={HEX}/y", Url())
@example("http://a.test/?cfid=1&cfid=2&cftoken=3&cftoken=4", Url())
@example("http://www.www.com/", Url(rules=("www",)))
def test_folding_is_idempotent_and_canonical(text, config):
    try:
        url = canonicalise(text)
    except NotCanonical:
        return
    canonical = Canonical(config)
    folded = canonical.fold(url)
    assert canonical.fold(folded) == folded
    assert canonicalise(folded) == folded == canonical(text)
    assert len(folded) <= len(url)


@settings(max_examples=sampling.examples(200))
@given(TEXTS, RULES)
def test_what_remains_of_a_query_keeps_its_order(text, config):
    try:
        url = canonicalise(text)
    except NotCanonical:
        return
    before = iter(url.partition("?")[2].split("&"))
    assert all(
        parameter in before for parameter in Canonical(config).fold(url).partition("?")[2].split("&") if parameter
    )
