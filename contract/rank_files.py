"""Files of ranks: what the policy pagerank reads.

A person gives a text: a line for each URL or server, then a blank, then its rank, a number from 0 on. An empty line and
one that begins with # count for nothing. The crawl keeps it as an array of keys and ranks, sorted by key, under the
checksum of the array: its own copy, which no later change of the text reaches.

    https://www.ufmg.br/ensino 0.00031
    https://www.ufmg.br 0.0042

bin/graph rank names the crawl of its graph in such a line (`crawl_line`).
"""

import io
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from contract import names
from contract.errors import BadInput
from contract.url import Keys, NotCanonical, canonicalise
from storage.arrays import open_array

RANKS = np.dtype([("key", "<u8"), ("rank", "<f4")])
LARGEST = float(np.finfo(np.float32).max)
LINE_SHOWN_MAX = 100
COPY_BEGINS = b"\x93NUMPY"
CRAWL_BEGINS = b"# crawl "
_READ = np.dtype([("key", "<u8"), ("rank", "<f8"), ("line", "<i8")])


def own_ranks(crawl: Path) -> Path:
    """Where bin/graph rank puts the PageRank of a crawl's pages, if no other place is given."""
    return crawl / names.GRAPH / "ranks" / "pages-pagerank.txt"


def crawl_line(crawl_id: str) -> bytes:
    """The line of a file of ranks that says of which crawl they are."""
    return CRAWL_BEGINS + crawl_id.encode() + b"\n"


def crawl_of(line: bytes) -> str | None:
    """The crawl that a line names; none where it is another line."""
    return line.removeprefix(CRAWL_BEGINS).decode("utf-8", "replace").strip() if line.startswith(CRAWL_BEGINS) else None


def convert(path: Path, text: bytes, keys: Keys) -> bytes:
    """The file of the array of a text of ranks; BadInput, with the line, where something else stands there."""
    refuse_copy(path, text)
    content = io.BytesIO()
    np.save(content, make_ranks(path, text, keys))
    return content.getvalue()


def refuse_copy(path: Path, text: bytes) -> None:
    if text.startswith(COPY_BEGINS):
        raise BadInput(f"{path}: expected a text, found the copy of another crawl: name the text itself")


def make_ranks(path: Path, text: bytes, keys: Keys) -> npt.NDArray[Any]:
    """Sorted by key, each once; dtype RANKS."""
    return sort_ranks(
        path, text, ((keys.of(name), rank, number) for name, rank, number in read_lines(path, text)), "URL"
    )


def sort_ranks(path: Path, text: bytes, lines: Iterable[tuple[int, float, int]], what: str) -> npt.NDArray[Any]:
    """Sorted by key, each once, dtype RANKS, from (key, rank, number of the line); BadInput where two contradict."""
    read = np.fromiter(lines, _READ)
    read = read[np.argsort(read["key"], kind="stable")]
    is_first = np.ones(len(read), bool)
    is_first[1:] = read["key"][1:] != read["key"][:-1]
    contradicts = np.flatnonzero(~is_first[1:] & (read["rank"][1:] != read["rank"][:-1])) + 1
    if len(contradicts):
        number = int(read["line"][contradicts].min())
        raise BadInput(
            f"{path}: line {number}: expected each {what} once, "
            f"found {show_line(text, number)} again with another value"
        )
    ranks = np.empty(np.count_nonzero(is_first), RANKS)
    ranks["key"], ranks["rank"] = read["key"][is_first], read["rank"][is_first]
    return ranks


def read_lines(path: Path, text: bytes) -> Iterator[tuple[str, float, int]]:
    """(canonical URL or server, rank, number of the line) of each line that counts."""
    for number, line in enumerate(io.BytesIO(text), 1):
        words = line.split(None, 2)
        if not words or words[0].startswith(b"#"):
            continue
        try:
            written, rank = words
            name = name_of(written.decode("ascii"))
            value = float(rank)
            if not 0 <= value <= LARGEST or b"_" in rank:  # NaN is not within these bounds either
                raise ValueError(rank)
        except (NotCanonical, ValueError):  # also: not two words, not ASCII, not a number
            raise BadInput(
                f"{path}: line {number}: expected a URL or server, a blank and its rank, a number from 0 on, "
                f"as in 'https://www.example.br/ 0.5'; found {show_line(text, number)}"
            ) from None
        yield name, value + 0.0, number  # -0 becomes 0, whose bits are the smallest


def show_line(text: bytes, number: int) -> str:
    line = next(islice(io.BytesIO(text), number - 1, None)).rstrip(b"\r\n")
    return repr(line[:LINE_SHOWN_MAX].decode("utf-8", "replace"))


def name_of(text: str) -> str:
    """The canonical form of a URL, or of a server, which has neither a path nor a query."""
    if any(mark in text.partition("://")[2] for mark in "/?#\\"):
        return canonicalise(text)
    return canonicalise(f"{text}/").removesuffix("/")


def read_ranks(path: Path) -> npt.NDArray[Any]:
    """The crawl's own copy."""
    return open_array(path, RANKS)
