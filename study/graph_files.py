"""Reads link graphs: a crawl folder, a table of links (Parquet or text), arrays (npz).

DIR             a crawl folder: the answered URLs and the followed links among them (Ligacoes), seeds, URLs
FILE.parquet    columns `from` and `to`: page numbers from 0 on, or URLs
FILE.npz        `offsets` and `targets`, or a SciPy matrix (csr: `indptr`, `indices`); page i links to
                targets[offsets[i]:offsets[i + 1]]
any other FILE  text: a link per line, two page numbers or two URLs, between them a blank, a tab or a comma; lines at
                the beginning that start with # count for nothing
"""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from contract import names
from contract.errors import BadInput
from contract.tables import ANSWERED, COLLECTED, LINKS
from contract.url import NotCanonical, canonicalise
from storage.publish import is_published
from storage.tables import column, read_table
from study.graphs import PAGES_MAX, Graph, check_links, join_links

ENDS = ("from", "to")
DELIMITERS = "\t, "
# What numpy and zipfile raise for other files, for damaged ones, and for pickled arrays, which are not opened.
UNREADABLE = (
    *(OSError, EOFError, ValueError, TypeError, KeyError, OverflowError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)
ARRAYS = ("offsets", "targets"), ("indptr", "indices")


def open_graph(path: Path) -> Graph:
    if path.is_dir():
        return read_crawl(path)
    if not path.is_file():
        raise BadInput(f"{path}: expected a graph (a crawl folder, .parquet, .npz or a text of links), found no file")
    if path.suffix == ".npz":
        return read_arrays(path)
    return join_ends(path, read_parquet(path) if path.suffix == ".parquet" else read_text(path))


def read_arrays(path: Path) -> Graph:
    offsets, targets = load_arrays(path)
    pages = len(offsets) - 1
    return join_links(np.repeat(np.arange(pages), np.diff(offsets.astype(np.int64))), targets, pages)


def load_arrays(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The offsets and targets of an .npz file, as they are there: links may be repeated, and in any order."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except UNREADABLE as error:
        raise BadInput(f"{path}: expected an .npz file of plain arrays, found {error!r}") from None
    if bytes(found.get("format", np.array(b"csr")).tobytes()).replace(b"\0", b"") != b"csr":
        raise BadInput(f"{path}: expected a matrix with format csr, found {found['format']}; convert it with .tocsr()")
    ends = next((ends for ends in ARRAYS if all(name in found for name in ends)), None)
    if ends is None:
        raise BadInput(
            f"{path}: expected the arrays offsets and targets, or indptr and indices; "
            f"found {', '.join(sorted(found)) or 'none'}"
        )
    offsets, targets = (found[name] for name in ends)
    check_offsets(f"{path}: {ends[0]}", offsets, len(targets) if targets.ndim == 1 else -1)
    check_links(f"{path}: {ends[1]}", targets, len(offsets) - 1)
    return offsets, targets


def check_offsets(where: str, offsets: np.ndarray, links: int) -> None:
    if not np.issubdtype(offsets.dtype, np.integer) or offsets.ndim != 1 or not 1 <= len(offsets) <= PAGES_MAX:
        raise BadInput(
            f"{where}: expected 1 to {PAGES_MAX} whole numbers in one dimension, "
            f"found {offsets.shape} of {offsets.dtype}"
        )
    fall = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(fall):
        raise BadInput(
            f"{where}: expected numbers that never fall, found {offsets[fall[0] + 1]} after {offsets[fall[0]]} "
            f"at {fall[0] + 1}"
        )
    if (int(offsets[0]), int(offsets[-1])) != (0, links):
        raise BadInput(f"{where}: expected numbers from 0 to {links} (links), found {offsets[0]} to {offsets[-1]}")


def read_parquet(path: Path) -> pa.Table:
    try:
        return pa.parquet.read_table(path, columns=list(ENDS)).select(ENDS)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise BadInput(f"{path}: expected a Parquet table with the columns from and to, found {error}") from None


def read_text(path: Path) -> pa.Table:
    skipped, line = 0, b""
    with open(path, "rb") as file:
        for line in file:
            if not line.startswith(b"#"):
                break
            skipped += 1
    found = next((mark for mark in DELIMITERS if mark in line.decode("utf-8", "replace").strip()), None)
    if found is None:
        raise BadInput(
            f"{path}: line {skipped + 1}: expected two page numbers or two URLs with a blank, a tab or a comma between "
            f"them, found {line[:100]!r}"
        )
    read = pa.csv.ReadOptions(skip_rows=skipped, column_names=list(ENDS))
    try:
        return pa.csv.read_csv(path, read, pa.csv.ParseOptions(delimiter=found, quote_char=False))
    except pa.ArrowException as error:
        raise BadInput(f"{path}: expected two page numbers or two URLs per line, found {error}") from None


def join_ends(path: Path, links: pa.Table) -> Graph:
    """The graph of a table of links, whose two columns both hold page numbers or both URLs."""
    columns = [only_values(f"{path}: column {name}", links.column(name)) for name in ENDS]
    if all(pa.types.is_integer(values.type) for values in columns):
        ends = [values.to_numpy() for values in columns]
        for name, numbers in zip(ENDS, ends):
            check_links(f"{path}: column {name}", numbers, PAGES_MAX)
        pages = max(int(numbers.max(initial=-1)) for numbers in ends) + 1
        return join_links(*ends, pages)
    if not all(pa.types.is_string(values.type) or pa.types.is_large_string(values.type) for values in columns):
        raise BadInput(
            f"{path}: expected page numbers (whole, from 0 on) or URLs in both columns, "
            f"found {columns[0].type} and {columns[1].type}"
        )
    texts = pa.concat_arrays([values.cast(pa.large_string()) for values in columns]).dictionary_encode()
    urls = pa.array([canonical(path, text) for text in texts.dictionary.to_pylist()], pa.large_string())
    urls = urls.dictionary_encode()  # two texts may be one URL
    number = urls.indices.to_numpy()[texts.indices.to_numpy()]
    return join_links(number[: len(links)], number[len(links) :], len(urls.dictionary), lines_of(urls.dictionary))


def only_values(where: str, values: pa.ChunkedArray) -> pa.Array:
    if values.null_count:
        raise BadInput(f"{where}: expected a page number or a URL in each row, found {values.null_count} rows of none")
    joined = values.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def canonical(path: Path, text: str) -> str:
    try:
        return canonicalise(text)
    except NotCanonical as error:
        raise BadInput(f"{path}: expected URLs, found {text[:100]!r} ({error.reason})") from None


def lines_of(urls: Any) -> pa.LargeBinaryArray:
    """URLs as lines, each with its newline."""
    texts = pa.array(urls, pa.large_string()).cast(pa.large_binary())
    return pc.binary_join_element_wise(texts, *(pa.scalar(text, pa.large_binary()) for text in (b"\n", b"")))


def read_crawl(crawl: Path) -> Graph:
    """What a crawl has collected: URLs that were answered, and followed links among them, those of all visits."""
    folders = sorted(path for path in (crawl / names.CYCLES).glob(f"*/{names.EXTRACTOR}") if is_published(path))
    if not folders:
        raise BadInput(f"{crawl}: expected a crawl folder with at least one cycle that was extracted, found none")
    read = [
        read_table(path / names.COLLECTED, COLLECTED, ["url_key", "url", "depth", "outcome"]).filter(
            pc.field("outcome") == ANSWERED
        )
        for path in folders
    ]
    answered = pa.concat_tables(read)
    key, first = np.unique(column(answered, "url_key"), return_index=True)
    kept = answered.take(pa.array(first))
    sources, targets = [], []
    for path in folders:
        links = read_table(path / names.LINKS, LINKS, ["from_key", "to_key", "followed"])
        ends = [column(links, f"{name}_key") for name in ENDS]
        at = [np.minimum(np.searchsorted(key, keys), len(key) - 1) for keys in ends]
        stays = column(links, "followed").astype(bool)
        for keys, number in zip(ends, at):
            stays &= key[number] == keys
        sources.append(at[0][stays])
        targets.append(at[1][stays])
    seeds = np.flatnonzero(column(kept, "depth") == 0)
    urls = lines_of(kept.column("url").to_pylist())
    return join_links(np.concatenate(sources), np.concatenate(targets), len(key), urls, seeds)
