"""WACZ 1.1.1: one ZIP file with WARC files, their index and the list of pages, as ReplayWeb.page opens it.

The index is CDXJ in gzip blocks (index.cdx.gz), with a second index of the blocks (index.idx). What is compressed
already is stored as it is, so that a reader can take a record from the middle.
"""

import gzip
import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from contract.warc import format_date, format_second

FILE = "collection.wacz"
VERSION = "1.1.1"
LINES_PER_BLOCK = 3000  # as other writers of ZipNum do
COPIED_BYTES = 1 << 20
SHOWN_STATUSES = range(200, 300)
ZIP_DATE = (1980, 1, 1, 0, 0, 0)  # of all entries: the same export makes the same bytes


class Package:
    """A ZIP file that notes the length and SHA-256 of every entry."""

    def __init__(self, package: zipfile.ZipFile):
        self.resources: list[dict[str, Any]] = []
        self._zip = package

    @contextmanager
    def writing(self, path: str, is_compressed: bool) -> Iterator["Entry"]:
        """`is_compressed`: it is so already, and is stored as it is."""
        about = zipfile.ZipInfo(path, ZIP_DATE)
        about.compress_type = zipfile.ZIP_STORED if is_compressed else zipfile.ZIP_DEFLATED
        with self._zip.open(about, "w", force_zip64=True) as stream:
            entry = Entry(stream)
            yield entry
        self.resources.append(
            {"name": Path(path).name.lower(), "path": path, "hash": entry.hash, "bytes": entry.size_bytes}
        )

    def finish(self, title: str, created_ms: int) -> None:
        about = {
            "profile": "data-package",
            "wacz_version": VERSION,
            "title": title,
            "created": f"{format_second(created_ms // 1000)}Z",
            "software": "Coletor, bin/export",
            "resources": list(self.resources),
        }
        with self.writing("datapackage.json", False) as entry:
            entry.write(json.dumps(about, indent=2).encode())
        with self.writing("datapackage-digest.json", False) as digest:
            digest.write(json.dumps({"path": "datapackage.json", "hash": entry.hash}).encode())


class Entry:
    def __init__(self, stream: Any):
        self.size_bytes = 0
        self._stream, self._digest = stream, hashlib.sha256()

    @property
    def hash(self) -> str:
        return f"sha256:{self._digest.hexdigest()}"

    def write(self, data: bytes) -> None:
        self._stream.write(data)
        self._digest.update(data)
        self.size_bytes += len(data)


def write_package(
    file: BinaryIO,
    title: str,
    created_ms: int,
    archives: dict[str, Path],
    lines: Iterator[bytes],
    pages: Iterable[Path],
) -> None:
    """`archives`: name -> WARC file; `lines`: their index, sorted; `pages`: files of lines by encode_page()."""
    with zipfile.ZipFile(file, "w") as opened:
        package = Package(opened)
        for name, path in archives.items():
            with package.writing(f"archive/{name}", True) as entry:
                copy_into(entry, path)
        write_index(package, lines)
        with package.writing("pages/pages.jsonl", False) as entry:
            entry.write(json.dumps({"format": "json-pages-1.0", "id": "pages", "title": "Pages"}).encode() + b"\n")
            for path in pages:
                copy_into(entry, path)
        package.finish(title, created_ms)


def write_index(package: Package, lines: Iterator[bytes]) -> None:
    """The lines in gzip blocks, and where each block begins."""
    blocks = []
    with package.writing("indexes/index.cdx.gz", True) as entry:
        while block := list(islice(lines, LINES_PER_BLOCK)):
            packed = gzip.compress(b"".join(block), mtime=0)
            place = {"offset": entry.size_bytes, "length": len(packed), "digest": hash_of(packed)}
            blocks.append(block[0].partition(b" {")[0] + b" " + json.dumps(place).encode() + b"\n")
            entry.write(packed)
    with package.writing("indexes/index.idx", False) as entry:
        about = {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
        entry.write(f"!meta 0 {json.dumps(about)}\n".encode())
        for line in blocks:
            entry.write(line)


def encode_pages(cycle: int, visits: pa.Table) -> bytes:
    """A line per page that a person would open: HTML that a visit brought."""
    return b"".join(
        json.dumps(
            {
                "id": f"{cycle}-{number}",
                "url": row["url"],
                "ts": format_date(row["fetched_at_ms"]),
                "title": row["title"] or row["url"],
            }
        ).encode()
        + b"\n"
        for number, row in enumerate(visits.to_pylist())
        if row["type"].endswith("html") and row["status"] in SHOWN_STATUSES and not row["revisit"]
    )


def copy_into(entry: Entry, path: Path) -> None:
    with open(path, "rb") as file:
        while piece := file.read(COPIED_BYTES):
            entry.write(piece)


def hash_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
