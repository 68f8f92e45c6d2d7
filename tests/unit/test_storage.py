"""Arrays, frames, tables and text segments: what goes in comes out, and damage is named."""

import errno
import resource

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import columns, frames, tables, text_segments
from storage.arrays import (
    MAPPED_LEAST_BYTES,
    find_in_sorted,
    interleave,
    merge_sorted,
    open_array,
    open_bytes,
    rank_in_run,
    starts_of_runs,
)
from storage.errors import Damaged, UnknownFormat
from storage.frame_index import pack_index
from tests.sampling import sampling

keys = st.one_of(st.sampled_from([0, 1, 2**63, 2**64 - 1]), st.integers(0, 2**64 - 1))
key_sets = st.sets(keys, max_size=30)


def as_array(values):
    return np.array(sorted(values), np.uint64)


@settings(max_examples=sampling.examples(200))
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
    np.save(tmp_path / "x.npy", np.arange(rows, dtype="u8"))
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


SAMPLES = [
    b"WARC/1.1\r\nWARC-Type: response\r\nnumber %d of many, each with words of its own %d\r\n" % (n, n * n) * 20
    for n in range(300)
]
DICTIONARY = frames.train_dictionary(SAMPLES, 4096)


def read_all(data: bytes) -> list[bytes]:
    members = frames.Members(memoryview(data))
    place, found = members.first, []
    while (place := members.pass_extensions(place)) < len(data):
        part, place = members.read(place, 1 << 30)
        found.append(part)
    return found


@pytest.mark.parametrize(
    "frame",
    [
        frames.dictionary_frame(DICTIONARY),
        frames.skippable(DICTIONARY, frames.DICTIONARY_FRAME_MAGIC),
        frames.skippable(frames.Zstd().compress(DICTIONARY), frames.DICTIONARY_FRAME_MAGIC),
    ],
)
def test_a_file_may_begin_with_its_dictionary(frame):
    codec, plain = frames.Zstd(dictionary=DICTIONARY), frames.Zstd()
    data = frame + b"".join(map(codec.compress, SAMPLES[:3]))
    assert read_all(data) == SAMPLES[:3] and codec.opening == frames.dictionary_frame(DICTIONARY)
    assert len(codec.compress(SAMPLES[0])) < len(plain.compress(SAMPLES[0]))
    for length in range(1, len(frame)):
        with pytest.raises(frames.Torn):
            frames.Members(memoryview(data[:length]))
    with pytest.raises(frames.Broken, match="ictionary"):
        read_all(data[len(frame) :])  # the frames without it
    with pytest.raises(frames.Broken, match="second dictionary"):
        read_all(data + data)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"no dictionary",
        DICTIONARY[:100],
        frames.Zstd().compress(b"no dictionary"),
        frames.Zstd().compress(DICTIONARY)[:-1],
        frames.Zstd().compress(DICTIONARY) + b"more",
        frames.Zstd().compress(bytes(9 << 20)),
        frames.DICTIONARY_MAGIC + bytes(100),
    ],
)
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


def flip(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 0x10
    return bytes(changed)


LINES = [b"http://a.test/%d\n" % number for number in range(20_000)]


def write_lines(path, *pieces: list[bytes], blobs: tuple[bytes, ...] = ()) -> np.ndarray:
    writer = text_segments.SegmentWriter(path, 7)
    for piece in pieces:
        writer.append(pa.array(piece, text_segments.LINES))
    return writer.close(list(blobs))


def read_lines(path, numbers) -> list[bytes]:
    return [
        line
        for part in text_segments.Segment(path).read_lines(np.array(numbers, np.int64))
        for line in part.to_pylist()
    ]


def test_lines_and_blobs_come_back(tmp_path):
    robots = b"User-agent: *\nDisallow: /\n\nline\n" * 10_000
    places = write_lines(tmp_path / "7", LINES, blobs=(robots, b""))
    chosen = sorted(np.random.default_rng(1).permutation(len(LINES))[:3_000].tolist())
    assert read_lines(tmp_path / "7", chosen) == [LINES[number] for number in chosen]
    assert read_lines(tmp_path / "7", range(len(LINES))) == LINES and read_lines(tmp_path / "7", []) == []
    assert text_segments.read_blobs(tmp_path, str, places[::-1], np.array([0, len(robots)])) == [b"", robots]
    assert text_segments.segments_of(np.append(places, text_segments.NO_TEXT)).tolist() == [7]
    with pytest.raises(Damaged, match="expected line"):
        read_lines(tmp_path / "7", [len(LINES) + 5_000])


@pytest.mark.parametrize("cuts", [[0], [1], [3_000, 3_001, 9_999], [2_500] * 3, list(range(0, 20_000, 777))])
def test_a_segment_is_the_same_however_its_lines_came(tmp_path, cuts):
    write_lines(tmp_path / "whole", LINES)
    ends = [0, *cuts, len(LINES)]
    write_lines(tmp_path / "pieces", *(LINES[low:high] for low, high in zip(ends, ends[1:])))
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "pieces").read_bytes()


def test_lines_longer_than_a_frame(tmp_path):
    lines = [b"x" * length + b"\n" for length in (0, 70_000, 1, 200_000, 65_535, 65_536, 3)]
    write_lines(tmp_path / "7", lines)
    assert read_lines(tmp_path / "7", range(len(lines))) == lines


def test_a_broken_segment_is_damage(tmp_path):
    path = tmp_path / "0"
    write_lines(path, LINES[:10])
    whole = path.read_bytes()
    for content in (
        b"",
        whole[:-1],
        whole[1:],
        whole[:8] + b"\xff" * 8 + whole[16:],
        flip(whole, -20),
        flip(whole, -10),
    ):
        path.write_bytes(content)
        with pytest.raises(Damaged):
            read_lines(path, range(10))
    path.unlink()
    with pytest.raises(Damaged, match="found no file"):
        read_lines(path, range(10))


@pytest.mark.parametrize("rows", [0, 1, columns.FRAME_ROWS, columns.FRAME_ROWS + 1])
@pytest.mark.parametrize("pieces", [1, 3])
def test_packed_columns_come_back(tmp_path, rows, pieces):
    values = (np.arange(rows) % 7).astype(np.uint8)
    writer = columns.ColumnsWriter(tmp_path, {"key": "u8", "state": "u1", "zero": "u4"}, frozenset(("state", "zero")))
    for part in np.array_split(np.arange(rows), pieces):
        writer.append({"key": part, "state": values[part], "zero": part * 0})
    writer.close()
    table = columns.Columns(tmp_path, {"key": "u8", "state": "u1", "zero": "u4"}, frozenset(("state", "zero")))
    assert table.rows == rows and not (tmp_path / "zero.npy.zst").exists()
    assert np.array_equal(table["key"], np.arange(rows)) and np.array_equal(
        np.load(tmp_path / "key.npy"), np.arange(rows)
    )
    assert np.array_equal(table.read("state", rows // 2, rows), values[rows // 2 :]) and np.array_equal(
        table["state"], values
    )
    assert not table["zero"].any() and len(table["zero"]) == rows


def test_a_broken_packed_column_is_damage(tmp_path):
    writer = columns.ColumnsWriter(tmp_path, {"key": "u8", "state": "u1"}, frozenset(("state",)))
    writer.append({"key": np.arange(1000), "state": np.random.default_rng(1).integers(0, 250, 1000)})
    writer.close()
    path = tmp_path / "state.npy.zst"
    whole = path.read_bytes()
    for content in (
        b"",
        whole[:-1],
        whole[:100],
        whole[:200] + b"\xff" * 8 + whole[208:],
        flip(whole, -20),
        flip(whole, -10),
    ):
        path.write_bytes(content)
        with pytest.raises(Damaged, match="state.npy.zst"):
            columns.Columns(tmp_path, {"key": "u8", "state": "u1"}, frozenset(("state",)))["state"]


@pytest.mark.parametrize(
    "before, after",
    [(b"'|u1'", b"'zzz'"), (b"'|u1'", b"'|O' "), (b"'|u1'", b"[1,2]"), (b"(10,)", b"(-5,)"), (b"(10,)", b"None ")],
)
def test_a_packed_column_with_a_strange_head_is_damage(tmp_path, before, after):
    head = frames.Zstd().compress(columns.head_of(np.dtype("u1"), 10).replace(before, after))
    (tmp_path / "a.npy.zst").write_bytes(head + frames.Zstd().compress(bytes(10)) + pack_index([len(head)]))
    with pytest.raises(Damaged, match="a.npy.zst"):
        columns.read_packed(tmp_path / "a.npy.zst")


def test_a_segment_that_is_none_is_damage(tmp_path):
    (tmp_path / "a").write_bytes(
        frames.skippable(b"no dictionary", frames.DICTIONARY_FRAME_MAGIC) + pack_index([0], [0], [0])
    )
    (tmp_path / "b").mkdir()
    for name in ("a", "b"):
        with pytest.raises(Damaged, match=f"/{name}"):
            text_segments.Segment(tmp_path / name)


SCHEMA = pa.schema([pa.field("x", pa.uint64(), nullable=False)])


def test_the_same_rows_are_the_same_bytes(tmp_path):
    table = pa.table({"x": pa.array(range(20_000), pa.uint64())}, schema=SCHEMA)
    for name in ("a", "b"):
        tables.write_table(tmp_path / name, table)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert tables.column(tables.read_table(tmp_path / "a", SCHEMA, row_groups=[1]), "x")[0] == tables.ROW_GROUP_ROWS


@pytest.mark.parametrize("size", [0, 1, MAPPED_LEAST_BYTES - 1, MAPPED_LEAST_BYTES])
def test_large_files_are_mapped_and_read_alike(tmp_path, size):
    content = bytes(range(256)) * (size // 256 + 1)
    (tmp_path / "file").write_bytes(content[:size])
    opened = open_bytes(tmp_path / "file")
    assert bytes(opened) == content[:size] and opened.readonly and opened[: size // 2].nbytes == size // 2
    assert isinstance(opened.obj, np.memmap) == (size >= MAPPED_LEAST_BYTES)


def test_columns_that_hardly_repeat_have_no_dictionary(tmp_path):
    columns = ("texts", "digests", "types")
    table = pa.table({name: [f"{name} {row % 7}" for row in range(20_000)] for name in columns})
    tables.write_table(tmp_path / "t", table, ("texts",), ("digests",))
    groups = [pa.parquet.read_metadata(tmp_path / "t").row_group(number) for number in range(3)]
    assert {tuple(group.column(at).has_dictionary_page for at in range(3)) for group in groups} == {
        (False, False, True)
    }
    assert tables.read_table(tmp_path / "t", table.schema).equals(table)


def test_random_columns_are_compressed_at_their_own_level(tmp_path):
    random = np.random.Generator(np.random.PCG64(1))
    schema = pa.schema([("same", pa.string()), ("random", pa.string())])
    texts = [random.bytes(20).hex() for _ in range(tables.ROW_GROUP_ROWS)]
    table = pa.table({"same": texts, "random": texts}, schema=schema)
    tables.write_table(tmp_path / "t", table, ("same",), ("random",))
    group = pa.parquet.read_metadata(tmp_path / "t").row_group(0)
    assert group.column(1).total_compressed_size < group.column(0).total_compressed_size


def test_what_the_machine_refuses_is_no_damage(tmp_path):
    """A whole file would be set aside as damaged else."""
    tables.write_table(tmp_path / "t.parquet", pa.table({"x": pa.array([1], pa.uint64())}, schema=SCHEMA))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
        with pytest.raises(OSError) as refused:
            tables.read_table(tmp_path / "t.parquet", SCHEMA)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert refused.value.errno == errno.EMFILE


def test_other_columns_other_versions_and_damage(tmp_path):
    path = tmp_path / "t.parquet"
    tables.write_table(path, pa.table({"y": pa.array([1], pa.uint64())}))
    with pytest.raises(Damaged, match="expected columns"):
        tables.read_table(path, SCHEMA)
    pa.parquet.write_table(pa.table({"x": [1]}, schema=SCHEMA.with_metadata({"coletor.format": "99"})), path)
    with pytest.raises(UnknownFormat, match="format version 99, this program reads version"):
        tables.read_table(path, SCHEMA)
    tables.write_table(path, pa.table({"x": pa.array(range(5000), pa.uint64())}, schema=SCHEMA))
    whole = path.read_bytes()
    for content in (b"", whole[:-5], whole[:100], b"x" * 100, whole[:600] + bytes(64) + whole[664:]):
        path.write_bytes(content)
        with pytest.raises(Damaged, match="t.parquet"):
            tables.read_table(path, SCHEMA)
