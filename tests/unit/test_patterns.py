"""Patterns of the configuration: what they find in URLs, where ^ and $ stand, and what is no pattern."""

import pyarrow as pa
import pytest

from contract.patterns import AT_ONCE, BadPattern, check_pattern, check_together, find_any, find_first

TOO_LARGE_TOGETHER = [rf"{number}\pL{{200}}" for number in range(400)]


def lines_of(*urls: str) -> pa.LargeBinaryArray:
    return pa.array([f"{url}\n".encode() for url in urls], pa.large_binary())


def found(patterns, *urls) -> list[str]:
    return [url for url, is_found in zip(urls, find_any(lines_of(*urls), patterns)) if is_found]


URLS = ("http://a.br/", "http://a.br/feed", "http://a.br/feed/", "http://a.br/feed?x=1", "https://b.org/Feed")


@pytest.mark.parametrize(
    "patterns, wanted",
    [
        (["/feed/?$"], URLS[1:3]),
        (["^http:"], URLS[:4]),
        (["^feed", "^/"], ()),
        (["feed$", r"\?"], (URLS[1], URLS[3])),
        (["(?i)/feed$"], (URLS[1], URLS[4])),
        (["(?i)/feed$", "FEED"], (URLS[1], URLS[4])),
        ([r"^http://a\.br/$"], URLS[:1]),
        ([r"\Ahttps.*\z"], URLS[4:]),
        ([""], URLS),
        ([], ()),
    ],
)
def test_what_is_found(patterns, wanted):
    assert found(patterns, *URLS) == list(wanted)


@pytest.mark.parametrize("pattern", [r"\s", r"\n", "^$", "[^ -~]", r"[^a-z0-9:/.?=A-Z]", r"\W\W$", "x[^a-z]"])
def test_the_newline_of_a_line_is_never_found(pattern):
    assert found([pattern], "http://a.br/feed", "http://a.br/x") == []


def test_a_pattern_that_excludes_a_slash_at_the_end():
    assert found(["[^/]$"], *URLS) == [URLS[1], *URLS[3:]]


def test_lines_that_are_a_part_of_an_array_and_none_at_all():
    assert find_any(lines_of(*URLS).slice(2, 2), ["feed/$"]).tolist() == [True, False]
    assert find_any(lines_of(), ["x"]).tolist() == []


def test_what_is_not_ascii_is_found_nowhere_and_harms_nothing():
    assert found(["é"], *URLS) == found(["\0"], *URLS) == []
    raw = pa.array([b"http://a.br/\xc3\xa9\xff\0\n"], pa.large_binary())
    assert find_any(raw, ["é"]).tolist() == [True] and find_any(raw, ["é$"]).tolist() == [False]


@pytest.mark.parametrize(
    "pattern", ["[", "(", "a)|(b", "a{1001}", "(a{1000}){1000}", "\\", "(?<=x)y", r"(a)\1", "\ud800", "*", r"\Qa"]
)
def test_what_is_no_pattern(pattern):
    with pytest.raises(BadPattern):
        check_pattern(pattern)


def test_patterns_that_are_too_large_together():
    for pattern in TOO_LARGE_TOGETHER:
        check_pattern(pattern)
    with pytest.raises(BadPattern):
        check_together(TOO_LARGE_TOGETHER)
    check_together(TOO_LARGE_TOGETHER[:1])
    check_together([])


def test_no_pattern_takes_long():
    """An engine that goes back would need 2^5000 steps."""
    assert found(["(a*)*b$", "(a|a)*c$"], f"http://x.br/{'a' * 5000}") == []


def test_the_first_pattern_that_is_found_counts():
    patterns = [f"/{number}$" for number in range(3 * AT_ONCE)] + ["/.*7$"]
    urls = [f"http://a.br/{number}" for number in (2 * AT_ONCE + 1, 0, 1_000, 7, 5_007)]
    assert find_first(lines_of(*urls), patterns).tolist() == [2 * AT_ONCE + 1, 0, len(patterns), 7, 3 * AT_ONCE]
    assert find_first(lines_of(*urls), ["a", "/0", "b"]).tolist() == [0] * len(urls)
    assert find_first(lines_of(*urls), ["z", "b", "a"]).tolist() == [1] * len(urls)
    assert find_first(lines_of(*urls), []).tolist() == [0] * len(urls)
    assert find_first(lines_of(), ["a"]).tolist() == []


def test_patterns_that_cannot_be_searched_for_together_are_searched_for_one_by_one():
    large = 8 * r"\pL{1000}"
    patterns = [f"/{number}$|{large}" for number in range(AT_ONCE)]
    with pytest.raises(BadPattern):
        check_together(patterns)
    assert find_first(lines_of("http://a.br/5", "http://a.br/0", "http://a.br/"), patterns).tolist() == [5, 0, AT_ONCE]
