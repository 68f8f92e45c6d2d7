"""show: prints any file of a crawl folder readably.

  bin/show FILE                     tables, pages, columns, text, JSON: whatever it is
  bin/show R/0003/00000042          a generation: its URLs with their states
  bin/show cycles/00000042          a cycle: the manifest of each of its stages
  bin/show log                      every commit, one line each
  bin/show live.json                what the present or last run is doing; journal/*.jsonl, messages.log: what runs did
  bin/show FILE.warc.zst --at 512   one record of a file of pages, whole
  bin/show --near-duplicates PATH   clusters of pages whose text is nearly the same, the largest first
  bin/show --duplicates [DIR ...]   clusters of pages with the same content, in one crawl or across several

Paths are relative to the working folder, or to --crawl where they do not exist there. --limit N stops after N rows
(default 20; 0: no limit). Places in files, keys and digests are the last columns.

  --columns url,status              these columns only, in this order
  --where 'status>=400'             these rows only: = != < <= > >= compare numbers as numbers and all else as text,
                                    ~ means contains; may be repeated, and then all conditions hold
  --csv, --json                     CSV; one JSON object per line

On a terminal a table fits its width: long values are cut, and columns that find no room are named below. Elsewhere
values are whole. bin/sql asks the tables of all cycles at once.

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
  bin/show FILE.parquet --where 'status>=400' --where 'url~/docs/' --columns status,url
  bin/show --duplicates demo/crawl --limit 3
  bin/show --duplicates crawl-2025 crawl-2026
"""

import json
import sys
from collections.abc import Iterator
from itertools import chain, islice
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
from examine.tables.conditions import Condition, expect_columns, parse_condition
from examine.tables.layout import add_forms, as_text, print_csv, print_details, print_table

NAME = "show"
LIMIT = 20
LOOKED_AT = 1000  # rows whose fields become the columns
LAST = ("file", "offset", "length", "key", "digest", "fingerprint")  # columns whose names end so come last
NESTED = 4  # a field with so many fields of its own does not fit into a cell


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("paths", type=Path, nargs="*", metavar="FILE")
    add_forms(parser)
    parser.add_argument("--columns", type=lambda text: text.split(","), metavar="NAME,...", help="print these columns")
    parser.add_argument("--where", action="append", default=[], metavar="CONDITION", help="print these rows")
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
        is_json = arguments.form == "json"
        limit = 0 if is_json and arguments.limit is None else max(0, limit)
        print_duplicates(arguments.paths or [arguments.crawl], limit, is_json, arguments.all_statuses)
        return
    if len(arguments.paths) != 1:
        raise Usage(f"expected one FILE, found {len(arguments.paths)}; bin/sql asks the tables of all cycles at once")
    named = arguments.paths[0]
    path = named if named.exists() else arguments.crawl / named
    if not path.exists():
        raise Usage(f"{named}: no such file here or in {arguments.crawl}")
    if arguments.at is not None:
        print_record(path, arguments.at)
        return
    if arguments.near_duplicates:
        print_clusters(path, limit, arguments.form == "json")
        return
    about, rows = read_any(path)
    print_some(about, rows, limit, arguments.form, arguments.columns, list(map(parse_condition, arguments.where)))


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


def print_some(
    about: str, rows: Iterator[dict], limit: int, form: str, columns: list[str] | None, conditions: list[Condition]
) -> None:
    """The rows for which all conditions hold, at most `limit`."""
    looked_at = list(islice(rows, LOOKED_AT))
    known = list(dict.fromkeys(name for row in looked_at for name in row))
    expect_columns([*(columns or []), *(condition.column for condition in conditions)], known)
    chosen = (row for row in chain(looked_at, rows) if all(condition.holds(row) for condition in conditions))
    if columns:
        chosen = ({name: row.get(name) for name in columns} for row in chosen)
    shown = islice(chosen, limit) if limit > 0 else chosen
    names = columns or sorted(known, key=lambda name: name.endswith(LAST))
    if form == "json":
        for row in shown:
            print(json.dumps(row, default=readable))
    elif form == "csv":
        print_csv(names, (tuple(map(row.get, names)) for row in shown))
    else:
        if about:
            say(about)
        number = print_readably(names, shown)
        if next(chosen, None) is not None:
            say(f"({count(number, 'row')} shown; --limit 0 shows all)")


def print_readably(names: list[str], rows: Iterator[dict]) -> int:
    """Lines as they are, rows that differ or have fields of fields as lists of fields, all others as a table."""
    first = list(islice(rows, LOOKED_AT))
    number = 0
    if names == ["line"]:
        for row in chain(first, rows):
            print(make_plain(as_text(row["line"])))
            number += 1
    elif len(first) == 1 or any(map(is_nested, first)):
        for row in chain(first, rows):
            if number:
                print()
            print_details({name: row[name] for name in names if name in row})
            number += 1
    elif first:
        used = [name for name in names if any(name in row for row in first)]
        number = print_table(used, (tuple(map(row.get, used)) for row in chain(first, rows)))
    return number


def is_nested(row: dict) -> bool:
    return any(isinstance(value, dict) and len(value) >= NESTED for value in row.values())


def readable(value) -> str:
    if isinstance(value, bytes):
        return value.decode() if value.isascii() else value.hex()
    return str(value)


if __name__ == "__main__":
    run(main, NAME)
