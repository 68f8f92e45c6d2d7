"""How many terms of a list each of many URLs has, counted by a compiled loop.

A URL is read as people read it: escapes are bytes of UTF-8 (%C3%A1 is á), and ASCII letters are folded to lower case.
Words are those of contract/terms.py: whole runs of letters and digits, in the host, the path and the query. So
`drinking-water`, `drinking_water` and `drinking%20water` have the phrase "drinking water". A word with other letters
is found as written in lower case, with a capital at its beginning, and in capitals. Not found: words within Punycode
(xn--), and in other encodings than UTF-8.

A word has a number if a term has it. The numbers of the last words in a row make a hash, longer by one word each time;
a term is found where its hash appears.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from contract.url_paths import view_bytes
from storage.arrays import Array
from storage.compiled import compiled

COUNT_MAX = 255  # different terms that are counted in a text
PLAIN_COUNTED = 1 << 10  # URLs that Python handles in the time of importing numba
_PRIME, _BASIS = np.uint64(0x0000_0100_0000_01B3), np.uint64(0xCBF2_9CE4_8422_2325)  # FNV-1a
_STIRRING = np.uint64(0x94D0_49BB_1331_11EB)  # splitmix64


class TermTable:
    """Hashes of the words and terms of a list of folded terms, of which each is there once."""

    def __init__(self, terms: list[str]):
        numbers = {word: number for number, word in enumerate(dict.fromkeys(" ".join(terms).split()), 1)}
        with np.errstate(over="ignore"):
            words = {
                int(hash_word(spelling, 0, len(spelling))): number
                for word, number in numbers.items()
                for spelling in spell(word)
            }
            hashes = np.array([self._hash(term, numbers) for term in terms], np.uint64)
        self.word_hash = np.array(sorted(words), np.uint64)
        self.word_number = np.array([words[one] for one in self.word_hash.tolist()], np.uint64)
        self.term_hash = np.sort(hashes)
        self.longest = max((term.count(" ") + 1 for term in terms), default=1)

    @staticmethod
    def _hash(term: str, numbers: dict[str, int]) -> np.uint64:
        value = np.uint64(0)
        for word in term.split():
            value = extend(value, np.uint64(numbers[word]))
        return value

    def count(self, urls: pa.Array | pa.ChunkedArray) -> Array:
        """How many different terms each URL has, u1."""
        data, offsets = view_bytes(urls)
        counts = np.zeros(len(urls), np.uint8)
        longest_url = int(np.diff(offsets).max(initial=0))
        buffer, chain = np.empty(longest_url, np.uint8), np.zeros(self.longest, np.uint64)
        seen = np.zeros(len(self.term_hash), np.int64)
        count_terms(data, offsets, self.word_hash, self.word_number, self.term_hash, buffer, chain, seen, counts)
        return counts


def spell(word: str) -> set[bytes]:
    """The spellings of a folded word that are found, as read_url() writes them: with ASCII letters in lower case."""
    spellings = (word, word.capitalize(), word.upper())
    return {spelling.encode().lower() for spelling in spellings if spelling.lower() == word}


@compiled("u1[] i8[] u8[] u8[] u8[] -> u1[] u8[] i8[] u1[]", PLAIN_COUNTED)
def count_terms(  # type: ignore[no-untyped-def]
    data, offsets, word_hash, word_number, term_hash, buffer, chain, seen, counts
):
    """`seen` has for each term the last row in which it was found, from 1 on."""
    for row in range(len(counts)):
        length = read_url(data, offsets[row], offsets[row + 1], buffer)
        found, at = 0, 0
        while at < length and buffer[at] != 0x3A:  # the scheme is no text; a colon ends it
            at += 1
        chain[0] = 0  # a hash of 0 stands for no words
        for size in range(1, len(chain)):
            chain[size] = 0
        while at < length:
            gap = measure_gap(buffer, at, length)
            if gap:
                at += gap
                continue
            begin = at
            while at < length and not measure_gap(buffer, at, length):
                at += 1
            word = find_hash(word_hash, hash_word(buffer, begin, at))
            for size in range(len(chain) - 1, -1, -1):
                before = np.uint64(chain[size - 1]) if size else np.uint64(0)
                goes_on = word >= 0 and (size == 0 or before != 0)
                chain[size] = extend(before, np.uint64(word_number[word])) if goes_on else np.uint64(0)
                term = find_hash(term_hash, np.uint64(chain[size])) if goes_on else -1
                if term >= 0 and seen[term] != row + 1:
                    seen[term] = row + 1
                    found += 1
        counts[row] = min(found, COUNT_MAX)
    return 0


@compiled()
def read_url(data: Any, at: Any, stop: Any, buffer: Any) -> Any:
    """Writes a URL with its escapes as bytes, in lower case as far as it is ASCII; returns its length."""
    length = 0
    while at < stop:
        byte = data[at]
        at += 1
        if byte == 0x25 and at + 2 <= stop:  # %
            high, low = read_digit(data[at]), read_digit(data[at + 1])
            if high >= 0 and low >= 0:
                byte = 16 * high + low
                at += 2
        if 0x41 <= byte <= 0x5A:
            byte += 0x20
        buffer[length] = byte
        length += 1
    return length


@compiled()
def read_digit(byte: Any) -> Any:
    """The value of a hexadecimal digit, or -1."""
    digit = -1
    if 0x30 <= byte <= 0x39:
        digit = int(byte) - 0x30
    elif 0x41 <= byte <= 0x46:
        digit = int(byte) - 0x37
    elif 0x61 <= byte <= 0x66:
        digit = int(byte) - 0x57
    return digit


@compiled()
def measure_gap(buffer: Any, at: Any, stop: Any) -> Any:
    """Bytes of the character at an offset where it is none of a word, else 0: what contract/terms.py leaves out."""
    byte = buffer[at]
    follows = buffer[at + 1] if at + 1 < stop else 0
    gap = 0
    if byte < 0x80:
        gap = 0 if 0x30 <= byte <= 0x39 or 0x61 <= byte <= 0x7A else 1
    elif byte == 0xC2:  # U+0080 to U+00BF
        gap = 2
    elif byte == 0xE2 and (follows == 0x80 or follows == 0x81) or byte == 0xE3 and follows == 0x80:
        gap = 3  # U+2000 to U+207F, U+3000 to U+303F
    return gap


@compiled()
def hash_word(data: Any, at: Any, stop: Any) -> Any:
    value = _BASIS
    for place in range(at, stop):
        value = (value ^ np.uint64(data[place])) * _PRIME
    return value


@compiled()
def extend(value: Any, number: Any) -> Any:
    """The hash of some words and one more; never 0."""
    value = (value ^ number) * _STIRRING
    value = (value ^ (value >> np.uint64(30))) * _PRIME
    return value | np.uint64(1)


@compiled()
def find_hash(hashes: Any, wanted: Any) -> Any:
    """The index of a hash among sorted ones, or -1."""
    low, high = 0, len(hashes)
    while low < high:
        middle = (low + high) // 2
        if hashes[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(hashes) and hashes[low] == wanted else -1
