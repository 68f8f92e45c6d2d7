"""show: prints any file of a crawl folder readably.

  bin/show FILE                     tables, pages, columns, text, JSON: whatever it is
  bin/show R/0003/00000042          a generation: its URLs with their states
  bin/show cycles/00000042          a cycle: the manifest of each of its stages
  bin/show log                      every commit, one line each
  bin/show live.json                what the present or last run is doing; journal/*.jsonl, messages.log: what runs did
  bin/show FILE.warc.zst --at 512   one record of a file of pages, whole
  bin/show --near-duplicates PATH   clusters of pages whose text is nearly the same, the largest first
  bin/show --duplicates [DIR ...]   clusters of pages with the same content, in one crawl or across several

Paths are relative to the working folder, or to --crawl where they do not exist there. --json prints
one JSON object per line; --limit N stops after N rows (default 20; 0: no limit).

Long values are cut unless --json is given.

Near duplicates are pages whose fingerprints differ in at most 3 bits of 64, or that are joined by such pages. PATH is a
MetadadosUrlsColetadas.parquet, a cycle, or a crawl folder (all its cycles; of a URL collected more than once the last
counts). Each cluster comes with its size, the number of distinct contents in it, and its URLs, one per line; --limit
counts clusters. The extractor makes fingerprints where extractor.near_duplicates = true.

Duplicates are pages whose decoded content has the same digest, in all blocks of the crawl folders DIR (default:
--crawl), so that earlier crawls can be compared too. Only pages of a status of 200 to 299 count, unless --all-statuses
is given: error pages and redirects are alike on many servers. --limit counts clusters; of each, the first pages are
printed with their cycle. --json prints every cluster, and all its pages with the crawl, cycle and row of each in
MetadadosUrlsColetadas. Columns are read in parts that fit into 1 GiB. Beside that, --json needs 8 bytes per page in
clusters, and statuses one bit per page.

Examples:
  bin/show --crawl demo/crawl log --limit 5
  bin/show --duplicates demo/crawl --limit 3
  bin/show --duplicates crawl-2025 crawl-2026
"""

import json
import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from contract.command import make_parser, run
from contract.errors import Usage
from contract.lines import say
from contract.terminal import make_plain
from contract.units import count
from contract.warc import PageReader
from examine.duplicates import MEMBERS_SHOWN, find_duplicates, iterate_clusters, open_sources, summarise
from examine.near_duplicates import read_clusters
from examine.readers import read_any

NAME = "show"
CELL_MAX = 80
LIMIT = 20


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("paths", type=Path, nargs="*", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.add_argument("--limit", type=int, metavar="N", help="rows to print (default 20; 0: all)")
    parser.add_argument(
        "--at", type=int, metavar="OFFSET", help="print the record that begins at this byte of a file of pages"
    )
    parser.add_argument(
        "--near-duplicates", action="store_true", help="print clusters of pages that are nearly the same"
    )
    parser.add_argument("--duplicates", action="store_true", help="print clusters of pages with the same content")
    parser.add_argument("--all-statuses", action="store_true", help="with --duplicates: not only pages of 200 to 299")
    arguments = parser.parse_args()
    limit = LIMIT if arguments.limit is None else arguments.limit
    if arguments.duplicates:
        limit = 0 if arguments.json and arguments.limit is None else max(0, limit)
        print_duplicates(arguments.paths or [arguments.crawl], limit, arguments.json, arguments.all_statuses)
        return
    if len(arguments.paths) != 1:
        raise Usage(f"expected one FILE, found {len(arguments.paths)} (see bin/{NAME} --help)")
    named = arguments.paths[0]
    path = named if named.exists() else arguments.crawl / named
    if not path.exists():
        raise Usage(f"{named}: no such file here or in {arguments.crawl}")
    if arguments.at is not None:
        print_record(path, arguments.at)
        return
    if arguments.near_duplicates:
        print_clusters(path, limit, arguments.json)
        return
    about, rows = read_any(path)
    shown = islice(rows, limit) if limit > 0 else rows
    if arguments.json:
        for row in shown:
            print(json.dumps(row, default=readable))
        return
    if about:
        say(about)
    number = print_rows(shown)
    if next(iter(rows), None) is not None:
        say(f"({count(number, 'row')} shown; --limit 0 shows all)")


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
    say(about)
    number = 0
    for number, cluster in enumerate(clusters, 1):
        say(f"\ncluster {number}: {count(cluster['size'], 'page')}, {count(cluster['contents'], 'distinct content')}")
        for url in cluster["urls"]:
            print(f"  {make_plain(url)}")
    if number < total:
        say(f"\n({number:,} of {count(total, 'cluster')} shown; --limit 0 shows all)")


def print_duplicates(crawls: list[Path], limit: int, as_json: bool, all_statuses: bool) -> None:
    sources = open_sources(crawls)
    found = find_duplicates(sources, limit, all_statuses=all_statuses)
    if as_json:
        for cluster in iterate_clusters(sources, found):
            print(json.dumps(cluster))
        print(f"{NAME}: {summarise(found)}", file=sys.stderr)
        return
    for number, cluster in enumerate(iterate_clusters(sources, found, MEMBERS_SHOWN), 1):
        say(f"cluster {number}: {count(cluster['size'], 'page')} with content {cluster['content_digest']}")
        for page in cluster["pages"]:
            print(
                f"  {make_plain(page['url'])}  ({page['crawl'] + ', ' if len(crawls) > 1 else ''}cycle {page['cycle']})"
            )
        if cluster["size"] > len(cluster["pages"]):
            say(f"  and {cluster['size'] - len(cluster['pages']):,} more (--json prints all)")
    if len(found.sizes) < found.clusters:
        say(f"({len(found.sizes):,} of {count(found.clusters, 'cluster')} shown; --limit 0 shows all)")
    say(summarise(found))


def print_rows(rows: Iterable[dict]) -> int:
    number = 0
    for row in rows:
        number += 1
        say("  ".join(f"{name}={cell(value)}" for name, value in row.items()), indent=4)
    return number


def cell(value) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=readable)
    text = make_plain(text)
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 1] + "\N{HORIZONTAL ELLIPSIS}"


def readable(value) -> str:
    if isinstance(value, bytes):
        return value.decode() if value.isascii() else value.hex()
    return str(value)


if __name__ == "__main__":
    run(main, NAME)
