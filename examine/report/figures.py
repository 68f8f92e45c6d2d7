"""All figures of a report, each read once: bin/status's, and those of the log, the tables and the live generations."""

from dataclasses import dataclass
from pathlib import Path

from contract.crawl_config import read_crawl_config
from contract.crawl_folder import CrawlFolder
from contract.errors import BadConfiguration, BadInput, ColetorError
from contract.journal_tail import read_tail
from contract.log import find_end, replay
from contract.plan import read_plan
from examine.crawl_figures import describe
from examine.duplicates import Duplicates, find_duplicates, open_sources
from examine.link_sources import read_link_sources
from examine.report.answers import Answers, read_answers
from examine.report.cycles import Cycles, read_cycles
from examine.report.damage import LeftOut
from examine.report.known import Known, read_known
from examine.report.ranks import Ranks, read_ranks
from examine.report.work import Work, describe_work
from storage.errors import Damaged, UnknownFormat

LOOKS = 4  # a crawl at work may delete a generation while we read it
CLUSTERS = 10  # of pages with the same content that are named


@dataclass
class Figures:
    status: dict  # what bin/status --json prints
    cycles: Cycles
    answers: Answers
    known: Known
    work: Work
    duplicates: Duplicates | None
    ranks: Ranks | None
    bandwidth_max_bytes_per_s: int  # 0: no limit
    left_out: list[str]  # what could not be read


def gather(crawl: CrawlFolder, now_ms: int, *, allow_partial: bool = False, ranks_file: Path | None = None) -> Figures:
    """Reads a crawl that may be at work. BadInput where a file is damaged, unless `allow_partial`."""
    ranks, without_ranks = None, []
    if ranks_file:
        try:
            ranks = read_ranks(ranks_file, crawl)
        except BadInput as error:
            if not allow_partial:
                raise
            without_ranks = [str(error)]
    for look in range(1, LOOKS + 1):
        status = describe(crawl, now_ms)
        left_out = LeftOut(allow_partial)
        try:
            figures = read_once(crawl, status, ranks, left_out)
            is_whole = not left_out.notes
        except BadInput:
            if look == LOOKS or not has_grown(crawl, status):
                raise
            is_whole = False
        if is_whole or look < LOOKS and not has_grown(crawl, status):
            break
    figures.left_out += without_ranks
    return figures


def has_grown(crawl: CrawlFolder, status: dict) -> bool:
    """Whether a cycle was committed since: then what it superseded may be deleted, and is not damaged."""
    return find_end(crawl.path, status["commits"]) > status["commits"]


def read_once(crawl: CrawlFolder, status: dict, ranks: Ranks | None, left_out: LeftOut) -> Figures:
    log = replay(crawl.path, crawl.blocks_first, status["commits"])
    link_sources = read_link_sources(crawl.path)
    known = read_known(crawl, log, status["now_ms"], left_out, link_sources)
    duplicates = None
    with left_out.reading(crawl.path):
        duplicates = find_duplicates(open_sources([crawl.path]), CLUSTERS, all_statuses=True)
    return Figures(
        status,
        read_cycles(crawl.path, log, left_out),
        read_answers(crawl.path, log, known.newest, left_out, link_sources),
        known,
        describe_work(read_tail(crawl.path)),
        duplicates,
        ranks,
        read_limit(crawl, status),
        list(dict.fromkeys(left_out.notes)),
    )


def read_limit(crawl: CrawlFolder, status: dict) -> int:
    """The bandwidth limit of the newest cycle, which --set may have given, or of the next; 0 where there is none."""
    cycles = [cycle["cycle"] for cycle in status["open"]]
    cycles += [block["generation"] for block in status["by_block"] if block["generation"] is not None]
    try:
        return read_plan(crawl.path, max(cycles)).config.fetcher.bandwidth_max_bytes_per_s
    except (ValueError, OSError, ColetorError, Damaged, UnknownFormat):  # the first: it has no cycle yet
        pass
    try:
        return read_crawl_config(crawl.path).fetcher.bandwidth_max_bytes_per_s
    except BadConfiguration:
        return 0
