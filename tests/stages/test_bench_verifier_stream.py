"""bin/bench verifier: the stream of made rows."""

import numpy as np
import pyarrow.compute as pc
import pytest

from bench.verifier.inputs import extracted_table, metadata_table, servers_table
from bench.verifier.stream import Shape, Stream, level_for
from contract.blocks import interval
from contract.tables import CYCLE_SERVERS, EXTRACTED, METADATA
from contract.url import canonicalise, server_of
from tests.stages.test_bench_verifier import EVERYTHING, SMALL, play


def test_the_same_seed_gives_the_same_bytes_and_another_one_others():
    first, again, other = (
        Stream(shape) for shape in (SMALL, SMALL, Shape(servers=2_000, collected=300, extracted=3_000, seed=2))
    )
    for cycle in range(3):
        one, two, three = (stream.extract(cycle) for stream in (first, again, other))
        assert first.urls_of(one.server, one.number).equals(again.urls_of(two.server, two.number))
        assert np.array_equal(one.key, two.key) and np.array_equal(one.links_in, two.links_in)
        assert not np.array_equal(one.key, three.key)


def test_a_stream_that_was_saved_goes_on_as_the_one_that_was_not(tmp_path):
    whole, stopped, resumed = Stream(SMALL), Stream(SMALL), Stream(SMALL)
    for stream in (whole, stopped):
        list(play(stream, 3))
    stopped.save(tmp_path / "stream.npz")
    resumed.load(tmp_path / "stream.npz")
    assert np.array_equal(whole.extract(3).key, resumed.extract(3).key)
    assert np.array_equal(whole.collect(*EVERYTHING).key, resumed.collect(*EVERYTHING).key)


def test_the_share_of_known_urls_is_kept_and_rows_are_distinct_and_in_order():
    stream = Stream(SMALL)
    known = set()
    for cycle, (urls, _) in enumerate(play(stream, 12)):
        keys = urls.key.tolist()
        assert len(keys) == len(set(keys)) == SMALL.extracted
        domain = stream.domain_key[urls.server]
        assert np.array_equal(np.lexsort((urls.key, domain)), np.arange(len(urls)))
        share = len(known.intersection(keys)) / SMALL.extracted
        assert share == stream.known_share
        assert share == 0 if cycle == 0 else share <= 0.7
        known.update(keys)
    assert share > 0.69
    assert int(stream.counts.sum()) == len(known)
    fresh = Stream(Shape(servers=2_000, collected=300, extracted=3_000, known_share=0.0))
    assert sum(len(urls) for urls, _ in play(fresh, 3)) == int(fresh.counts.sum())


def test_a_text_follows_from_its_url_alone_and_no_two_urls_share_one():
    stream = Stream(SMALL)
    text_of, key_of = {}, {}
    for urls, batch in play(stream, 6):
        for pair, key, text in zip(
            zip(urls.server.tolist(), urls.number.tolist()), urls.key.tolist(), batch.texts.to_pylist()
        ):
            assert text_of.setdefault(pair, text) == text and key_of.setdefault(pair, key) == key
    assert len(set(text_of.values())) == len(set(key_of.values())) == len(text_of)
    assert 50 < pc.mean(pc.binary_length(batch.texts)).as_py() < 70
    for (server, _), text in list(text_of.items())[::97]:
        assert canonicalise(text) == text and server_of(text) == stream.texts.servers[server].as_py()


def test_servers_have_names_of_their_own_and_sizes_by_a_power_law():
    stream = Stream(Shape(servers=100_000, collected=1_000, extracted=200_000, known_share=0.0))
    assert pc.count_distinct(stream.texts.servers).as_py() == 100_000
    assert len(np.unique(stream.domain_key)) == 50_000 and len(np.unique(stream.server_key)) == 100_000
    stream.extract(0)
    sizes = stream.counts.astype(float)
    expected = 200_000 * np.log(1_000 + 100.0) - 200_000 * np.log(100.0)
    assert sizes[:1_000].sum() == pytest.approx(expected / np.log((100_000 + 100) / 100), rel=0.02)


def test_collected_urls_are_of_the_block_known_and_never_collected_before():
    stream = Stream(SMALL)
    known, collected = set(), set()
    for cycle in range(8):
        block = interval(cycle % 2, 2)
        extracted, chosen = stream.extract(cycle), stream.collect(*block)
        keys = set(chosen.key.tolist())
        assert len(keys) == len(chosen) == (SMALL.collected if cycle >= 2 else 0)
        assert keys <= known and not keys & collected
        assert all(block[0] <= key < block[1] for key in stream.domain_key[chosen.server].tolist())
        collected |= keys
        stream.note_turn(*block, chosen)
        here = stream.absorbed > 0
        known = {
            int(key)
            for server in np.flatnonzero(here)
            for key in stream.keys_of(
                np.full(stream.absorbed[server], server, np.uint32), np.arange(stream.absorbed[server], dtype=np.uint32)
            )
        }
        assert len(extracted) == SMALL.extracted


def test_a_quota_takes_as_many_as_are_wanted():
    assert level_for(np.array([5, 1, 9]), 8) == 4  # 4 + 1 + 4
    assert level_for(np.array([5, 1, 9]), 100) == 9
    assert level_for(np.array([], np.uint32), 5) == 0


def test_tables_are_those_of_the_contract():
    stream = Stream(SMALL)
    (_, _), (urls, _) = list(play(stream, 2))
    collected = stream.collect(*EVERYTHING)
    for table, schema in (
        (extracted_table(stream, urls), EXTRACTED),
        (metadata_table(stream, collected, 1_700_000_000_000), METADATA),
        (servers_table(stream, collected, 1_700_000_000_000), CYCLE_SERVERS),
    ):
        assert table.schema.equals(schema)
        table.validate(full=True)
