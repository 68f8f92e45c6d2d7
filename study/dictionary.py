"""The dictionary of QRank's features: the most frequent words of English, Portuguese and Russian, as URLs write them.

The lists are those of pyspellchecker (MIT licence), which counted the words of film subtitles. URLs have letters of
ASCII only: letters lose their accents, and Russian is transliterated by BGN/PCGN 1947, simplified: without apostrophes
and dots, so that the letters for hard and soft signs vanish, and with e for every е, ё and э. Words of one or two
letters are left out, because escaped bytes such as %de would be words too.
"""

import unicodedata
from functools import lru_cache

import numpy as np
import pyarrow as pa

from contract.qrank.features import Words, hash_words

LANGUAGES = ("en", "pt", "ru")
WORDS_PER_LANGUAGE = 20_000  # pyspellchecker has some 19,900 of Russian
LETTERS_MIN = 3
RUSSIAN = str.maketrans(
    dict(zip("абвгдезийклмнопрстуфыэ", "abvgdeziyklmnoprstufye"))
    | {"ё": "e", "ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ь": ""}
    | {"ю": "yu", "я": "ya"}
)


@lru_cache(maxsize=1)
def read_dictionary() -> Words:
    words = sorted({spell(word) for language in LANGUAGES for word in frequent_words(language)} - {""})
    return Words(np.unique(hash_words(pa.array([word.encode() for word in words], pa.large_binary()))))


def frequent_words(language: str) -> list[str]:
    """The most frequent words of a language, as pyspellchecker has them."""
    from spellchecker import SpellChecker

    counts = SpellChecker(language=language).word_frequency.items()
    return [word for word, _ in sorted(counts, key=lambda item: (-item[1], item[0]))[:WORDS_PER_LANGUAGE]]


def spell(word: str) -> str:
    """A word of a list as a URL has it, in small letters of ASCII; nothing where that is no word for us."""
    latin = unicodedata.normalize("NFC", word.lower()).translate(RUSSIAN)
    plain = "".join(mark for mark in unicodedata.normalize("NFD", latin) if not unicodedata.combining(mark))
    return plain if plain.isascii() and plain.isalpha() and len(plain) >= LETTERS_MIN else ""
