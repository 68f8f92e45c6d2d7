"""Chunks of page files.

Frames end where their decoder says, chunks hold every record once, and damage is told, wherever it is.
"""

import gzip
import zlib

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from contract import warc
from contract.warc import PageReader
from stages.extractor import chunks
from stages.extractor.chunks import Chunk, cut_file
from storage.errors import Damaged
from storage.frames import (
    DICTIONARY_FRAME_MAGIC,
    ZSTD_MAGIC,
    Broken,
    Gzip,
    Members,
    TooLong,
    Torn,
    Zstd,
    frame_end,
    gzip_end,
    skippable,
    train_dictionary,
)
from tests.sampling import sampling

LEVELS = (-5, 1, 3, 9, 19, 22)
DICTIONARY = train_dictionary(
    [f"WARC/1.1\r\nnumber: {number} {number**3}\r\n".encode() * 5 for number in range(2000)], 4096
)
CONTENTS = st.one_of(
    st.binary(max_size=300),
    st.tuples(st.binary(min_size=1, max_size=40), st.integers(0, 20_000)).map(
        lambda pair: pair[0] * pair[1]
    ),  # runs, more blocks than one
    st.tuples(st.randoms(use_true_random=False), st.integers(0, 400_000)).map(
        lambda pair: pair[0].randbytes(pair[1])
    ),  # raw blocks
)


def decoded_end(data: bytes, start: int, dictionary: bytes | None = None) -> int:
    loaded = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    decoder = zstandard.ZstdDecompressor(dict_data=loaded).decompressobj()
    decoder.decompress(data[start:])
    assert decoder.eof
    return len(data) - len(decoder.unused_data)


@settings(max_examples=sampling.examples(80))
@given(
    CONTENTS,
    st.sampled_from(LEVELS),
    st.booleans(),
    st.booleans(),
    st.sampled_from((None, DICTIONARY)),
    st.booleans(),
    st.binary(max_size=20),
)
def test_a_frame_ends_where_its_decoder_says(content, level, has_checksum, has_size, dictionary, in_pieces, rest):
    loaded = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    compressor = zstandard.ZstdCompressor(
        level=level, write_checksum=has_checksum, write_content_size=has_size, dict_data=loaded
    )
    if in_pieces:  # without a size, and with a block for each piece
        stream = compressor.compressobj()
        pieces = [
            content[start : start + 1 + len(content) // 3] for start in range(0, len(content), 1 + len(content) // 3)
        ]
        frame = b"".join(
            [
                *(stream.compress(piece) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for piece in pieces),
                stream.flush(),
            ]
        )
    else:
        frame = compressor.compress(content)
    data = b"before" + frame + rest
    assert frame_end(memoryview(data), 6) == 6 + len(frame) == decoded_end(data, 6, dictionary)
    for cut in {6, 9, 10, 11, 12, len(frame) // 2 + 6, len(frame) + 5}:
        if cut < len(frame) + 6:
            with pytest.raises(Torn):
                frame_end(memoryview(data)[:cut], 6)


@pytest.mark.parametrize(
    "blocks",
    [
        b"\x03\x00\x00" + b"a",  # a last run of length 0
        (3 | 5 << 3).to_bytes(3, "little") + b"a",
        (5 << 3).to_bytes(3, "little") + b"hello" + (1 | 2 << 3).to_bytes(3, "little") + b"!!",  # raw blocks
        (2 | 100_000 << 3).to_bytes(3, "little") + b"z" + (1).to_bytes(3, "little"),  # a run, and nothing
    ],
)
@pytest.mark.parametrize(
    "header",
    [
        b"\x20\x10",
        b"\x60\x10\x00",
        b"\x80\x58\x00\x00\x10\x00",
        b"\xc0\x58" + (4096).to_bytes(8, "little"),
        b"\x00\x58",
    ],
)
def test_frames_made_by_hand(blocks, header):
    """Each form of header (RFC 8878 3.1.1.1).

    One segment or a window, sizes of 0, 1, 2, 4 and 8 bytes; raw and run blocks.
    """
    data = ZSTD_MAGIC + header + blocks
    assert frame_end(memoryview(data + b"more"), 0) == len(data)


@settings(max_examples=sampling.examples(60))
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_end_somewhere(rest, is_zstd):
    data = memoryview((ZSTD_MAGIC if is_zstd else b"\x1f\x8b\x08\x00") + rest)
    try:
        assert 4 < Members(data).pass_member(0, 1 << 20) <= len(data)
    except (Torn, Broken, TooLong):
        pass


@settings(max_examples=sampling.examples(40))
@given(CONTENTS, st.integers(0, 9), st.binary(max_size=20))
def test_a_gzip_member_ends_where_its_decoder_says(content, level, rest):
    member = gzip.compress(content, level)
    assert gzip_end(memoryview(member + rest), 0, len(content)) == len(member)
    if content:
        with pytest.raises(TooLong):
            gzip_end(memoryview(member), 0, len(content) - 1)
    with pytest.raises(Torn):
        gzip_end(memoryview(member)[:-1], 0, len(content))


def test_a_bomb_is_passed_without_being_kept():
    """64 MB in 64 kB: passed by the coordinator, and its start read, within a few MB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    member = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(64)), packer.flush()])
    members = Members(memoryview(member))
    assert members.pass_member(0, 1 << 30) == len(member) and members.read_start(0, 1000) == bytes(1000)
    frame = ZSTD_MAGIC + b"\x00\x58" + (2 | 131_072 << 3).to_bytes(3, "little") + b"\0"
    bomb = frame + ((2 | 131_072 << 3).to_bytes(3, "little") + b"\0") * 60_000 + b"\x01\x00\x00"  # 7.8 GB in 240 kB
    members = Members(memoryview(bomb))
    assert members.pass_member(0, 1 << 30) == len(bomb) and members.read_start(0, 1000) == bytes(1000)


def record(number: int, size: int = 40) -> bytes:
    return warc.encode_record(
        "resource", [("WARC-Target-URI", f"http://a.example/{number}")], bytes([number % 256]) * size
    )


def write(path, *pieces: bytes):
    path.write_bytes(b"".join(pieces))
    return path


def read_all(path, cut: list[Chunk]) -> tuple[list[tuple[int, str]], Damaged | None]:
    """Records of the chunks, which follow each other, and the damage that ends them."""
    reader = None
    found, damage = [], None
    for chunk, following in zip(cut, [*cut[1:], None]):
        assert following is None or chunk.end == following.start
        if chunk.damage:
            assert following is None and chunk.start == chunk.end
            damage = Damaged(*chunk.damage)
            continue
        reader = reader or PageReader(path)
        try:
            for record in reader.records(chunk.start, chunk.end):
                found.append((record.offset, record.url))
        except Damaged as error:
            return found, error
    return found, damage


def read_serially(path) -> tuple[list[tuple[int, str]], Damaged | None]:
    found = []
    try:
        for record in PageReader(path).records():
            found.append((record.offset, record.url))
    except Damaged as error:
        return found, error
    return found, None


@pytest.mark.parametrize("compressor", [Zstd(), Zstd(3, DICTIONARY), Gzip()], ids=["zstd", "dictionary", "gzip"])
@pytest.mark.parametrize(
    "records_max, bytes_max, number",
    [(128, 4 << 20, 300), (1, 4 << 20, 5), (7, 4 << 20, 30), (128, 1, 5), (3, 4 << 20, 0), (3, 4 << 20, 3)],
)
def test_chunks_hold_each_record_once(tmp_path, monkeypatch, compressor, records_max, bytes_max, number):
    monkeypatch.setattr(chunks, "CHUNK_RECORDS", records_max)
    monkeypatch.setattr(chunks, "CHUNK_BYTES", bytes_max)
    path = write(tmp_path / "a", compressor.opening, *(compressor.compress(record(place)) for place in range(number)))
    cut = list(cut_file(path, "a"))
    assert read_all(path, cut) == read_serially(path) and len(read_all(path, cut)[0]) == number
    assert len(cut) == (number if bytes_max == 1 else -(-number // records_max))


def test_frames_of_others_between_records(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_RECORDS", 2)
    pack, note = Zstd().compress, skippable(b"a note")
    path = write(
        tmp_path / "a",
        note,
        pack(record(0)),
        note,
        note,
        pack(record(1)),
        note,
        pack(record(2)),
        pack(record(3)),
        note,
        pack(record(4)),
        note,
        note,
    )
    assert read_all(path, list(cut_file(path, "a"))) == read_serially(path)
    assert len(read_serially(path)[0]) == 5
    second = write(
        tmp_path / "b", Zstd().compress(record(0)), skippable(b"again", DICTIONARY_FRAME_MAGIC), pack(record(1))
    )
    found, damage = read_all(second, list(cut_file(second, "b")))
    assert len(found) == 1 and "second dictionary" in str(damage)


@pytest.mark.parametrize("compressor", [Zstd(), Zstd(3, DICTIONARY), Gzip()], ids=["zstd", "dictionary", "gzip"])
def test_a_file_cut_at_every_byte(tmp_path, monkeypatch, compressor):
    """What is whole is read, then the damage is told; the same as by reading the file from its beginning to its end."""
    monkeypatch.setattr(chunks, "CHUNK_RECORDS", 2)
    opening = skippable(b"") if compressor.opening == b"" and compressor.suffix == ".zst" else compressor.opening
    members = [opening, *(compressor.compress(record(number)) for number in range(3))]
    data, path = b"".join(members), tmp_path / "a"
    ends = [sum(map(len, members[:count])) for count in range(1, 5)]
    whole_starts = max(0, len(opening) - 60)  # the dictionary is one place, however long: its last bytes are enough
    for length in [0, 1, 4, 7, 8, 9, *range(whole_starts, len(data) + 1)]:
        path.write_bytes(data[:length])
        found, damage = read_all(path, list(cut_file(path, "a")))
        assert len(found) == sum(end <= length for end in ends[1:]), length
        assert (damage is None) == (length in (0, *ends)), length


@settings(max_examples=sampling.examples(100))
@given(st.data())
def test_a_byte_that_is_wrong(tmp_path_factory, data):
    compressor = data.draw(st.sampled_from((Zstd(), Zstd(3, DICTIONARY), Gzip())))
    content = bytearray(compressor.opening + b"".join(compressor.compress(record(number)) for number in range(3)))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = write(tmp_path_factory.getbasetemp() / "wrong", bytes(content))
    found, damage = read_all(path, list(cut_file(path, "a")))
    wanted, wanted_damage = read_serially(path)
    assert found == wanted and (damage is None) == (wanted_damage is None)


def test_no_file_and_no_chunks(tmp_path):
    (gone,) = cut_file(tmp_path / "gone", "gone")
    assert gone.start == gone.end == 0 and "found none" in str(Damaged(*gone.damage))
    assert list(cut_file(write(tmp_path / "empty"), "empty")) == []
    assert list(cut_file(write(tmp_path / "note", skippable(b"nothing else")), "note")) == []


def test_the_head_of_a_record(tmp_path, monkeypatch):
    """No more of it is read than asked for, and it ends where it ends."""
    monkeypatch.setattr(warc, "HEAD_MAX_BYTES", 1000)
    for compressor in (Zstd(), Zstd(3, DICTIONARY), Gzip()):
        path = write(
            tmp_path / "a",
            compressor.opening,
            compressor.compress(record(0, 5_000_000)),
            compressor.compress(record(1)),
        )
        whole = list(PageReader(path).records())
        heads = list(PageReader(path).heads())
        assert [(head.url, head.offset, head.length) for head in heads] == [
            (one.url, one.offset, one.length) for one in whole
        ]
        assert 0 < len(heads[0].block) < 1000 and heads[1].block == whole[1].block
