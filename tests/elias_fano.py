"""Rising numbers in the form of Elias and Fano, as PyPI's `webgraph` 0.2 (the Rust crate 0.7) maps it into memory.

P. Elias, "Efficient storage and retrieval by content and address of static files", Journal of the ACM 21, 1974: the
low bits of all numbers lie side by side; number i sets bit (number >> width) + i of the high bits. For finding the
i-th bit that is set, every 2,048th one has an entry: its place, then in 16 bits each how far on every 64th one is.
Where the next entry is too far off for 16 bits, an entry has the places of all 2,048 instead.

The file is what the Rust crate epserde 0.13 makes of that structure: a head that names its type, then the fields one by
one; an array is its length, then its words from a multiple of 8 bytes on. A reader of another version refuses the head;
its `webgraph build ef` makes the file anew from graph.offsets. That is why `bin/graph export` does not write it.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from storage.arrays import Array, Rows
from storage.errors import naming

TYPE = (
    b"sux::dict::elias_fano::EliasFano<u64, sux::rank_sel::select_adapt_const::SelectAdaptConst<sux::bits::bit_vec::"
    b"BitVec<alloc::boxed::Box<[usize]>>, alloc::boxed::Box<[usize]>, 11, 3>, sux::bits::bit_field_vec::BitFieldVecU<"
    b"alloc::boxed::Box<[u64]>>>"
)
# SHA-256 of the type and of its alignment, as epserde 0.13 counts them; the reader names them where it finds others.
TYPE_HASH = bytes.fromhex("2104224edfab29a9b7f197f9bc1e1f0893fe9a213877443ffefcdd3047a04395")
ALIGNMENT_HASH = bytes.fromhex("ffb987f6d9bb2fd34b4936c9086e280208ec2ab94322eb39081763e18788cd18")
VERSION = (2, 0)
WORD_BYTES, WORD_BITS = 8, 64
ENTRY = 2048  # numbers per entry
STEP = 64  # numbers per place of 16 bits
ENTRY_WORDS = 1 + ENTRY // STEP // 4
NEAR = 1 << 16
FAR = -1 << 62  # the two highest bits, of a word with a sign
AT_ONCE = 1 << 18  # numbers or bits; a multiple of ENTRY


def write_elias_fano(path: Path, numbers: Array) -> None:
    """The numbers rise, the last is the largest; i8, at least one. They are read three times, some at a time."""
    count, last = len(numbers), int(numbers[-1])
    width = max((last // count).bit_length() - 1, 0)
    bits = count + (last >> width) + 1
    with open(path, "wb") as file, naming(path):
        file.write(b"epserde " + struct.pack("<HHB", *VERSION, WORD_BYTES) + TYPE_HASH + ALIGNMENT_HASH)
        write_words(file, len(TYPE))
        file.write(TYPE)
        write_words(file, count, last, width, int(numbers[0]), last)  # its fields n, u, l, first_val, last_val
        begin_array(file, words_for(count * width) + 1)  # one more: readers take 64 bits from any byte on
        for piece in low_bits(numbers, width):
            file.write(piece)
        file.write(bytes(WORD_BYTES))
        write_words(file, width, (1 << width) - 1, count)
        begin_array(file, words_for(bits))
        for piece in high_bits(numbers, width, bits):
            file.write(piece)
        write_words(file, bits)
        begin_array(file, -(-count // ENTRY) * ENTRY_WORDS + 1)
        spilled: list[Rows] = []
        for piece in entries(numbers, width, bits, spilled):
            file.write(piece)
        write_words(file, bits)
        begin_array(file, sum(map(len, spilled)))
        for places in spilled:
            file.write(places.tobytes())


def write_words(file: BinaryIO, *words: int) -> None:
    file.write(struct.pack(f"<{len(words)}Q", *words))


def begin_array(file: BinaryIO, words: int) -> None:
    write_words(file, words)
    file.write(bytes(-file.tell() % WORD_BYTES))


def words_for(bits: int) -> int:
    return -(-bits // WORD_BITS)


def low_bits(numbers: Array, width: int) -> Iterator[bytes]:
    """The lowest bits of each number, in whole words."""
    for start in range(0, len(numbers) if width else 0, AT_ONCE):
        piece = numbers[start : start + AT_ONCE]
        low = np.empty((len(piece), width), np.uint8)
        for bit in range(width):
            low[:, bit] = piece >> bit & 1
        yield pack(low.ravel())


def high_bits(numbers: Array, width: int, bits: int) -> Iterator[bytes]:
    first = 0  # number whose bit is not set yet
    for begin in range(0, bits, AT_ONCE):
        high = np.zeros(min(AT_ONCE, bits - begin), np.uint8)
        places = places_of(numbers, first, first + AT_ONCE, width) - begin
        places = places[: np.searchsorted(places, len(high))]
        high[places] = 1
        first += len(places)
        yield pack(high)


def pack(bits: Array) -> bytes:
    packed = np.packbits(bits, bitorder="little").tobytes()
    return packed + bytes(-len(packed) % WORD_BYTES)


def places_of(numbers: Array, start: int, stop: int, width: int) -> Rows:
    """Which of the high bits these numbers set."""
    piece = numbers[start:stop]
    places: Rows = (piece >> width) + np.arange(start, start + len(piece))
    return places


def entries(numbers: Array, width: int, bits: int, spilled: list[Rows]) -> Iterator[bytes]:
    """The entries of all numbers. `spilled` gets the places for which an entry has no room."""
    total = 0
    for start in range(0, len(numbers), AT_ONCE):
        places = places_of(numbers, start, start + AT_ONCE + 1, width)
        here = places[:AT_ONCE]
        following = np.append(places[ENTRY::ENTRY], bits)[: -(-len(here) // ENTRY)]
        first = here[::ENTRY]
        steps = np.zeros((len(first), ENTRY // STEP), np.uint16)
        steps.ravel()[: -(-len(here) // STEP)] = here[::STEP] - np.repeat(first, ENTRY // STEP)[: -(-len(here) // STEP)]
        words = np.column_stack([first, steps.view(np.int64)])
        for row in np.flatnonzero(following - first > NEAR):
            own = here[row * ENTRY : (row + 1) * ENTRY]
            words[row] = 0
            words[row, : min(len(own), ENTRY_WORDS - 1) + 1] = [own[0], total, *own[1 : ENTRY_WORDS - 1]]
            words[row, 0] |= FAR
            spilled.append(own[ENTRY_WORDS - 1 :])
            total += len(spilled[-1])
        yield words.tobytes()


def index_graph(folder: Path) -> None:
    """Writes graph.ef, as the Rust library's `webgraph build ef` does: the sums of the gamma codes of graph.offsets."""
    bits = "".join(f"{byte:08b}" for byte in (folder / "graph.offsets").read_bytes())
    properties = dict(line.split("=") for line in (folder / "graph.properties").read_text().split() if "=" in line)
    gaps, at = [], 0
    for _ in range(int(properties["nodes"]) + 1):
        width = bits.index("1", at) - at
        gaps.append(int(bits[at + width : at + 2 * width + 1], 2) - 1)
        at += 2 * width + 1
    write_elias_fano(folder / "graph.ef", np.cumsum(gaps))
