"""Clusters of pages whose texts are nearly the same, by fingerprint: what bin/show --near-duplicates prints."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contract import names
from contract.errors import BadConfiguration, BadInput, Usage
from contract.units import count
from examine.fingerprint_clusters import NONE, find_clusters
from storage.publish import is_published
from storage.tables import column, read_some_columns

SETTING = "set extractor.near_duplicates = true"
COLUMNS = pa.schema(
    [("url_key", pa.uint64()), ("fingerprint", pa.uint64()), ("url", pa.string()), ("content_digest", pa.binary(16))]
)
Row = dict[str, int | list[str]]


class Pages(NamedTuple):
    """Pages with a fingerprint, each URL once: index of the file and row i64, fingerprint u64."""

    file: np.ndarray
    row: np.ndarray
    fingerprint: np.ndarray
    lacking: list[Path]  # files of an older version, without the columns


def read_clusters(path: Path, limit: int) -> tuple[str, int, Iterator[Row]]:
    """A line about the clusters, their number, and the largest `limit` (0: all): size, distinct contents, and URLs."""
    files = find_files(path)
    pages = read_pages(files)
    clusters = find_clusters(pages.fingerprint)
    about = f"{path}: {count(len(pages.row), 'page')} with a fingerprint, "
    about += f"{count(len(clusters), 'cluster')} of near duplicates"
    if pages.lacking:
        about += f" (skipped, without a column fingerprint or url_key: {len(pages.lacking):,} of "
        about += f"{count(len(files), 'file')})"
    return about, len(clusters), iterate_clusters(files, pages, clusters[:limit] if limit > 0 else clusters)


def find_files(path: Path) -> list[Path]:
    """The tables of metadata in a file, a stage's folder, a cycle or a crawl, in the order of cycles."""
    if path.is_file():
        return [path]
    cycles = [path / names.cycle(number) for number in names.numbered(path / names.CYCLES)]
    folders = [path, path / names.EXTRACTOR]
    folders += [cycle / names.EXTRACTOR for cycle in cycles if is_published(cycle / names.EXTRACTOR)]
    files = [folder / names.METADATA for folder in folders if (folder / names.METADATA).is_file()]
    if not files:
        raise Usage(f"{path}: expected a {names.METADATA}, a cycle or a crawl folder; no {names.METADATA} is there")
    return files


def read_pages(files: list[Path]) -> Pages:
    """Of a URL that was collected in several cycles the last fingerprint counts."""
    parts, lacking = [], []
    for number, file in enumerate(files):
        table = read_some_columns(file, COLUMNS, ["url_key", "fingerprint"])
        if table.num_columns < 2:
            lacking.append(file)
            continue
        fingerprint, url_key = (table.column(name).fill_null(NONE).to_numpy() for name in ("fingerprint", "url_key"))
        row = np.flatnonzero(fingerprint != NONE)
        parts.append((np.full(len(row), number), row, fingerprint[row], url_key[row]))
    if not parts:
        raise BadConfiguration(
            f"{lacking[0]}: no column fingerprint or url_key, it is older: {SETTING} and run the extractor again"
        )
    file, row, fingerprint, url_key = (np.concatenate(arrays) for arrays in zip(*parts))
    if not len(row):
        raise BadConfiguration(f"{files[0].parent}: no page has a fingerprint: {SETTING} and run the extractor again")
    _, from_end = np.unique(url_key[::-1], return_index=True)
    last = np.sort(len(row) - 1 - from_end)
    return Pages(file[last], row[last], fingerprint[last], lacking)


def iterate_clusters(files: list[Path], pages: Pages, clusters: list[np.ndarray]) -> Iterator[Row]:
    """Reads text only of pages that are shown, one file at a time."""
    wanted = np.sort(np.concatenate(clusters)) if clusters else np.zeros(0, np.int64)
    found: dict[int, tuple[str, bytes]] = {}
    for number in np.unique(pages.file[wanted]).tolist():
        of_file = wanted[pages.file[wanted] == number]
        table = read_some_columns(files[number], COLUMNS, ["url", "content_digest"])
        if table.num_columns < 2:
            raise BadInput(f"{files[number]}: expected the columns url and content_digest, found {table.column_names}")
        table = table.take(pages.row[of_file])
        found.update(zip(of_file.tolist(), zip(column(table, "url"), column(table, "content_digest"))))
    for cluster in clusters:
        urls, digests = zip(*(found[page] for page in cluster.tolist()))
        yield {"size": len(cluster), "contents": len(set(digests)), "urls": sorted(url or "" for url in urls)}
