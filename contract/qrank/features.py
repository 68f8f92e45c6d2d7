"""The 20 features of QRank: numbers from 0 to 1 that are counted in the text of a URL, for many URLs at once.

A URL has a scheme, a host without its port, a path with its slash, and a query without its question mark. A term is a
run of ASCII letters and digits; so %C3 holds the term C3. Digits and terms of all parts are the sum over the parts; the
length is that of the whole text. Each number is divided by its maximum, and 1 stands for as many or more. Words of a
dictionary are known by 64-bit hashes of their lower-case letters (FNV-1a, by Fowler, Noll and Vo).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from contract.url_paths import view_bytes
from storage.arrays import Array
from storage.compiled import compiled

# By column: what is counted, and its maximum.
FEATURES = (
    ("length", 650),
    ("length_scheme", 5),
    ("length_host", 50),
    ("length_path", 300),
    ("length_query", 300),
    ("digits", 650),
    ("digits_host", 50),
    ("digits_path", 300),
    ("digits_query", 300),
    ("capitals", 650),
    ("capitals_path", 300),
    ("capitals_query", 300),
    ("terms", 300),
    ("terms_scheme", 1),
    ("terms_host", 10),
    ("terms_path", 100),
    ("terms_query", 100),
    ("pieces_path", 20),  # texts between slashes; empty ones do not count
    ("words_path", 1),  # share of dictionary words among the terms; 1 where there are none
    ("words_query", 1),
)
MAXIMA = np.array([most for _, most in FEATURES], np.float32)

PLAIN_READ = 1 << 12  # URLs, and words, that Python reads in the time of importing numba
_NEWLINE, _SLASH, _QUESTION, _COLON, _BRACKET, _END_BRACKET = b"\n/?:[]"
_DIGIT_FIRST, _DIGIT_LAST, _CAPITAL_FIRST, _CAPITAL_LAST, _SMALL_FIRST, _SMALL_LAST = b"09AZaz"
_TO_SMALL = 0x20  # the bit that tells small letters from capital ones; digits have it too
_HASH_BEGIN = np.uint64(0xCBF2_9CE4_8422_2325)  # FNV-1a of 64 bits
_HASH_PRIME = np.uint64(0x0000_0100_0000_01B3)
_BIN_BITS = 16
_BIN_SHIFT = np.uint64(64 - _BIN_BITS)


@dataclass
class Words:
    """A dictionary: hashes of words, u64, sorted, each once. `starts`: where those with the same upper bits begin."""

    hashes: Array
    starts: Array = field(init=False)

    def __post_init__(self) -> None:
        upper = (self.hashes >> _BIN_SHIFT).astype(np.int64)
        self.starts = np.searchsorted(upper, np.arange((1 << _BIN_BITS) + 1))


def features_of(lines: pa.LargeBinaryArray, words: Words) -> Array:
    """The features of canonical URLs, f4, a row per URL in their order and a column per feature, each from 0 to 1."""
    data, offsets = view_bytes(lines)
    counts = np.empty((len(lines), len(FEATURES)), np.float32)
    count_each(data, offsets, words.hashes, words.starts, counts)
    counts /= MAXIMA
    return np.minimum(counts, np.float32(1), out=counts)


def hash_words(texts: pa.LargeBinaryArray) -> Array:
    """The hashes of some words, u64, in their order; words have letters and digits only."""
    data, offsets = view_bytes(texts)
    hashes = np.empty(len(texts), np.uint64)
    hash_each_word(data, offsets, hashes)
    return hashes


@compiled("u1[] i8[] u8[] i8[] -> f4[,]", PLAIN_READ)
def count_each(data, offsets, words, starts, counts):  # type: ignore[no-untyped-def]
    for row in range(len(offsets) - 1):
        begin, stop = offsets[row], offsets[row + 1]
        stop -= stop > begin and data[stop - 1] == _NEWLINE
        scheme_end = find_byte(data, begin, stop, _COLON)
        host = min(scheme_end + 3, stop)  # behind ://
        path = find_byte(data, host, stop, _SLASH)
        in_brackets = host < path and data[host] == _BRACKET  # an IPv6 address has colons of its own
        host_end = find_byte(data, host, path, _END_BRACKET) if in_brackets else host
        host_end = find_byte(data, host_end, path, _COLON)
        path_end = find_byte(data, path, stop, _QUESTION)
        query = min(path_end + 1, stop)
        _, _, scheme_terms, _ = read_part(data, begin, scheme_end, words, starts)
        host_digits, _, host_terms, _ = read_part(data, host, host_end, words, starts)
        path_digits, path_capitals, path_terms, path_words = read_part(data, path, path_end, words, starts)
        query_digits, query_capitals, query_terms, query_words = read_part(data, query, stop, words, starts)
        counts[row, 0] = stop - begin
        counts[row, 1] = scheme_end - begin
        counts[row, 2] = host_end - host
        counts[row, 3] = path_end - path
        counts[row, 4] = stop - query
        counts[row, 5] = host_digits + path_digits + query_digits
        counts[row, 6] = host_digits
        counts[row, 7] = path_digits
        counts[row, 8] = query_digits
        counts[row, 9] = path_capitals + query_capitals
        counts[row, 10] = path_capitals
        counts[row, 11] = query_capitals
        counts[row, 12] = scheme_terms + host_terms + path_terms + query_terms
        counts[row, 13] = scheme_terms
        counts[row, 14] = host_terms
        counts[row, 15] = path_terms
        counts[row, 16] = query_terms
        counts[row, 17] = count_pieces(data, path, path_end)
        counts[row, 18] = path_words / path_terms if path_terms else 1
        counts[row, 19] = query_words / query_terms if query_terms else 1
    return 0


@compiled("u1[] i8[] -> u8[]", PLAIN_READ)
def hash_each_word(data, offsets, hashes):  # type: ignore[no-untyped-def]
    for row in range(len(hashes)):
        state = _HASH_BEGIN
        for at in range(offsets[row], offsets[row + 1]):
            state = hash_byte(state, data[at])
        hashes[row] = state
    return 0


@compiled()
def read_part(data: Any, begin: Any, end: Any, words: Any, starts: Any) -> Any:
    """Numbers of digits, capital letters, terms, and terms that are words of the dictionary, in [begin, end)."""
    digits, capitals, terms, known = 0, 0, 0, 0
    state, is_inside = _HASH_BEGIN, False
    for at in range(begin, end):
        byte = data[np.uint64(at)]
        is_digit = _DIGIT_FIRST <= byte <= _DIGIT_LAST
        is_capital = _CAPITAL_FIRST <= byte <= _CAPITAL_LAST
        if is_digit or is_capital or _SMALL_FIRST <= byte <= _SMALL_LAST:
            digits += is_digit
            capitals += is_capital
            terms += not is_inside
            state, is_inside = hash_byte(state, byte), True
        elif is_inside:
            known += is_word(state, words, starts)
            state, is_inside = _HASH_BEGIN, False
    if is_inside:
        known += is_word(state, words, starts)
    return digits, capitals, terms, known


@compiled()
def hash_byte(state: Any, byte: Any) -> Any:
    return (state ^ np.uint64(byte | _TO_SMALL)) * _HASH_PRIME


@compiled()
def is_word(state: Any, words: Any, starts: Any) -> Any:
    place = np.int64(state >> _BIN_SHIFT)
    at, end = starts[place], starts[place + 1]
    while at < end and words[at] != state:
        at += 1
    return at < end


@compiled()
def count_pieces(data: Any, begin: Any, end: Any) -> Any:
    pieces = 0
    for at in range(begin + 1, end):
        pieces += data[at] != _SLASH and data[at - 1] == _SLASH
    return pieces


@compiled()
def find_byte(data: Any, at: Any, stop: Any, wanted: Any) -> Any:
    """The first offset from `at` on that holds a byte, `stop` where none does."""
    while at < stop and data[at] != wanted:
        at += 1
    return at
