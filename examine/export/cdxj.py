"""CDXJ: one sorted line per capture, by which pywb and its like find it.

A line is the SURT key of the URL, the second of the visit, and a JSON object. The key must be the one that pywb looks
up, which it makes with the library `surt`; so do we. Digests have no `sha1:`, as pywb writes them.
"""

import heapq
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import surt

INDEX = "index.cdxj"
OPEN_AT_ONCE = 200  # files that are merged at once
REVISIT_TYPE, NO_TYPE, NO_DIGEST = "warc/revisit", "unk", "-"


def encode_line(
    url: str, at_ms: int, *, status: int, type: str, digest: str, is_revisit: bool, file: str, offset: int, length: int
) -> bytes:
    """`type` and `digest` as the crawl has them, empty where it has none."""
    about = {
        "url": url,
        "mime": REVISIT_TYPE if is_revisit else type or NO_TYPE,
        "status": str(status),
        "digest": digest.removeprefix("sha1:") or NO_DIGEST,
        "length": str(length),
        "offset": str(offset),
        "filename": file,
    }
    moment = f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y%m%d%H%M%S}"
    return f"{surt.surt(url)} {moment} {json.dumps(about)}\n".encode("utf-8", "replace")


def merge_files(paths: list[Path], work: Path) -> Iterator[bytes]:
    """The lines of sorted files, in order; `work` is how names of files begin that this may write."""
    round_number = 0
    while len(paths) > OPEN_AT_ONCE:
        merged = []
        for start in range(0, len(paths), OPEN_AT_ONCE):
            path = work.with_name(f"{work.name}{round_number}-{start}")
            with open(path, "wb") as file:
                file.writelines(merge_some(paths[start : start + OPEN_AT_ONCE]))
            merged.append(path)
        paths, round_number = merged, round_number + 1
    yield from merge_some(paths)


def merge_some(paths: Iterable[Path]) -> Iterator[bytes]:
    files = [open(path, "rb") for path in paths]
    try:
        yield from heapq.merge(*files)
    finally:
        for file in files:
            file.close()
