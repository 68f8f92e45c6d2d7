"""Arrays, frames, tables and text segments: what goes in comes out, and damage is named."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import frames, tables, text_segments
from storage.arrays import find_in_sorted, interleave, merge_sorted, open_array, rank_in_run, starts_of_runs, write_array
from storage.errors import Damaged, UnknownFormat

keys = st.one_of(st.sampled_from([0, 1, 2**63, 2**64 - 1]), st.integers(0, 2**64 - 1))
key_sets = st.sets(keys, max_size=30)


def as_array(values):
    return np.array(sorted(values), np.uint64)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(key_sets, key_sets)
def test_set_operations_agree_with_sets(left, right):
    a, b = as_array(left), as_array(right)
    in_a, in_b = find_in_sorted(a, b)
    assert set(a[in_a].tolist()) == left & right and a[in_a].tolist() == b[in_b].tolist()
    only = as_array(right - left)
    merged, a_places, b_places = merge_sorted(a, only)
    assert merged.tolist() == sorted(left | right)
    assert interleave(a, only, a_places, b_places).tolist() == merged.tolist()


def test_runs():
    values = np.array([3, 3, 5, 9, 9, 9])
    assert starts_of_runs(values).tolist() == [0, 2, 3] and rank_in_run(values).tolist() == [0, 1, 0, 0, 1, 2]
    assert not len(starts_of_runs(values[:0])) and not len(rank_in_run(values[:0]))


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_columns_come_back(tmp_path, rows):
    write_array(tmp_path / "x.npy", np.arange(rows, dtype="u8"))
    assert open_array(tmp_path / "x.npy", "u8").tolist() == list(range(rows))
    with pytest.raises(Damaged, match="expected a column of u4"):
        open_array(tmp_path / "x.npy", "u4")


@pytest.mark.parametrize("content", [b"", b"junk", b"\x93NUMPY\x01\x00"])
def test_a_broken_column_is_damage(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(Damaged, match="x.npy"):
        open_array(tmp_path / "x.npy", "u8")


def test_a_column_of_python_objects_is_never_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(Damaged):
        open_array(tmp_path / "x.npy", "u8")


@pytest.mark.parametrize("codec", [frames.Zstd(), frames.Gzip()])
def test_members_stand_alone(codec):
    parts = [b"one", b"", b"x" * 300_000]
    data = memoryview(b"".join(codec.compress(part) for part in parts))
    members, place, found = frames.Members(data), 0, []
    while place < len(data):
        part, place = members.read(place, 1 << 20)
        found.append(part)
    assert found == parts
    with pytest.raises(frames.TooLong):
        frames.Members(memoryview(codec.compress(b"x" * 1000))).read(0, 999)
    whole = codec.compress(b"some content that is long enough to be cut anywhere")
    for length in range(1, len(whole)):
        with pytest.raises(frames.Torn):
            frames.Members(memoryview(whole[:length])).read(0, 1 << 20)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0x40
    with pytest.raises((frames.Broken, frames.Torn)):
        frames.Members(memoryview(bytes(flipped))).read(0, 1 << 20)
    with pytest.raises(frames.Broken):
        frames.Members(memoryview(b"plain text")).read(0, 1 << 20)


SAMPLES = [b"WARC/1.1\r\nWARC-Type: response\r\nnumber %d of many, each with words of its own %d\r\n" % (n, n * n) * 20 for n in range(300)]
DICTIONARY = frames.train_dictionary(SAMPLES, 4096)


def read_all(data: bytes) -> list[bytes]:
    members = frames.Members(memoryview(data))
    place, found = members.first, []
    while (place := members.pass_extensions(place)) < len(data):
        part, place = members.read(place, 1 << 30)
        found.append(part)
    return found


@pytest.mark.parametrize("frame", [
    frames.dictionary_frame(DICTIONARY), frames.skippable(DICTIONARY, frames.DICTIONARY_FRAME_MAGIC),
    frames.skippable(frames.Zstd().compress(DICTIONARY), frames.DICTIONARY_FRAME_MAGIC),
])
def test_a_file_may_begin_with_its_dictionary(frame):
    codec, plain = frames.Zstd(dictionary=DICTIONARY), frames.Zstd()
    data = frame + b"".join(map(codec.compress, SAMPLES[:3]))
    assert read_all(data) == SAMPLES[:3] and codec.opening == frames.dictionary_frame(DICTIONARY)
    assert len(codec.compress(SAMPLES[0])) < len(plain.compress(SAMPLES[0]))
    for length in range(1, len(frame)):
        with pytest.raises(frames.Torn):
            frames.Members(memoryview(data[:length]))
    with pytest.raises(frames.Broken, match="ictionary"):
        read_all(data[len(frame):])  # the frames without it
    with pytest.raises(frames.Broken, match="second dictionary"):
        read_all(data + data)


@pytest.mark.parametrize("payload", [
    b"", b"no dictionary", DICTIONARY[:100], frames.Zstd().compress(b"no dictionary"), frames.Zstd().compress(DICTIONARY)[:-1],
    frames.Zstd().compress(DICTIONARY) + b"more", frames.Zstd().compress(bytes(9 << 20)), frames.DICTIONARY_MAGIC + bytes(100),
])
def test_what_is_no_dictionary_is_told(payload):
    with pytest.raises(frames.Broken):
        frames.Members(memoryview(frames.skippable(payload, frames.DICTIONARY_FRAME_MAGIC)))


def test_a_dictionary_may_not_claim_gigabytes():
    with pytest.raises(frames.Broken, match="at most"):
        frames.Members(memoryview(frames.DICTIONARY_FRAME_MAGIC.to_bytes(4, "little") + b"\xff\xff\xff\x7f"))


def test_frames_that_are_not_ours_are_passed_over():
    codec, other = frames.Zstd(), frames.skippable(b"of another program")
    assert read_all(codec.compress(b"one") + other * 2 + codec.compress(b"two") + other) == [b"one", b"two"]
    with pytest.raises(frames.Torn):
        read_all(codec.compress(b"one") + other[:-1])


@pytest.mark.parametrize("codec", [frames.Zstd(), frames.Zstd(dictionary=DICTIONARY), frames.Gzip()])
@pytest.mark.parametrize("size", [0, 10, frames.AT_ONCE_BYTES, 3 * frames.AT_ONCE_BYTES + 5])
def test_pieces_make_one_member(codec, size):
    pieces = [b"head", memoryview(np.random.default_rng(1).bytes(size)), b"", bytearray(b"tail")]
    assert read_all(codec.opening + codec.compress(*pieces)) == [b"".join(pieces)]


def test_nothing_is_learnt_from_nothing():
    assert frames.train_dictionary([], 4096) is None and frames.train_dictionary([b"x"] * 3, 4096) is None


def test_texts_come_back_in_any_order(tmp_path):
    texts = [b"http://a.test/%d" % number for number in range(20_000)]
    robots = b"User-agent: *\nDisallow: /\n\nline\n" * 10_000
    places = text_segments.write_segment(tmp_path / "7", 7, [*texts, robots, b""])
    order = np.random.default_rng(1).permutation(len(texts))
    assert text_segments.read_texts(tmp_path, str, places[order]) == [texts[place] for place in order]
    assert text_segments.read_texts(tmp_path, str, places[-2:], np.array([len(robots), 0])) == [robots, b""]
    assert text_segments.segments_of(np.append(places, text_segments.NO_TEXT)).tolist() == [7]


def test_a_broken_segment_is_damage(tmp_path):
    places = text_segments.write_segment(tmp_path / "0", 0, [b"http://a.test/"] * 10)
    whole = (tmp_path / "0").read_bytes()
    for content in (b"", whole[:-1], whole[1:], whole[:8] + b"\xff" * 8 + whole[16:]):
        (tmp_path / "0").write_bytes(content)
        with pytest.raises(Damaged):
            text_segments.read_texts(tmp_path, str, places)
    (tmp_path / "0").unlink()
    with pytest.raises(Damaged, match="found no file"):
        text_segments.read_texts(tmp_path, str, places)


SCHEMA = pa.schema([pa.field("x", pa.uint64(), nullable=False)])


def test_the_same_rows_are_the_same_bytes(tmp_path):
    table = pa.table({"x": pa.array(range(20_000), pa.uint64())}, schema=SCHEMA)
    for name in ("a", "b"):
        tables.write_table(tmp_path / name, table)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert tables.column(tables.read_table(tmp_path / "a", SCHEMA, row_groups=[1]), "x")[0] == tables.ROW_GROUP_ROWS


def test_other_columns_other_versions_and_damage(tmp_path):
    path = tmp_path / "t.parquet"
    tables.write_table(path, pa.table({"y": pa.array([1], pa.uint64())}))
    with pytest.raises(Damaged, match="expected columns"):
        tables.read_table(path, SCHEMA)
    pa.parquet.write_table(pa.table({"x": [1]}, schema=SCHEMA.with_metadata({"coletor.format": "2"})), path)
    with pytest.raises(UnknownFormat, match="format version 2, this program reads version 1"):
        tables.read_table(path, SCHEMA)
    tables.write_table(path, pa.table({"x": pa.array(range(5000), pa.uint64())}, schema=SCHEMA))
    whole = path.read_bytes()
    for content in (b"", whole[:-5], whole[:100], b"x" * 100, whole[:600] + bytes(64) + whole[664:]):
        path.write_bytes(content)
        with pytest.raises(Damaged, match="t.parquet"):
            tables.read_table(path, SCHEMA)
