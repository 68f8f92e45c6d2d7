"""The compressed form of WebGraph, BVGraph, as its Java and Rust libraries read it.

P. Boldi and S. Vigna, "The WebGraph Framework I: Compression Techniques", WWW 2004; its codes: "The WebGraph Framework
II: Codes for the World-Wide Web", DCC 2004, and P. Elias, IEEE Transactions on Information Theory 21, 1975. Pages that
are neighbours by URL have similar links, most of them nearby. So the list of a node says what it copies from one of
the seven lists before it, then its runs of consecutive targets, then the gaps between the other ones:

outdegree         nothing follows if it is 0
reference         how many nodes back the list is that parts are copied from; 0: none
blocks            if there is a reference: their number, then how many targets are copied, skipped, copied and so on;
                  minus 1, except the first. The last block ends where that list does, and is left out
intervals         if targets remain: the number of runs of 4 or more; for each its first target, as the distance from
                  the node (first run) or from the end of the run before, and its length minus 4
residuals         the other targets: the first as the distance from the node, the others from the target before

Codes: unary for the reference, zeta with k = 3 for residuals, otherwise gamma. A distance x from the node may be
negative: it is written as 2x, or as -2x - 1. All other distances are written less what they are at least. Bits fill
each byte from the highest one on. A list that is copied from may copy from another one, at most three deep.

graph.graph holds the lists; graph.properties says with which parameters. graph.offsets has the first bit of each list
and the end of the last, as gamma codes of their differences.
"""

from pathlib import Path
from typing import BinaryIO

import numpy as np

from contract.errors import BadInput
from graph.csr import INT32_END, Csr
from graph.folder import Level
from graph.padova import write_urls
from storage.arrays import Array, open_array
from storage.columns import PlainWriter
from storage.compiled import compiled
from storage.errors import naming
from storage.publish import ASIDE

GRAPH, OFFSETS, PROPERTIES = FILES = ("graph.graph", "graph.offsets", "graph.properties")
EDGES_AT_ONCE = 1 << 20
EDGE_BYTES, NODE_BYTES = 6, 17  # at most: a zeta code has 44 bits; outdegree, reference and number of runs 127
GAP_BYTES = 16  # a gamma code of 64 bits has 127
# The defaults of WebGraph. Readers take them from graph.properties.
WINDOW = 7
DEPTH_MAX = 3
INTERVAL_LEAST = 4
ZETA = 3


def write_bvgraph(folder: Path, level: Level) -> None:
    compress(folder, level.links)
    write_urls(folder, level)


def compress(folder: Path, links: Csr) -> int:
    """Writes the files of FILES; returns the bits of all lists."""
    if len(links) >= INT32_END:
        raise BadInput(f"webgraph numbers nodes in 31 bits: expected fewer than {INT32_END:,}, found {len(links):,}")
    aside = folder / f"{ASIDE}starts.npy"  # the first bit of each list, and the end of the last one
    starts = PlainWriter(aside, "<i8")
    starts.append(np.zeros(1, np.int64))
    with open(folder / GRAPH, "wb") as file, naming(folder / GRAPH):
        lists, depths = BitFile(file), np.zeros(0, np.int64)
        for start, stop in links.row_pieces(EDGES_AT_ONCE):
            before = lists.bits
            lengths, depths = write_lists(lists, links, start, stop, depths)
            starts.append(before + np.cumsum(lengths))
        lists.close()
    starts.close()
    write_offsets(folder / OFFSETS, open_array(aside, "<i8"))
    aside.unlink()
    with naming(folder / PROPERTIES):
        (folder / PROPERTIES).write_text(properties_of(links))
    return lists.bits


def properties_of(links: Csr) -> str:
    about = {
        "graphclass": "it.unimi.dsi.webgraph.BVGraph",
        "version": 0,
        "nodes": len(links),
        "arcs": links.edges,
        "windowsize": WINDOW,
        "maxrefcount": DEPTH_MAX,
        "minintervallength": INTERVAL_LEAST,
        "zetak": ZETA,
        "compressionflags": "",  # the usual codes
    }
    return "#BVGraph properties\n" + "".join(f"{name}={value}\n" for name, value in about.items())


class BitFile:
    """A file to which bits are appended. The last byte waits until it is full."""

    def __init__(self, file: BinaryIO):
        self._file, self._last = file, 0
        self.bits = 0

    def open_piece(self, bytes_max: int) -> tuple[Array, int]:
        """Zeros to set bits in, and the first bit that is free."""
        piece = np.zeros(bytes_max + 1, np.uint8)
        piece[0] = self._last
        return piece, self.bits % 8

    def append(self, piece: Array, end: int) -> None:
        """Takes over all bits of the piece before `end`."""
        self.bits += end - self.bits % 8
        self._file.write(piece[: end // 8].tobytes())
        self._last = int(piece[end // 8]) if end % 8 else 0

    def close(self) -> None:
        if self.bits % 8:
            self._file.write(bytes([self._last]))


def write_lists(file: BitFile, links: Csr, start: int, stop: int, depths: Array) -> tuple[Array, Array]:
    """Writes the lists [start, stop); returns the bits of each, and how deep the last ones copy.

    `depths` says so of the lists before `start`: some of the last, which may be copied from.
    """
    kept = len(depths)
    low, middle, high = (int(links.offsets[row]) for row in (start - kept, start, stop))
    offsets = np.asarray(links.offsets[start - kept : stop + 1], np.int64) - low
    targets = np.ascontiguousarray(links.targets[low:high], np.int32)
    largest = int(np.diff(offsets).max())
    numbers, rest = np.empty(2 * list_numbers_max(largest), np.uint32), np.empty(largest, np.int32)
    depths = np.append(depths, np.zeros(stop - start, np.int64))
    lengths = np.empty(stop - start, np.int64)
    piece, begin = file.open_piece((high - middle) * EDGE_BYTES + (stop - start) * NODE_BYTES)
    file.append(piece, encode_lists(offsets, targets, start, kept, begin, numbers, rest, depths, lengths, piece))
    return lengths, depths[-WINDOW:]


def write_offsets(path: Path, starts: Array) -> None:
    with open(path, "wb") as file, naming(path):
        gaps = BitFile(file)
        for at in range(0, len(starts), EDGES_AT_ONCE):
            piece = np.diff(starts[at : at + EDGES_AT_ONCE], prepend=starts[max(at - 1, 0)])
            bits, begin = gaps.open_piece(len(piece) * GAP_BYTES)
            gaps.append(bits, encode_gaps(piece, begin, bits))
        gaps.close()


def list_numbers_max(edges: int) -> int:
    """At most two per edge, for a block that is copied and one that is skipped; two counts, and one block more."""
    return 2 * edges + 3


@compiled("i8[] i4[] i8 i8 i8 -> u4[] i4[] i8[] i8[] u1[]")
def encode_lists(
    offsets: Array,
    targets: Array,
    first: int,
    kept: int,
    begin: int,
    numbers: Array,
    rest: Array,
    depths: Array,
    lengths: Array,
    piece: Array,
) -> int:
    """Sets the bits of each list but the first `kept`, from bit `begin` on; returns the bit behind the last one.

    Of all lists that may be copied from, the one with fewest bits is taken, the nearest of equal ones. `numbers` has
    room for two lists as numbers: the best one so far, and the one that is tried.
    """
    at = begin
    for row in range(kept, len(offsets) - 1):
        low, high, node = offsets[row], offsets[row + 1], first + row - kept
        start = at
        at = put_gamma(piece, at, high - low)
        if high > low:
            best, other = 0, len(numbers) // 2
            reference, least, zetas, end = 0, -1, 0, 0
            for back in range(min(WINDOW, row) + 1):
                source = row - back
                if back and (depths[source] == DEPTH_MAX or offsets[source] == offsets[source + 1]):
                    continue
                size = offsets[source + 1] - offsets[source] if back else 0
                tried_zetas, tried_end = describe(targets, low, high, offsets[source], size, node, numbers, other, rest)
                bits = back + count_bits(numbers, other, tried_zetas, tried_end, least - back)
                if least < 0 or bits < least:
                    reference, least, zetas, end = back, bits, tried_zetas, tried_end
                    best, other = other, best
            depths[row] = depths[row - reference] + 1 if reference else 0
            at = put(piece, at + reference, 1, 1)
            for number in range(best, zetas):
                at = put_gamma(piece, at, np.int64(numbers[number]))
            for number in range(zetas, end):
                at = put_zeta(piece, at, np.int64(numbers[number]))
        lengths[row - kept] = at - start
    return at


@compiled()
def describe(
    targets: Array, low: int, high: int, source: int, size: int, node: int, numbers: Array, begin: int, rest: Array
) -> tuple[int, int]:
    """A list as numbers from `begin` on, with `size` targets from `source` on to copy from.

    Returns where those with zeta codes begin, and where all end. `rest` has room for the targets.
    """
    at, left, mine = begin, 0, low
    if size:
        at += 1
        theirs, stop, is_copied, length = source, source + size, True, 0
        while mine < high and theirs < stop:
            if targets[mine] < targets[theirs]:
                rest[left] = targets[mine]
                left += 1
                mine += 1
            elif is_copied == (targets[mine] == targets[theirs]):
                length += 1
                theirs += 1
                mine += is_copied
            else:
                numbers[at] = length - (at > begin + 1)
                at += 1
                is_copied, length = not is_copied, 0
        if is_copied and theirs < stop:
            numbers[at] = length - (at > begin + 1)
            at += 1
        numbers[begin] = at - begin - 1
    for more in range(mine, high):
        rest[left] = targets[more]
        left += 1
    if not left:
        return at, at
    counted, residuals, run, last = at, 0, 0, node
    numbers[counted] = 0
    at += 1
    while run < left:
        end = run + 1
        while end < left and rest[end] == rest[end - 1] + 1:
            end += 1
        if end - run < INTERVAL_LEAST:
            for alone in range(run, end):
                rest[residuals] = rest[alone]
                residuals += 1
        else:
            numbers[at] = rest[run] - last - 1 if numbers[counted] else fold(rest[run] - node)
            numbers[at + 1] = end - run - INTERVAL_LEAST
            at += 2
            numbers[counted] += 1
            last = rest[end - 1] + 1
        run = end
    zetas = at
    for alone in range(residuals):
        numbers[at] = rest[alone] - rest[alone - 1] - 1 if alone else fold(rest[0] - node)
        at += 1
    return zetas, at


@compiled()
def fold(number: int) -> int:
    return 2 * number if number >= 0 else -2 * number - 1


@compiled()
def count_bits(numbers: Array, begin: int, zetas: int, end: int, limit: int) -> int:
    """The bits of a list after its reference; of one that has more than `limit`, unless that is negative, some."""
    bits = 1
    for at in range(begin, end):
        value = np.int64(numbers[at]) + 1
        width = width_of(value)
        if at < zetas:
            bits += 2 * width - 1
        else:
            steps = (width - 1) // ZETA
            bits += steps + (steps + 1) * ZETA + (value >> steps * ZETA > 1)
        if 0 <= limit < bits:
            break
    return bits


@compiled()
def width_of(value: int) -> int:
    """Bits of a number, from its highest 1 on."""
    width = 0
    while value >> width:
        width += 1
    return width


@compiled()
def put_gamma(piece: Array, at: int, number: int) -> int:
    """Zeros, one fewer than number + 1 has bits, then number + 1."""
    width = width_of(number + 1)
    return put(piece, at + width - 1, number + 1, width)


@compiled()
def put_zeta(piece: Array, at: int, number: int) -> int:
    """As many zeros as number + 1 has whole threes of bits behind its highest 1; a 1; which number of so many bits.

    The lower ones of these, as many as there are with fewer threes, take a bit less than the others.
    """
    value = number + 1
    steps = (width_of(value) - 1) // ZETA
    least = 1 << steps * ZETA
    at = put(piece, at + steps, 1, 1)
    if value - least < least:
        return put(piece, at, value - least, steps * ZETA + ZETA - 1)
    return put(piece, at, value, steps * ZETA + ZETA)


@compiled()
def put(piece: Array, at: int, value: int, width: int) -> int:
    """Sets the bits of the value from bit `at` on, where all are 0; returns the bit behind them."""
    while width > 0:
        taken = min(8 - (at & 7), width)
        width -= taken
        piece[at >> 3] |= (value >> width & ((1 << taken) - 1)) << (8 - (at & 7) - taken)
        at += taken
    return at


@compiled("i8[] i8 -> u1[]")
def encode_gaps(gaps: Array, begin: int, piece: Array) -> int:
    """Sets the bits of the gamma codes, from bit `begin` on; returns the bit behind the last one."""
    at = begin
    for gap in range(len(gaps)):
        at = put_gamma(piece, at, gaps[gap])
    return at
