"""show: prints any file of a crawl folder readably.

  bin/show FILE                     tables, pages, columns, text, JSON: whatever it is
  bin/show R/0003/00000042          a generation: its URLs with their states
  bin/show cycles/00000042          a cycle: the manifest of each of its stages
  bin/show log                      every commit, one line each
  bin/show FILE.warc.zst --at 512   one record of a file of pages, whole
  bin/show --near-duplicates PATH   clusters of pages whose text is nearly the same, the largest first

Paths are taken from the working folder, or from --crawl where they do not exist there. --json prints
one JSON object a line; --limit N stops after N rows (default 20; 0: no limit).

Long values are cut unless --json is given.

Near duplicates are pages whose fingerprints differ in at most 3 bits of 64, or that are joined by such pages. PATH is a
MetadadosUrlsColetadas.parquet, a cycle, or a crawl folder (all its cycles; of a URL collected more than once the last
counts). Each cluster comes with its size, the number of distinct contents in it, and its URLs, one a line; --limit
counts clusters. The extractor makes fingerprints where extractor.near_duplicates = true.

Examples:
  bin/show --crawl demo/crawl log --limit 5
  bin/show --near-duplicates demo/crawl --limit 3
"""

import json
import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from contract.command import make_parser, run
from contract.errors import Usage
from contract.warc import PageReader
from examine.near_duplicates import read_clusters
from examine.readers import printable, read_any

NAME = "show"
CELL_MAX = 80


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("path", type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="rows to print (default 20; 0: all)")
    parser.add_argument("--at", type=int, metavar="OFFSET", help="print the record that begins at this byte of a file of pages")
    parser.add_argument("--near-duplicates", action="store_true", help="print clusters of pages that are nearly the same")
    arguments = parser.parse_args()
    path = arguments.path if arguments.path.exists() else arguments.crawl / arguments.path
    if not path.exists():
        raise Usage(f"{arguments.path}: no such file here or in {arguments.crawl}")
    if arguments.at is not None:
        print_record(path, arguments.at)
        return
    if arguments.near_duplicates:
        print_clusters(path, arguments.limit, arguments.json)
        return
    about, rows = read_any(path)
    shown = islice(rows, arguments.limit) if arguments.limit > 0 else rows
    if arguments.json:
        for row in shown:
            print(json.dumps(row, default=readable))
        return
    if about:
        print(about)
    count = print_rows(shown)
    if next(iter(rows), None) is not None:
        print(f"({count} rows shown; --limit 0 shows all)")


def print_record(path: Path, offset: int) -> None:
    record = PageReader(path).record_at(offset)
    for name, value in record.headers.items():
        print(f"{name}: {value}")
    print()
    sys.stdout.flush()
    sys.stdout.buffer.write(record.block + b"\n")


def print_clusters(path: Path, limit: int, as_json: bool) -> None:
    about, total, clusters = read_clusters(path, limit)
    if as_json:
        for cluster in clusters:
            print(json.dumps(cluster))
        return
    print(about)
    number = 0
    for number, cluster in enumerate(clusters, 1):
        print(f"\ncluster {number}: {cluster['size']} pages, {cluster['contents']} distinct contents")
        for url in cluster["urls"]:
            print(f"  {printable(url)}")
    if number < total:
        print(f"\n({number} of {total} clusters shown; --limit 0 shows all)")


def print_rows(rows: Iterable[dict]) -> int:
    count = 0
    for count, row in enumerate(rows, 1):
        print("  ".join(f"{name}={cell(value)}" for name, value in row.items()))
    return count


def cell(value) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=readable)
    text = printable(text)
    return text if len(text) <= CELL_MAX else text[:CELL_MAX - 1] + "\N{HORIZONTAL ELLIPSIS}"


def readable(value) -> str:
    if isinstance(value, bytes):
        return value.decode() if value.isascii() else value.hex()
    return str(value)


if __name__ == "__main__":
    run(main, NAME)
