"""The features of QRank: by a second way of counting, at the edges of URLs, and the same with numba and without."""

import random
import re
import string

import numpy as np
import pyarrow as pa
import pytest

from contract.qrank.features import FEATURES, MAXIMA, Words, features_of, hash_words
from tests.loop_ways import both_ways

DICTIONARY = ("page", "casa", "privet", "abc")
NAMES = [name for name, _ in FEATURES]


def lines_of(*urls: str) -> pa.LargeBinaryArray:
    return pa.array([f"{url}\n".encode() for url in urls], pa.large_binary())


def words_of(*words: str) -> Words:
    return Words(np.unique(hash_words(pa.array([word.encode() for word in words], pa.large_binary()))))


def counts_of(*urls: str) -> list[dict[str, float]]:
    features = features_of(lines_of(*urls), words_of(*DICTIONARY))
    assert features.dtype == np.float32 and features.shape == (len(urls), 20)
    assert ((features >= 0) & (features <= 1)).all()
    return [dict(zip(NAMES, [round(float(value), 4) for value in row * MAXIMA])) for row in features]


def count_again(url: str) -> dict[str, float]:
    """The same by regular expressions, without the maxima."""
    scheme, host, path, query = re.fullmatch(r"(.*?)://(\[[^\]]*\]|[^:/]*)(?::[0-9]*)?(/[^?]*)(?:\?(.*))?", url).groups(
        default=""
    )
    terms = {name: re.findall("[A-Za-z0-9]+", text) for name, text in zip("shpq", (scheme, host, path, query))}
    digits = [len(re.findall("[0-9]", text)) for text in (host, path, query)]
    capitals = [len(re.findall("[A-Z]", text)) for text in (path, query)]
    known = [[term.lower() in DICTIONARY for term in terms[part]] for part in "pq"]
    return dict(
        zip(
            NAMES,
            [
                *map(len, (url, scheme, host, path, query)),
                *(sum(digits), *digits),
                *(sum(capitals), *capitals),
                *(sum(map(len, terms.values())), *map(len, terms.values())),
                len([piece for piece in path.split("/") if piece]),
                *(round(float(np.mean(found)), 4) if found else 1.0 for found in known),
            ],
        )
    )


def test_there_are_twenty_features_with_the_maxima_of_the_thesis():
    assert [most for _, most in FEATURES] == [
        *(650, 5, 50, 300, 300), *(650, 50, 300, 300), *(650, 300, 300), *(300, 1, 10, 100, 100), 20, 1, 1
    ]  # fmt: skip


def test_what_stands_in_a_url_is_counted():
    (found,) = counts_of("https://www.Example7.com.br:8080/A/PAGE/casa12/x.html?Privet=1&y=Ab%C3")
    assert found == {
        "length": 70, "length_scheme": 5, "length_host": 19, "length_path": 21, "length_query": 16,
        "digits": 5, "digits_host": 1, "digits_path": 2, "digits_query": 2,
        "capitals": 8, "capitals_path": 5, "capitals_query": 3,
        "terms": 15, "terms_scheme": 1, "terms_host": 4, "terms_path": 5, "terms_query": 5,
        "pieces_path": 4, "words_path": 0.2, "words_query": 0.2,
    }  # fmt: skip


EDGES = [
    "http://a/",
    "http://a.br/?",
    "http://a.br/?x?y/z:1",
    "http://[2001:db8::1]/",
    "http://[2001:db8::1]:81/page",
    "http://10.0.0.1:8080//a//b///",
    "https://a.br/%D0%BF/~page_casa-abc",
    "http://a.br/a:b/c://d/?q=://",
    "http://a.br/page",
]


@both_ways
def test_edges_of_urls_are_counted_as_by_regular_expressions(way):
    with way():
        assert counts_of(*EDGES) == [count_again(url) for url in EDGES]


def test_any_url_is_counted_as_by_regular_expressions():
    chance = random.Random(18)
    marks = string.ascii_letters + string.digits + "/./-_~%&=:;,+!"
    for _ in range(20):
        urls = [
            f"http://{''.join(chance.choices('abc019.-', k=chance.randint(1, 12)))}:{chance.randint(1, 99)}/"
            + "/".join(chance.choices([*DICTIONARY, "Abc", "PAGE9", *marks], k=chance.randint(0, 12)))
            + chance.choice(["", "?" + "".join(chance.choices([*marks, "page", "?"], k=chance.randint(0, 20)))])
            for _ in range(50)
        ]
        assert counts_of(*urls) == [count_again(url) for url in urls]


def test_what_is_above_its_maximum_counts_as_the_maximum():
    (found,) = counts_of("http://" + "h." * 40 + "br/" + "A1/" * 200 + "?" + "Z9-" * 200)
    capped = ("length", "length_host", "length_path", "length_query", "capitals_path", "terms", "pieces_path")
    assert {name: found[name] for name in capped if name != "capitals_path"} == {
        name: most for name, most in FEATURES if name in capped and name != "capitals_path"
    }
    assert found["capitals_path"] == 200


def test_no_url_has_no_features():
    assert features_of(lines_of(), words_of("page")).shape == (0, 20)
    assert features_of(lines_of("http://a.br/page"), words_of())[0, NAMES.index("words_path")] == 0


def test_a_slice_of_an_array_has_the_features_of_its_urls():
    lines, words = lines_of(*EDGES), words_of(*DICTIONARY)
    assert np.array_equal(features_of(lines, words)[3:6], features_of(lines.slice(3, 3), words))


# From the authors' own table of test vectors: http://www.isthe.com/chongo/src/fnv/test_fnv.c
@pytest.mark.parametrize(
    "word, expected", [("a", 0xAF63DC4C8601EC8C), ("b", 0xAF63DF4C8601F1A5), ("foobar", 0x85944171F73967E8)]
)
@both_ways
def test_hashes_are_those_of_fnv(word, expected, way):
    with way():
        assert hash_words(pa.array([word.encode()], pa.large_binary())).tolist() == [expected]
