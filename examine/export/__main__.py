"""export: takes the collection away in formats that other tools read.

  bin/export warc --out DIR     WARC files (gzip, one member per record) and their index, index.cdxj
  bin/export cdxj --out DIR     index.cdxj of the crawl's own page files (pywb replays those that are .warc.gz)
  bin/export pages --out DIR    one row per visit: URL, time, status, type, charset, title, languages, main text
  bin/export ufmg --out DIR     lines "||| url | html" in UTF-8, without any other |
  bin/export wacz --out DIR     collection.wacz: WARC files, their index and a list of pages (ReplayWeb.page)
  bin/export urls --out DIR     known URLs, one per line; --format jsonl or parquet with state, depth and links_in

DIR is a new folder. It gets one file per cycle (`urls`: per block) and last manifest.json, with the filters and counts.
An export that was killed continues when the same command is given again: files that are whole stay. It covers the
cycles that were committed when it began. The crawl may go on meanwhile.

Exported are the visits that bin/sql shows in `visits`: answers in MetadadosUrlsColetadas of a committed cycle. Left out
are URLs that were not answered (failures, 429, 5xx, refused types and sizes), attempts that the same cycle repeated,
and cycles that were abandoned or whose entry in the log is void. `warc` and `wacz` have the request of each visit and
the exchanges for robots.txt too; of the filters, --server, --suffix, --from and --until hold for robots.txt. IDs,
digests and blocks of records do not change.

Link sources ([scope] link_sources, seeds_are_link_sources) are left out and counted; --link-sources takes them too. The
present configuration of the crawl says which URLs they are.

--newest takes, of each URL's visits within --from and --until, the newest that brought a page; a 304 or the same body
as before brings none. The other filters then judge that visit. `urls` takes --server, --suffix and --state only.

`pages` reads HTML with bounds of time and memory. A page that cannot be read within them has no text (null), and a word
in text_trouble. A revisit has a row without text. Other types have no text. `ufmg` takes HTML that a visit brought.

If a file is missing or damaged, the command names it and ends with exit code 65. --allow-partial leaves such parts out,
and manifest.json lists them under `missing` with is_partial: true.

Examples:
  bin/export warc --crawl demo/crawl --out warc --status 2xx --newest
  bin/export pages --crawl demo/crawl --out pages --type text/html --status 2xx --format jsonl
  bin/export urls --crawl demo/crawl --out urls --state collected --suffix test
"""

import argparse
from pathlib import Path
from typing import Any

from contract.command import make_parser, run
from contract.config import Scope
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import expect_outside, open_folder
from contract.errors import BadInput, Usage
from contract.lines import say
from contract.log import replay
from contract.scope.link_sources import LinkSources
from contract.tables import STATES
from contract.units import count
from examine.export.filters import Filters, add_filters, filters_of
from examine.export.folder import ExportFolder
from examine.export.kinds import FORMS, URLS, VISIT_KINDS, export_urls, export_visits
from storage.errors import Damaged, UnknownFormat
from storage.publish import read_manifest

NAME = "export"
KINDS = (*VISIT_KINDS, URLS)


def main() -> None:
    arguments = read_arguments()
    filters = filters_of(arguments)
    form = choose_form(arguments, filters)
    crawl = open_folder(arguments.crawl)
    expect_outside(arguments.out)
    scope = Scope() if arguments.link_sources else read_crawl_config(crawl.path).scope
    link_sources = LinkSources(scope)
    log = replay(crawl.path, crawl.blocks_first)
    request: dict[str, Any] = {
        "kind": arguments.kind,
        "form": form,
        "crawl_id": crawl.crawl_id,
        "filters": filters.describe(),
        "states": sorted(set(arguments.state)),
        "log_length": log.length,
    }
    if link_sources:
        request["left_out"] = {name: getattr(scope, name) for name in ("link_sources", "seeds_are_link_sources")}
    folder = ExportFolder(arguments.out, request)
    if folder.is_whole:
        say(f"this export is whole already; it covers the first {count(folder.request['log_length'], 'commit')}")
        manifest = read_manifest(arguments.out)
        if manifest["is_partial"] and not arguments.allow_partial:
            raise BadInput(f"{arguments.out} holds a partial export: name a new folder, or repeat --allow-partial")
    else:
        export = export_urls if arguments.kind == URLS else export_visits
        try:
            manifest = export(crawl, folder, filters, link_sources, arguments.allow_partial)
        except (Damaged, UnknownFormat) as error:
            raise BadInput(f"{error}; restore it, or leave it out with --allow-partial") from None
    report(arguments.out, manifest)


def read_arguments() -> argparse.Namespace:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("kind", choices=KINDS, metavar="|".join(KINDS))
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder, or an unfinished export")
    parser.add_argument("--format", dest="form", help="pages: parquet or jsonl; urls: text, jsonl or parquet")
    parser.add_argument(
        "--state", action="append", default=[], choices=STATES, metavar="STATE", help=f"urls: {', '.join(STATES)}"
    )
    parser.add_argument(
        "--link-sources", action="store_true", help="take link sources too, which are no part of the collection"
    )
    parser.add_argument("--allow-partial", action="store_true", help="leave out and list what is missing or damaged")
    add_filters(parser)
    return parser.parse_args()


def choose_form(arguments: argparse.Namespace, filters: Filters) -> str:
    forms = FORMS[arguments.kind]
    form = arguments.form or forms[0]
    if form not in forms:
        raise Usage(f"--format: expected {' or '.join(forms)} for {arguments.kind}, found {form}")
    if arguments.kind == URLS and set(filters.describe()) - {"servers", "suffixes"}:
        raise Usage("urls takes --server, --suffix and --state only; the other filters are about visits")
    if arguments.kind != URLS and arguments.state:
        raise Usage("--state is for urls only")
    return form


def report(out: Path, manifest: dict[str, Any]) -> None:
    found = ", ".join(describe_count(name, number) for name, number in manifest["counts"].items() if number)
    asked = manifest["export"]
    nothing = "nothing passed the filters" if asked["filters"] or asked["states"] else "there is nothing to export"
    say(f"{out}: {count(len(manifest['files']), 'file')}; {found or nothing}")
    if manifest["is_partial"]:
        say(f"PARTIAL: {count(len(manifest['missing']), 'problem')}; manifest.json lists them. The first:")
        say(f"  {manifest['missing'][0]}")


def describe_count(name: str, number: int) -> str:
    """`1 page`, `2 pages`, `1 collected`: names of counts are plurals, or states."""
    words = name.replace("_", " ")
    return f"{number:,} {words.removesuffix('s') if number == 1 and name not in STATES else words}"


if __name__ == "__main__":
    run(main, NAME)
