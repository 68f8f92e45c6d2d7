"""What training starts from: the levels of ranks, the words of the dictionary as URLs spell them, and its table."""

import numpy as np
import pytest

from study.dictionary import spell
from study.evaluation import Row, table_lines
from study.training import targets_of


def levels_of(*ranks: float) -> list[float]:
    return np.round(targets_of(np.array(ranks, np.float64)) * 11 - 1, 9).tolist()


def test_levels_are_logarithms_beside_the_mean_cut_towards_zero():
    mean, many = 1.0, 10**6
    ranks = [0.15, 0.36, 0.37, 1.0, 2.71, 2.72, 7.38, 7.4, np.exp(9.99), np.exp(10.01), np.exp(12)]
    filler = (many * mean - sum(ranks)) / (many - len(ranks))
    found = np.round(targets_of(np.concatenate([ranks, np.full(many - len(ranks), filler)])) * 11 - 1, 9)
    assert found[: len(ranks)].tolist() == [-1, -1, 0, 0, 0, 1, 1, 2, 9, 10, 10]


def test_ranks_of_any_unit_have_the_same_levels():
    ranks = np.random.default_rng(18).pareto(1.2, 1_000)
    assert np.array_equal(targets_of(ranks), targets_of(ranks * 2.0**-20))


def test_a_rank_of_zero_has_the_least_level():
    assert levels_of(0, 0, 6) == [-1, -1, 1]
    assert levels_of(0, 0) == [-1, -1]


@pytest.mark.parametrize(
    "word, expected",
    [
        ("House", "house"), ("informação", "informacao"), ("público", "publico"), ("дом", "dom"), ("ёлка", "elka"),
        ("щётка", "shchetka"), ("объявление", "obyavlenie"), ("хороший", "khoroshiy"), ("жизнь", "zhizn"),
        ("de", ""), ("é", ""), ("мы", ""), ("level's", ""), ("guarda-chuva", ""), ("3d5", ""), ("ßtraße", ""),
    ],
)  # fmt: skip
def test_words_are_spelled_as_in_urls(word, expected):
    assert spell(word) == expected


def test_the_table_has_a_dash_where_nothing_is_known():
    lines = table_lines([Row("network", 0.0284, 0.7129), Row("always the mean", 0.5, None)])
    assert [line.split() for line in lines[1:]] == [
        ["network", "2.8%", "0.713"],
        ["always", "the", "mean", "50.0%", "-"],
    ]
