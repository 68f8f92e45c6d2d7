"""Fingerprints of texts: near for texts that are nearly the same, far for others, and the same everywhere."""

import random

import numpy as np
import pytest

from stages.extractor.fingerprint import TEXT_MAX_BYTES, WORDS_MIN, fingerprint, hash_words, vote

WORDS = [
    first + second
    for first in ["ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra"]
    for second in ["ba", "den", "firm", "gol", "hut", "kam", "lex", "min", "not"]
]


def make_text(seed: int, words: int = 800) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def distance(left: str, right: str) -> int:
    return (fingerprint(left) ^ fingerprint(right)).bit_count()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("The quick brown fox jumps over the lazy dog, and then over the fence.", 15759832506480633176),
        ("O rápido é ágil: ÁGUA, pão e açúcar não são só três.", 14848579542181133431),
        ("日本語の文章はこのように書きます。", 7273115117270629964),
    ],
)
def test_a_text_has_the_same_fingerprint_everywhere(text, expected):
    assert fingerprint(text) == expected


@pytest.mark.parametrize(
    "text", ["", " ", "...", "one two three four five six seven", "a-b-c-d-e-f-g", "\ud800", "\0" * 99]
)
def test_texts_of_few_words_have_none(text):
    assert fingerprint(text) == 0


def test_a_text_of_enough_words_has_one_even_if_they_are_all_the_same():
    assert fingerprint("a " * WORDS_MIN) != 0
    assert fingerprint("a " * WORDS_MIN) == fingerprint("a " * 1_000)


def test_case_blanks_and_punctuation_do_not_count():
    text = make_text(1)
    assert fingerprint(text) == fingerprint(text.upper().replace(" ", ",\n\t ") + "!")
    assert fingerprint("É ÇÃO " * 9) == fingerprint("é ção " * 9)


def test_a_word_has_the_same_hash_wherever_it_stands():
    hashes = hash_words("word, " + "x " * 70_000 + "(word) sword")
    assert hashes[0] == hashes[-2] != hashes[-1]
    assert len(np.unique(hash_words(" ".join(WORDS)))) == len(WORDS)


def test_characters_of_chinese_are_words():
    assert len(hash_words("日本語 abc 漢字")) == 6
    assert len(hash_words("ação caçador")) == 2


@pytest.mark.parametrize("seed", range(5))
def test_small_changes_turn_few_bits_and_other_texts_many(seed):
    text = make_text(seed)
    words = text.split()
    assert distance(text, "page made on 12 May " + text) <= 6
    assert distance(text, " ".join(words[:400] + ["other"] + words[401:])) <= 6
    assert distance(text, make_text(seed + 100)) > 12
    assert distance(text, " ".join(random.Random(seed).sample(words, len(words)))) > 12  # the same words, shuffled


def test_what_lies_beyond_the_bound_does_not_count():
    text = make_text(1, TEXT_MAX_BYTES // 4)
    assert len(text) > TEXT_MAX_BYTES
    assert fingerprint(text) == fingerprint(text + " more of it")


@pytest.mark.parametrize("count", [1, 2, 3, 254, 255, 256, 1_000])
def test_a_vote_is_what_more_than_half_say_bit_by_bit(count):
    hashes = [random.Random(count).getrandbits(64) for _ in range(count)]
    expected = sum(1 << bit for bit in range(64) if 2 * sum(value >> bit & 1 for value in hashes) > count)
    assert vote(np.uint64(hashes)) == expected
    ones = [(1 << 64) - 1] * count
    assert vote(np.uint64(ones)) == ones[0]
