"""Which pages repeat a known content: against a plain search, with the generation read in pieces of any size."""

import tempfile
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract import names
from contract.tables import UNKNOWN_DIGEST
from stages.extractor.known_contents import find_repeated, open_known_contents
from storage.errors import Damaged
from tests.extractor_lab import KEYS, write_generation
from tests.sampling import sampling

URLS = [f"http://h{number}.org/" for number in range(12)]


def digest(content: bytes) -> bytes:
    return sha256(content).digest()[:16]


def plainly_repeated(pages: list[tuple[str, bytes]], known: dict[str, bytes]) -> list[bool]:
    """What find_repeated finds, in the slow and obvious way; a page without content is not looked at."""
    repeated, seen = [], set()
    for url, content in pages:
        others = {known[other] for other in known if other != url} | seen
        repeated.append(bool(content) and content in others and known.get(url) != content)
        seen.add(content)
    return repeated


CONTENTS = st.sampled_from([b"", b"a", b"b", b"c", b"d"])


@settings(max_examples=sampling.examples(60))
@given(
    st.lists(st.tuples(st.sampled_from(URLS), CONTENTS), max_size=10, unique_by=lambda page: page[0]),
    st.dictionaries(st.sampled_from(URLS), CONTENTS.filter(bool), max_size=10),
    st.sampled_from([1, 2, 3, 7, 100]),
)
def test_repeated_pages(pages, known, rows_at_once):
    with tempfile.TemporaryDirectory() as folder:
        write_generation(Path(folder) / names.generation(0, 1), known)
        contents = open_known_contents(Path(folder), 0, 1, rows_at_once)
        found = find_repeated(
            [KEYS.of(url) for url, _ in pages], [digest(content) if content else b"" for _, content in pages], contents
        )
    assert found.tolist() == plainly_repeated(pages, known)


def test_pages_of_the_block_that_were_not_parsed_are_not_known(tmp_path):
    write_generation(tmp_path / names.generation(0, 1), {URLS[0]: b"", URLS[1]: b"a"})
    known = open_known_contents(tmp_path, 0, 1)
    digests = [digest(b""), digest(b"a"), UNKNOWN_DIGEST, b""]
    assert find_repeated([1, 2, 3, 4], digests, known).tolist() == [False, True, False, False]


def test_without_a_generation_or_pages_nothing_is_known(tmp_path):
    assert open_known_contents(tmp_path, 0, None) is None
    assert find_repeated([], [], None).tolist() == []
    assert find_repeated([1, 2], [digest(b"a")] * 2, None).tolist() == [False, True]
    with pytest.raises(Damaged, match="deleted"):
        open_known_contents(tmp_path, 0, 5)
