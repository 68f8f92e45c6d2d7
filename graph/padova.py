"""The two forms of the Padova thesis: words of 128 or 32 bits, of which the top bit marks a page whose targets follow.

raw     the MD5 of the URL (RFC 1321), 16 bytes in the order of the digest. The top bit is that of the first byte
mini    the number of the URL in the sorted list, 4 bytes, least significant first. So there are at most 2^31 pages

Beside graph.raw or graph.mini stands urls.txt, one URL per line, sorted. A page without links has no word of its own.
Two URLs whose MD5 agrees but for the top bit would be one page in raw; the writer and the converter refuse them.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from contract.errors import BadInput
from graph.folder import Level
from storage.arrays import Array
from storage.errors import Damaged, naming

RAW, MINI, URLS = FILES = ("graph.raw", "graph.mini", "urls.txt")
WORD = np.dtype(("u1", 16))
MINI_WORD = np.dtype("<u4")
PARENT = np.uint32(1 << 31)
PARENT_BYTE = np.uint8(0x80)
MINI_PAGES_MAX = 1 << 31
EDGES_AT_ONCE = 1 << 20
READ_WORDS = 1 << 20


def write_urls(folder: Path, level: Level) -> None:
    with open(folder / URLS, "wb") as file, naming(folder / URLS):
        for texts in level.texts.pieces():
            file.write("".join(f"{text}\n" for text in texts).encode())


def write_mini(folder: Path, level: Level) -> None:
    check_pages(level.nodes)
    write_urls(folder, level)
    with open(folder / MINI, "wb") as file, naming(folder / MINI):
        for words, is_parent in words_of(level):
            words = words.astype(MINI_WORD)
            words[is_parent] |= PARENT
            file.write(words.tobytes())


def write_raw(folder: Path, level: Level) -> None:
    write_urls(folder, level)
    digests = digest_urls(folder / URLS)
    with open(folder / RAW, "wb") as file, naming(folder / RAW):
        for words, is_parent in words_of(level):
            file.write(as_raw(digests, words, is_parent))


def as_raw(digests: Array, words: Array, is_parent: Array) -> bytes:
    raw = digests[words]
    raw[is_parent, 0] |= PARENT_BYTE
    content: bytes = raw.tobytes()
    return content


def check_pages(pages: int) -> None:
    if pages > MINI_PAGES_MAX:
        raise BadInput(f"mini has numbers of 31 bits: expected at most {MINI_PAGES_MAX:,} pages, found {pages:,}")


def words_of(level: Level) -> Iterator[tuple[Array, Array]]:
    """Numbers of pages, each page with links before its targets, and which of them are such pages."""
    links, last = level.links, -1
    for sources, targets, _ in links.edge_pieces(EDGES_AT_ONCE):
        starts = np.flatnonzero(np.append(True, sources[1:] != sources[:-1]))
        if len(sources) and sources[0] == last:
            starts = starts[1:]
        last = int(sources[-1]) if len(sources) else last
        words = np.insert(targets.astype(np.int64), starts, sources[starts])
        is_parent = np.zeros(len(words), bool)
        is_parent[starts + np.arange(len(starts))] = True
        yield words, is_parent


def digest_urls(path: Path) -> Array:
    """The MD5 of each line, its top bit cleared; u1 of shape (lines, 16), which is 16 bytes of memory per page."""
    with open(path, "rb") as file:
        digests = b"".join(hashlib.md5(line.rstrip(b"\n"), usedforsecurity=False).digest() for line in file)
    words = np.frombuffer(digests, np.uint8).reshape(-1, 16).copy()
    words[:, 0] &= ~PARENT_BYTE
    firsts = np.sort(first_bits(words))
    if (firsts[1:] == firsts[:-1]).any():
        raise BadInput(f"{path}: two URLs have MD5 digests that begin alike: raw cannot tell them apart")
    return words


def first_bits(words: Array) -> Array:
    """The first 64 bits of each word as a number."""
    return np.ascontiguousarray(words[:, :8]).view(">u8").ravel().astype(np.uint64)


def mini_to_raw(source: Path, folder: Path) -> None:
    digests = digest_urls(source / URLS)
    with open(folder / RAW, "wb") as file, naming(folder / RAW):
        for words in read_words(source / MINI, MINI_WORD):
            numbers = words & ~PARENT
            if len(numbers) and numbers.max() >= len(digests):
                raise Damaged(source / MINI, f"expected numbers below {len(digests)}, found {numbers.max()}")
            file.write(as_raw(digests, numbers, words >= PARENT))
    copy_urls(source, folder)


def raw_to_mini(source: Path, folder: Path) -> None:
    digests = digest_urls(source / URLS)
    check_pages(len(digests))
    firsts = first_bits(digests)
    order = np.argsort(firsts)
    firsts = firsts[order]
    with open(folder / MINI, "wb") as file, naming(folder / MINI):
        for words in read_words(source / RAW, WORD):
            is_parent = words[:, 0] >= PARENT_BYTE
            words[:, 0] &= ~PARENT_BYTE
            at = np.minimum(np.searchsorted(firsts, first_bits(words)), max(len(firsts) - 1, 0))
            numbers = order[at] if len(order) else np.empty(0, np.int64)
            if len(words) and not (len(order) and (digests[numbers] == words).all()):
                raise Damaged(source / RAW, f"expected digests of the URLs of {URLS}, found others")
            mini = numbers.astype(MINI_WORD)
            mini[is_parent] |= PARENT
            file.write(mini.tobytes())
    copy_urls(source, folder)


def copy_urls(source: Path, folder: Path) -> None:
    with open(source / URLS, "rb") as read, open(folder / URLS, "wb") as file, naming(folder / URLS):
        while piece := read.read(1 << 20):
            file.write(piece)


def read_words(path: Path, dtype: np.dtype) -> Iterator[Array]:
    size = path.stat().st_size
    if size % dtype.itemsize:
        raise Damaged(path, f"expected words of {dtype.itemsize} bytes, found {size} bytes", size)
    with open(path, "rb") as file:
        while content := file.read(READ_WORDS * dtype.itemsize):
            yield np.frombuffer(bytearray(content), dtype.base).reshape(-1, *dtype.shape)
