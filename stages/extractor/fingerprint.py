"""A 64-bit fingerprint of a page's text; pages that are nearly the same get fingerprints that differ in few bits.

Theory. Simhash (Charikar 2002; for the web Manku, Jain and Das Sarma 2007). The text is cut into words, every three in
a row make a shingle, and each distinct shingle has a hash. Bit b of the fingerprint is bit b of most hashes, so a few
changed shingles change few bits. Words are runs of letters, digits and non-ASCII characters, in lower case. In Chinese
and Japanese, which have no blanks, each character is a word. Hashes have a fixed seed: a text has the same fingerprint
everywhere, and bin/show --near-duplicates compares the fingerprints of whole crawls.

All is arithmetic on arrays. A word's hash is the sum over its bytes of table[byte] * BASE^i, where i is the byte's
offset in the text. A product with BASE^-start makes the hash independent of the word's offset (BASE is odd, so it has
an inverse mod 2^64).

Cost, one core: about 160 us for a page of 28 KB of Debian's Python documentation, whose text has 7,700 characters and
860 words: 90 us for its words, 70 us for the rest. A text of 1 MB: 16 ms.
"""

from functools import lru_cache

import numpy as np

WORDS_MIN = 8  # a text of fewer has too few shingles for a vote
TEXT_MAX_BYTES = 1 << 20  # what follows does not count: 60 MB of arrays are enough
SEED = 2007
BASE = 0x9E37_79B9_7F4A_7C15  # 2^64 over the golden ratio, odd
BASE_INVERSE = pow(BASE, -1, 1 << 64)
_CJK_LEADS = range(0xE3, 0xEA)  # first bytes of U+3000 to U+9FFF in UTF-8: kana and Chinese characters
# Odd; one per word of a shingle.
_FACTORS = np.uint64([0x9FB2_1C65_1E98_DF25, 0xD6E8_FEB8_6659_FD93, 0xA076_1D64_78BD_642F])
_LOW_BITS = np.uint64(0x0101_0101_0101_0101)
_SHIFTS = np.arange(8, dtype=np.uint64)[:, None]
_COUNT_MAX = 255  # what a byte can count


def mix(values: np.ndarray) -> np.ndarray:
    """Spreads every bit of u64 values over all others (the finaliser of MurmurHash3). Only 0 becomes 0."""
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51_AFD7_ED55_8CCD)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xC4CE_B9FE_1A85_EC53)
    return values ^ (values >> np.uint64(33))


def make_weights() -> np.ndarray:
    """A number for each byte that words are made of; 0 for the bytes between words."""
    is_word = [byte >= 128 or chr(byte).isalnum() for byte in range(256)]
    return mix(np.arange(SEED, SEED + 256, dtype=np.uint64) * np.uint64(BASE)) * np.uint64(is_word)


_WEIGHTS = make_weights()
_IS_WORD = bytes(_WEIGHTS != 0)
_IS_START = bytes(byte in _CJK_LEADS for byte in range(256))  # begins a word even where it follows one


def fingerprint(text: str) -> int:
    """The fingerprint of a text, as a u64 that is not 0; 0 where there are fewer than WORDS_MIN words."""
    words = hash_words(text)
    if len(words) < WORDS_MIN:
        return 0
    count = len(words) - len(_FACTORS) + 1
    shingles = sum(words[index : index + count] * factor for index, factor in enumerate(_FACTORS))
    return vote(np.unique(mix(shingles))) or 1


def hash_words(text: str) -> np.ndarray:
    """A u64 for each word of the text, in their order."""
    content = text[:TEXT_MAX_BYTES].lower().encode("utf-8", "replace")[:TEXT_MAX_BYTES]
    is_word = np.frombuffer(content.translate(_IS_WORD), bool)
    is_start = is_word.copy()
    is_start[1:] = is_word[1:] > is_word[:-1]
    if not content.isascii():
        is_start |= np.frombuffer(content.translate(_IS_START), bool)
    starts = np.flatnonzero(is_start)
    if not len(starts):
        return np.zeros(0, np.uint64)
    powers, inverses = powers_of_base(max(len(content) - 1, 1 << 16).bit_length())
    weights = _WEIGHTS.take(np.frombuffer(content, np.uint8))
    return mix(np.add.reduceat(weights * powers[: len(weights)], starts) * inverses[starts])


@lru_cache(maxsize=2)
def powers_of_base(bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The first 2^bits powers of BASE and of its inverse, mod 2^64."""
    return tuple(
        np.cumprod(np.append(np.uint64([1]), np.full((1 << bits) - 1, base, np.uint64)))
        for base in (BASE, BASE_INVERSE)
    )


def vote(hashes: np.ndarray) -> int:
    """Of u64 hashes, at least one, the number whose bits are those of more than half of them."""
    # One sum of u64 counts eight bits of a value, one per byte; each byte has room for 255 values.
    counts = np.add.reduceat((hashes >> _SHIFTS) & _LOW_BITS, np.arange(0, len(hashes), _COUNT_MAX), axis=1)
    counts = counts.astype("<u8").view(np.uint8).reshape(8, -1, 8).sum(axis=1, dtype=np.int64)  # of bit shift, byte
    bits = (counts * 2 > len(hashes)).T  # of byte, bit
    return int.from_bytes(np.packbits(bits, axis=1, bitorder="little").tobytes(), "little")
