"""Loops of the verifier, compiled and plain, against simple Python, also at sizes where longer steps are taken."""

import random

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.accumulators import ACCUMULATORS
from contract.tables import EXTRACTED
from contract.url_paths import hash_texts, locate_paths
from stages.extractor.documents.tag_scan import find_byte
from stages.verifier.arrived_links import Arrived, find_firsts, first_of_each, gather
from stages.verifier.texts import count_in_use
from storage.pairs import Runs, find_pairs, sort_pairs
from storage.text_segments import take_lines
from storage.weave import Weave
from tests.loop_ways import both_ways
from tests.sampling import sampling

quick = settings(max_examples=sampling.examples(150))
few_keys = st.integers(0, 3) | st.integers(2**64 - 2, 2**64 - 1)


find_byte_by_machine_code = numba.njit(find_byte)  # tag_scan.py keeps it only as a part of its loop


@quick
@given(
    st.integers(0, 60),
    st.lists(st.integers(0, 60), max_size=30),
    st.sampled_from(["u1", "u2", "u4", "i4", "u8", "i8", "V16"]),
)
def test_new_rows_stand_before_theirs(old_rows, before, dtype):
    before = sorted(min(place, old_rows) for place in before)
    old, new = (
        np.random.default_rng(seed).bytes(count * np.dtype(dtype).itemsize)
        for seed, count in enumerate((old_rows, len(before)))
    )
    old, new = np.frombuffer(old, dtype), np.frombuffer(new, dtype)
    want, taken = [], 0
    for place in range(old_rows + 1):
        here = before.count(place)
        want += new[taken : taken + here].tolist() + old[place : place + 1].tolist()
        taken += here
    weave = Weave(old_rows, np.array(before, np.int64))
    assert len(weave) == old_rows + len(before) and [weave.join(old, new).tolist() for _ in range(2)] == [want, want]
    if dtype != "V16":
        assert weave.join(old, 7).tolist() == weave.join(old, np.full(len(new), 7, dtype)).tolist()


@both_ways
@quick
@given(
    st.lists(
        st.tuples(
            st.sampled_from([pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]),
            st.lists(st.text(max_size=9), max_size=6),
            st.integers(0, 2),
        ),
        max_size=4,
    ),
    st.data(),
)
def test_lines_of_some_texts(way, sources, data):
    arrays = [
        pa.array([text.encode() for text in texts], pa.binary()).cast(kind)[skipped:]
        for kind, texts, skipped in sources
    ]
    texts = [text for array in arrays for text in array.cast(pa.large_binary()).to_pylist()]
    which = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=20)) if texts else []
    with way():
        assert take_lines(arrays, np.array(which, np.int32)).to_pylist() == [texts[place] + b"\n" for place in which]


@pytest.mark.parametrize("find", [find_byte_by_machine_code, np.errstate(over="ignore")(find_byte)])
@quick
@given(st.binary(max_size=40), st.integers(0, 45), st.integers(0, 255), st.integers(0, 40))
def test_a_byte_is_found(find, text, at, wanted, stop):
    stop = min(stop, len(text))
    found = text.find(bytes([wanted]), at, stop)
    assert find(np.frombuffer(text, np.uint8), at, stop, wanted) == (found if found >= 0 else max(stop, at))


@both_ways
@quick
@given(
    st.lists(
        st.lists(st.tuples(few_keys, few_keys, st.integers(0, 255), st.integers(0, 2**32 - 1)), max_size=8), max_size=4
    ),
    st.integers(0, 3),
)
def test_each_url_is_gathered_once(way, tables, foreign_rows):
    def table(rows: list) -> pa.Table:
        rows = sorted(rows)
        columns = dict(zip(("domain_key", "url_key", "depth", "links_in"), zip(*rows))) if rows else {}
        urls = [f"http://{domain}/{key}" for domain, key, *_ in rows]
        given_columns = {
            **{one.name: [0] * len(rows) for one in ACCUMULATORS},
            **columns,
            "url": urls,
            "server_key": columns.get("domain_key", ()),
            "lastmod_s": columns.get("links_in", ()),  # the same numbers: one is added up, the other's largest stays
        }
        return pa.table(
            {name: pa.array(list(given_columns.get(name, ())), EXTRACTED.field(name).type) for name in EXTRACTED.names},
            schema=EXTRACTED,
        )

    foreign = [(domain, 5, 9, 0) for domain in range(foreign_rows)]
    rows = [row for part in tables for row in part]
    with way():
        gathered = gather(Arrived([table(part) for part in tables], table(foreign)))
    links = gathered.links
    want = {}
    for domain, key, depth, links_in in rows + foreign:
        least, total, most = want.get((domain, key), (255, 0, 0))
        want[domain, key] = min(least, depth), total + links_in, max(most, links_in)
    assert list(zip(links.domain_key.tolist(), links.key.tolist())) == sorted(want) and len(links) == len(want)
    assert links.depth.tolist() == [want[pair][0] for pair in sorted(want)]
    everything = np.arange(len(want))
    assert links.brought_of("links_in", everything).tolist() == [want[pair][1] for pair in sorted(want)]
    assert links.brought_of("lastmod_s", everything).tolist() == [want[pair][2] for pair in sorted(want)]
    assert "cash" not in links.brought and links.brought_of("cash", everything).tolist() == [0] * len(want)
    linked = {(domain, key) for domain, key, *_ in rows}
    assert links.linked.tolist() == [pair in linked for pair in sorted(want)] and links.rows == len(rows)
    assert gathered.lines_of(everything).to_pylist() == [
        f"http://{domain}/{key}\n".encode() for domain, key in sorted(want)
    ]


@quick
@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3), max_size=30))
def test_firsts_of_values(values):
    distinct, rows = first_of_each(np.array(values, np.uint64))
    assert distinct.tolist() == list(dict.fromkeys(values)) and rows.tolist() == [
        values.index(value) for value in dict.fromkeys(values)
    ]
    assert find_firsts(np.empty(0, np.int32), 0).tolist() == []


@both_ways
@pytest.mark.parametrize("rows, runs", [(1, 1), (17, 3), (5_000, 1), (5_000, 7), (5_000, 5_000), (40_000, 64)])
@pytest.mark.sampled(5)
def test_long_columns_are_sorted_and_searched(way, rows, runs):
    """Keys repeat; runs that rise, runs of one row, and one run."""
    draw = random.Random(rows + runs)
    pairs = [
        (draw.randrange(50) << 57, draw.randrange(2**64) if draw.random() < 0.9 else draw.randrange(3))
        for _ in range(rows)
    ]
    cuts = sorted(draw.sample(range(1, rows), min(runs, rows) - 1))
    pairs = [pair for low, high in zip([0, *cuts], [*cuts, rows]) for pair in sorted(pairs[low:high])]
    first, second = (np.array(column, np.uint64) for column in zip(*pairs))
    with way():
        order, majors, minors = sort_pairs(first.copy(), second.copy())
    assert order.tolist() == sorted(range(rows), key=pairs.__getitem__)  # stable
    assert list(zip(majors.tolist(), minors.tolist())) == sorted(pairs)
    distinct = sorted(set(pairs))
    place_of = {pair: place for place, pair in enumerate(distinct)}
    wanted = sorted(
        [
            *draw.sample(pairs, min(rows, 500)),
            *((first, second ^ 1) for first, second in draw.sample(pairs, min(rows, 500))),
        ]
    )
    for asked in (wanted, wanted[::-1], draw.sample(wanted, len(wanted))):
        with way():
            found = find_pairs(
                *(np.array(column, np.uint64) for column in zip(*asked)),
                *(np.array(column, np.uint64) for column in zip(*distinct)),
            )
        assert found.tolist() == [place_of.get(pair, -1) for pair in asked]


@both_ways
def test_nothing_is_found_in_nothing(way):
    nothing = np.empty(0, np.uint64)
    with way():
        place, there = Runs(nothing, np.zeros(1, np.int64), nothing).search(
            np.array([0, 2**64 - 1], np.uint64), np.array([0, 0], np.uint64)
        )
        assert place.tolist() == [0, 0] and there.tolist() == [False, False]
        assert [part.tolist() for part in sort_pairs(nothing, nothing)] == [[], [], []]


def test_rows_of_each_segment_are_counted():
    counts = count_in_use(np.array([0, 255, 255, 3], np.uint8))
    assert counts[[0, 3, 255]].tolist() == [1, 1, 2] and counts.sum() == 4


@both_ways
def test_hashes_stay_what_they_are(way):
    """They stand in the tables of prefixes of crawls that go on."""
    texts = [b"", b"/", b"/artigo", b"/artigos/", b"/a/b/c/d/e/f/g/h?i=j", bytes(range(256))]
    ends = np.cumsum([len(text) for text in texts])
    with way():
        hashes = hash_texts(np.frombuffer(b"".join(texts), np.uint8), ends - [len(text) for text in texts], ends, 1)
    assert hashes.tolist() == [
        0x94D049BA3A91829D,
        0x15693613F4CEA0BE,
        0xBD7F9470EB2FEF7A,
        0xF719C88146454112,
        0xF2F7A3735E9DDE71,
        0xF3AA5BD8B3B76DF4,
    ]


@both_ways
@pytest.mark.parametrize("ending", ["", "\n"])
@pytest.mark.parametrize(
    "url, path, first, second, levels",
    [
        ("http://a.br/", "/", None, None, 0),
        ("http://a.br/b", "/b", None, None, 1),
        ("http://a.br/b/c/d/e/", "/b/c/d/e/", "/b", "/b/c", 4),
        ("https://a.br//b//c?d/e/f", "//b//c", "//b/", None, 2),
        ("http://a.br/?/b/c", "/", None, None, 0),
        ("http://a.br/b/c/d?", "/b/c/d", "/b", "/b/c", 3),
    ],
)
def test_paths_are_located(url, path, first, second, levels, ending, way):
    urls = pa.array(["http://x.br/y/z" + ending, url + ending, "http://x.br/y/z" + ending])
    with way():
        found = locate_paths(urls, np.array([1]))
    start, end = int(found.start[0]), int(found.end[0])
    text = found.data.tobytes().decode()
    assert (text[start:end], int(found.levels[0]), bool(found.with_query[0])) == (path, levels, "?" in url)
    for want, stop in ((first, found.first_end), (second, found.second_end)):
        assert want is None or text[start : int(stop[0])] == want
