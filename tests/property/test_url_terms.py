"""A URL has the terms of the text that it spells, whether Python counts them or machine code."""

from urllib.parse import quote

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from contract.terms import TermCounter, words_of
from contract.url import canonicalise
from contract.url_terms import TermTable, count_terms
from storage.text_segments import data_of

# Letters in lower case: of others a URL is searched for three spellings only.
LETTERS = "abz09 -_/.,+%&?\u00e1\u00ab\u2014\u0432\u3002\u6c34\u00a0\u2080"
TEXTS = st.lists(st.sampled_from([*LETTERS, "water", "drinking", " "]), max_size=30).map("".join)


def count_plainly(table: TermTable, lines: pa.LargeBinaryArray) -> list[int]:
    """As TermTable.count(), by the loop as Python."""
    offsets, data = data_of(lines)
    arrays = (data, offsets, table.word_hash, table.word_number, table.term_hash)
    written = (np.empty(2_000, np.uint8), np.zeros(table.longest, np.uint64), np.zeros(len(table.term_hash), np.int64))
    counts = np.zeros(len(lines), np.uint8)
    with np.errstate(over="ignore"):
        count_terms.function(*(each.data for each in (*arrays, *written, counts)))
    return counts.tolist()


@given(st.lists(TEXTS, min_size=1, max_size=8), st.lists(TEXTS, max_size=12))
def test_a_url_has_the_terms_of_the_text_that_it_spells(texts, pieces):
    count_terms.load()
    terms = sorted({" ".join(words_of(piece)[:8]) for piece in [*pieces, texts[0]]} - {""})
    wanted = [TermCounter(terms)(f"http a br {text}") for text in texts]
    urls = [canonicalise(f"http://a.br/?{quote(text)}") for text in texts]
    lines = pa.array([f"{url}\n".encode() for url in urls], pa.large_binary())
    table = TermTable(terms)
    assert table.count(lines).tolist() == count_plainly(table, lines) == wanted
