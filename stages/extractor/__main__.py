"""extractor: reads the pages of a cycle and writes tables of what happened to its URLs and where their links lead.

  bin/extractor --crawl DIR --cycle ID              the pages of a cycle of a crawl folder
  bin/extractor --crawl DIR --cycle ID --out DIR2   the same tables into another folder; the crawl does not change
  bin/extractor PAGES [--out OUT]                   pages without a crawl: a folder that bin/fetcher wrote, a folder of
                                                    WARC files, or one WARC file (.warc.zst, .warc.gz)

The plan of a cycle fixes what it reads; scheduler and fetcher must have run. The output is cycles/ID/extractor/, or
without a crawl PAGES/extractor/:

  UrlsColetadas.parquet            each URL that ended, with its outcome
  MetadadosUrlsColetadas.parquet   each answer: where its record is, type, charset, digests, title, links
  Falhas.parquet                   each URL and robots.txt that failed or was refused, and why
  UrlsExtraidas.parquet            each URL in scope that the pages lead to, once
  Ligacoes.parquet                 each pair of page and target in scope (keep_links = "all": out of scope too, and
  Alvos.parquet                    the URLs of targets that are not in UrlsExtraidas)
  UrlsRejeitadas.parquet           what was rejected, by rule and server, with an example
  Servidores.parquet               what is known of the servers now
  manifest.json                    the books; it is written last, and without it nothing counts

Several processes read the pages ([extractor] workers, default one per core), each page within page_max_s and
page_memory_max_bytes. A page that hangs or crashes its reader becomes a row with `trouble`; other pages lose nothing.
A second run on the same pages writes the same bytes, with any number of workers.

A cycle has the configuration of its plan and the keys of its crawl. Pages without a crawl have the configuration of
--config, of the crawl that --crawl names, or of pipeline.toml, with --set on top, and keys of their own. A damaged
file of pages is set aside in corrupt/, and the other files are used. Without a crawl nothing is moved, and the
records before the damage are used too.

Exit codes: 0 done (a cycle: also when it was done before); 64 usage, or PAGES were done before; 65 damaged input;
75 locked or disk full: run it again; 78 bad configuration.

Example:
  bin/fetcher urls.txt --out pages --set fetcher.contact=https://example.org/bot
  bin/extractor pages --set extractor.obey_nofollow=false
  bin/show pages/extractor/UrlsExtraidas.parquet
"""

import gc
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from contract import names
from contract.command import add_configuration, load_configuration, make_parser, run, setting_aside
from contract.config import Config, Extractor
from contract.crawl_folder import LATEST_MS, CrawlFolder, hold_lock, open_folder, set_aside
from contract.errors import BadInput, Usage
from contract.log import CRAWL, KINDS
from contract.plan import Plan, read_plan
from contract.policies import policy_of, text_judge_of
from contract.policy_files import verify_files
from contract.scope.rules import year_of
from contract.stage import (
    Progress,
    describe_inputs,
    expect_ours,
    live_with_supervisor,
    open_inputs,
    read_input_manifest,
)
from contract.tables import CYCLE_SERVERS, DISTINCT, RANDOM
from contract.units import count
from contract.url import Keys
from contract.warc import PageReader, parse_date
from stages.extractor.chunks import cut_file
from stages.extractor.documents.start_tags import load_scan
from stages.extractor.extraction import Extraction
from stages.extractor.known_contents import open_known_contents
from stages.extractor.listed import read_listed
from stages.extractor.page_files import PageFile, files_below, files_of_cycle
from stages.extractor.reading import Reading
from stages.extractor.workers import Workers
from storage.compiled import is_loaded
from storage.errors import Damaged
from storage.publish import describe, is_published, publishing
from storage.tables import read_table, write_table

NAME = names.EXTRACTOR
TABLES = (
    names.COLLECTED,
    names.METADATA,
    names.FAILURES,
    names.EXTRACTED,
    names.LINKS,
    names.TARGETS,
    names.REJECTED,
    names.SERVERS,
)
DATED_WITHIN_RECORDS = 100  # a file without a date in its first records has none
MakeReading = Callable[[], Reading]
Drop = Callable[[PageFile, Damaged], None]  # what is done with a damaged file


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument(
        "pages", nargs="?", type=Path, metavar="PAGES", help="pages without a crawl, instead of a cycle's"
    )
    parser.add_argument("--cycle", type=int, metavar="ID", help="the cycle whose pages are read")
    parser.add_argument("--out", type=Path, metavar="DIR2", help="write here, not into the crawl folder or PAGES")
    add_configuration(parser)
    arguments = parser.parse_args()
    if (arguments.pages is None) == (arguments.cycle is None):
        raise Usage("name either a cycle (--cycle ID) or a folder of pages; see bin/extractor --help")
    if arguments.pages is not None:
        extract_pages(arguments.pages, arguments.out, load_configuration(arguments))
        return 0
    if arguments.config or arguments.set:
        raise Usage("--config and --set: the plan of a cycle fixes its configuration")
    live_with_supervisor()
    crawl = open_folder(arguments.crawl)
    hold_lock(crawl)
    with setting_aside(crawl, is_asked=not arguments.out):
        extract_cycle(crawl, read_plan(crawl.path, arguments.cycle), arguments.out)
    return 0


def extract_cycle(crawl: CrawlFolder, plan: Plan, out: Path | None) -> None:
    """Reads the pages of a cycle and publishes its tables in the crawl folder, or else in `out`."""
    if not KINDS[plan.kind].fetches:
        raise Usage(f"cycle {plan.cycle} is of kind {plan.kind}: only a {CRAWL} cycle has pages")
    cycle = crawl.path / names.cycle(plan.cycle)
    scheduler, fetcher = cycle / names.SCHEDULER, cycle / names.FETCHER
    if out:
        expect_ours(out, TABLES)
    elif is_published(cycle / NAME):
        say(f"cycle {plan.cycle} is extracted already: {cycle / NAME / names.MANIFEST}")
        return
    open_inputs(scheduler)
    listed, known = read_listed(scheduler), None
    if not plan.config.extractor.follow_duplicates:
        known = open_known_contents(crawl.path, plan.block, plan.generation)
    servers = read_table(scheduler / names.SERVERS, CYCLE_SERVERS)
    named = files_of_cycle(fetcher)

    def drop(file: PageFile, damage: Damaged) -> None:
        done = "left out" if out else f"set aside in {set_aside(crawl.path, file.path, str(damage))}"
        say(f"{damage}; {done}: its URLs count as not reached")

    whole = [file for file in named if is_whole(file, drop)]
    keys = crawl.keys()
    extraction = None
    year = year_of(plan.now_ms)
    files = verify_files(crawl.path, plan.config) if policy_of(plan.config).judge_text else {}
    judge_text = text_judge_of(plan.config, files)
    while extraction is None:
        extraction = extract_whole(
            whole,
            Extraction(plan.config, keys, listed, servers, count_fetched(fetcher), known),
            partial(Reading, plan.config, keys, listed.depths, year, judge_text),
            drop,
            plan.config.extractor,
        )
    publish(
        out or cycle / NAME,
        extraction,
        len(named) - len(whole),
        {
            "cycle": plan.cycle,
            "config_digest": plan.config.digest(),
            "inputs": describe_inputs(scheduler, crawl.path) | describe_inputs(fetcher, crawl.path),
        },
    )


def count_fetched(fetcher: Path) -> int | None:
    """How many URLs of the list the fetcher reached; none where its manifest does not say."""
    counts = read_input_manifest(fetcher).get("counts")
    numbers = [counts.get(name) for name in ("listed", "not_reached")] if isinstance(counts, dict) else [None]
    return numbers[0] - numbers[1] if all(type(number) is int for number in numbers) else None


def is_whole(file: PageFile, drop: Drop) -> bool:
    try:
        file.check()
    except Damaged as damage:
        drop(file, damage)
        return False
    return True


def extract_whole(
    files: list[PageFile], extraction: Extraction, make_reading: MakeReading, drop: Drop, limits: Extractor
) -> Extraction | None:
    """Takes all records of the files. If a record is not whole, drops its file from the list and returns nothing.

    A file counts wholly or not at all, so that a rerun, which does not find the file any more, writes the same bytes.
    """
    for file, damage in take_files(files, extraction, make_reading, limits):
        drop(file, damage)
        files.remove(file)
        return None
    return extraction


def take_files(
    files: list[PageFile], extraction: Extraction, make_reading: MakeReading, limits: Extractor
) -> Iterator[tuple[PageFile, Damaged]]:
    """Takes the records of the files; gives those that are not whole, whose records up to there were taken."""
    progress = Progress(NAME)

    def report() -> None:
        if progress.is_due():
            progress.report(**extraction.figures)

    if is_loaded() or sum(file.size_bytes for file in files) >= limits.scan_from_bytes:
        load_scan()
    workers = Workers(limits, make_reading, say, report)
    by_name = {file.name: file for file in files}
    damaged: set[str] = set()
    gc.disable()  # rows have no cycles, and looking for cycles among ever more rows takes longer than joining them
    try:
        for chunk, result in workers.read(chunk for file in files for chunk in cut_file(file.path, file.name)):
            if chunk.name in damaged:
                extraction.pass_over(result)
                continue
            extraction.take(result)
            if result.damage:
                damaged.add(chunk.name)
                yield by_name[chunk.name], Damaged(*result.damage)
            report()
    finally:
        gc.enable()
        workers.close()


def first_year(files: list[PageFile]) -> int:
    """The year of the first dated record, the present year of pages without a crawl; 0 where there is none."""
    for file in files:
        try:
            for record in islice(PageReader(file.path).heads(), DATED_WITHIN_RECORDS):
                if at_ms := parse_date(record.get("WARC-Date")):
                    return year_of(min(max(at_ms, 0), LATEST_MS - 1))
        except Damaged:
            pass
    return 0


def extract_pages(pages: Path, out: Path | None, config: Config) -> None:
    """Reads pages without a crawl, and prints on standard output what they hold."""
    root, files = files_below(pages)
    if strange := [file.name for file in files if not is_text(file.name)]:
        raise Usage(f"{strange[0]!r}: expected a name in UTF-8, as tables have them; rename the file")
    out = out or root / NAME
    expect_ours(out, TABLES)
    keys = Keys(0)
    extraction = Extraction(config, keys, None, None)
    damaged = set()
    for file, damage in take_files(
        files, extraction, partial(Reading, config, keys, None, first_year(files)), config.extractor
    ):
        damaged.add(file.name)
        say(f"{damage}; the records that are whole up to there are used")
    for file in files:
        try:
            file.check()  # after its records: if they are whole, this only shows that the file was replaced
        except Damaged as damage:
            if file.name not in damaged:
                damaged.add(file.name)
                say(f"{damage}; its records are used")
    if not extraction.has_taken:
        raise BadInput(
            f"{pages}: expected WARC records, each compressed by itself (.warc.gz, .warc.zst), found none; recompress "
            "other files, as with `warcio recompress FILE FILE.warc.gz`"
        )
    books = publish(
        out,
        extraction,
        len(damaged),
        {
            "config_digest": config.digest(),
            "inputs": {file.name: describe(file.path) for file in files if file.path.exists()},
        },
    )
    print(
        f"{out}: {count(books['listed'], 'URL')}: {books['answered']:,} answered, {books['failed']:,} failed, "
        f"{books['refused']:,} refused"
    )
    print(
        f"{count(books['pages_parsed'], 'page')} parsed, {count(books['link_occurrences'], 'link')}, "
        f"{books['followed']:,} followed, to {count(books['extracted_rows'], 'URL')}"
    )


def is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def publish(folder: Path, extraction: Extraction, damaged_files: int, about: dict) -> dict:
    tables = extraction.tables()
    books = {**extraction.books(tables), "damaged_files": damaged_files}
    with publishing(folder) as manifest:
        for name, table in tables.items():
            distinct = tuple(column for column in DISTINCT if column in table.column_names)
            write_table(folder / name, table, distinct, RANDOM if name == names.METADATA else ())
        manifest |= {"stage": NAME, **about, "counts": books}
    return books


def say(message: str) -> None:
    print(f"{NAME}: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    run(main, NAME)
