"""Patterns of the configuration: what they find in URLs, where ^ and $ stand, and what is no pattern."""

import pyarrow as pa
import pytest

from contract.patterns import BadPattern, check_pattern, check_together, find_any

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
    "pattern", ["[", "(", "a)|(b", "a{1001}", "(a{1000}){1000}", "\\", "(?<=x)y", r"(a)\1", "\ud800", "*"]
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
