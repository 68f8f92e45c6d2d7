"""Chunks of page files, which workers read one at a time. Their bounds follow from the files, not from the workers."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from contract.warc import PageReader
from storage.errors import Damaged

CHUNK_RECORDS = 128  # 64 exchanges: some 40 ms of work, which is done again where a page kills its worker
CHUNK_BYTES = 4 << 20  # in the file, compressed


class Chunk(NamedTuple):
    path: Path
    name: str  # of the file, as tables have it
    start: int
    end: int
    damage: tuple | None = None  # the arguments of Damaged, where the file is not whole


def cut_file(path: Path, name: str) -> Iterator[Chunk]:
    """The chunks of a file, in order. If the file is not whole, the last chunk is empty and holds the damage."""
    start = end = count = 0
    damage = None
    try:
        reader = PageReader(path)
        start = end = reader.first_offset
        for end in reader.member_ends():
            count += 1
            if count == CHUNK_RECORDS or end - start >= CHUNK_BYTES:
                yield Chunk(path, name, start, end)
                start, count = end, 0
    except Damaged as error:
        damage = error.path, error.what, error.offset
    if count:
        yield Chunk(path, name, start, end)
    if damage:
        yield Chunk(path, name, end, end, damage)
