"""focused: files of terms, terms in texts and in URLs (the same words in both), and the score."""

from pathlib import Path

import pyarrow as pa
import pytest

from contract.config_check import from_tables
from contract.errors import BadConfiguration, BadInput
from contract.policies import FEATURES, policy_of, text_judge_of
from contract.policies.focused import FILE_KEY
from contract.terms import FILE_MAX_BYTES, TERMS_MAX, TermCounter, convert, words_of
from contract.url import Keys
from contract.url_terms import TermTable
from tests.unit.test_policies import candidates, config_of, order_of, urls_of

KEYS = Keys(17)
FILE = Path("terms.txt")
TERMS = "# water\nwater\nDrinking  Water\nágua\nágua potável\n\n  вода \nC++\n".encode()


def terms_of(text: bytes) -> list[str]:
    return convert(FILE, text, KEYS).decode().splitlines()


def in_url(*urls: str, terms: bytes = TERMS) -> list[int]:
    return TermTable(terms_of(terms)).count(pa.array([f"{url}\n".encode() for url in urls], pa.large_binary())).tolist()


def test_terms_are_folded_sorted_and_there_once():
    assert terms_of(TERMS) == ["c", "drinking water", "water", "água", "água potável", "вода"]
    assert terms_of(b"\xef\xbb\xbfWater\r\nwater\r\n# no\r\n") == ["water"]
    assert terms_of("A\u0301GUA\n".encode()) == ["água"], "composed"
    assert convert(FILE, convert(FILE, TERMS, KEYS), KEYS) == convert(FILE, TERMS, KEYS)


@pytest.mark.parametrize(
    "line",
    [b"\xff\xfe", b"a\0b", b"***", b"%C3%A1gua", b"x" * 101, b"a b c d e f g h i", b"\x1b[1m", "\u202ewater".encode()],
)
def test_any_other_line_is_named(line):
    with pytest.raises(BadInput, match="terms.txt: line 3: expected a term of at most 8 words") as caught:
        convert(FILE, b"# terms\nwater\n" + line + b"\n", KEYS)
    assert caught.value.exit_code == 65 and "found '" in str(caught.value)


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"", "expected a term per line, found none"),
        (b"# nothing\n\n", "expected a term per line, found none"),
        (b"x" * (FILE_MAX_BYTES + 1), f"expected at most {FILE_MAX_BYTES} bytes of terms, found {FILE_MAX_BYTES + 1}"),
        ("".join(f"t{n}\n" for n in range(TERMS_MAX + 1)).encode(), f"expected at most {TERMS_MAX} terms, found 1001"),
    ],
)
def test_empty_and_large_files_are_refused(content, expected):
    with pytest.raises(BadInput, match=f"^terms.txt: {expected}"):
        convert(FILE, content, KEYS)


def test_different_terms_of_a_text_are_counted_once_each():
    count = TermCounter(terms_of(TERMS))
    assert count("") == count("watering, waters, águas") == 0
    assert count("Water! WATER? \u201cwater\u201d\u00a0\u00abÁgua\u00bb") == 2
    assert count("drinking\n water") == 2 and count("water drinking") == count("drinking of water") == 1
    assert count("A\u0301gua\u2014pot\u00e1vel") == 2
    assert count("x " * 5_000 + "water") == 0, "only the first 10,000 characters count"


def test_at_most_255_terms_are_counted():
    words = [f"w{number}" for number in range(400)]
    text = "\n".join(words).encode()
    assert TermCounter(terms_of(text))(" ".join(words)) == 255
    assert in_url(f"http://a.br/{'/'.join(words)}", terms=text) == [255]


def test_terms_of_urls():
    assert in_url(
        "http://water.br/", "http://a.br/waters/underwater", "http://a.br/Drinking-WATER",
        "http://a.br/drinking%20water",
        "http://a.br/drinking_water?water=water", "http://a.br/water/drinking",
        "http://a.br/x?q=%C3%81gua+pot%C3%A1vel",
        "http://a.br/%D0%92%D0%BE%D0%B4%D0%B0", "http://a.br/%C3%A1gua%E2%80%94x", "http://a.br/water%",
        "http://a.br/%2",
        "http://a.br/%41%57ater", "http://a.br/w%61ter%2Fc",
    ) == [1, 0, 2, 2, 2, 1, 2, 1, 1, 1, 0, 0, 2]  # fmt: skip


def test_words_are_found_in_capitals_and_the_scheme_is_no_word():
    terms = "água\npotável\nстрока\nstraße\nstrasse\nhttp\n".encode()
    assert in_url(
        "http://a.br/%C3%81GUA_POT%C3%81VEL", "http://a.br/Pot%C3%A1vel",
        "http://a.br/%D0%A1%D0%A2%D0%A0%D0%9E%D0%9A%D0%90",
        "http://a.br/STRASSE", "http://a.br/STRA%C3%9FE", "http://a.br/stra%C3%9Fe/strasse", "http://a.br/?http:",
        terms=terms,
    ) == [2, 1, 1, 1, 1, 2, 1]  # fmt: skip


def test_many_marks_in_a_row_are_left_out_because_composing_takes_time_in_their_square():
    marks = "\u0301\u0323" * 16
    assert words_of(f"a{marks} a\u0323\u0301") == ["a", "\u1ea1\u0301"]
    assert TermCounter(["água"])(f"x{marks} A\u0301gua") == 1


def test_a_slice_is_read_as_a_slice_and_no_terms_are_found_nowhere():
    lines = pa.array([b"http://a.br/x\n", b"http://a.br/water\n", b"http://a.br/y\n"], pa.large_binary())
    assert TermTable(["water"]).count(lines[1:]).tolist() == [1, 0]
    assert TermTable([]).count(lines).tolist() == [0, 0, 0]


def test_the_feature_and_the_judge_read_the_crawl_s_copy(tmp_path):
    (tmp_path / "copy.txt").write_bytes(convert(FILE, TERMS, KEYS))
    files = {FILE_KEY: tmp_path / "copy.txt"}
    for policy in ("focused", "0.5*focused + 0.5*opic"):
        config = config_of(policy)
        given = urls_of(config, "http://a.br/drinking/water", "http://a.br/", files=files)
        assert FEATURES["terms"].compute(given).tolist() == [2, 0]
        assert text_judge_of(config, files)("drinking water is \u00e1gua") == 3
    assert text_judge_of(config_of("fifo"), files) is None
    assert list(policy_of(config_of("0.5*focused + 0.5*opic")).hands_on) == ["cash"]


def test_terms_in_the_url_then_the_mean_of_linking_pages_then_depth():
    of = candidates(
        config_of("focused"),
        terms=[0, 1, 0, 0, 0, 2],
        relevance=[0, 0, 30, 30, 0, 0],
        links_in=[9, 1, 3, 10, 0, 0],
        depth=[3, 9, 1, 1, 2, 0],
    )
    assert order_of(of) == [5, 2, 1, 3, 4, 0]


def test_the_policy_needs_a_file():
    with pytest.raises(BadConfiguration, match="scheduler.terms_file: expected a file of terms"):
        from_tables({"scheduler": {"policy": "focused"}}, "test")
