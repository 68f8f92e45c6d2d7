"""The run: serves the sites, lets both ask, compares the server's log, prints differences with their reasons."""

import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from bench.coverage.asking import CRAWLER, WGET, Asked, read_log, run_crawler, run_wget
from bench.coverage.comparison import (
    DOCUMENTS,
    UNEXPLAINED,
    Referer,
    Row,
    count_sorts,
    explain_ours,
    explain_theirs,
    group,
    sort_of,
)
from bench.coverage.evidence import Books
from bench.coverage.sites import QUICK_SOURCES, SOURCES, file_count, make_hosts, read_file
from bench.nginx import Host, Site, check_programs, serving, write_hosts
from contract.command import Parser
from contract.config import Extractor
from contract.config import Scope as ScopeConfig
from contract.scope.rules import Scope
from contract.tables import ANSWERED, REASON_ROBOTS, REFUSED
from contract.url import Keys

SHOWN = 3  # URLs of a group; of what is unexplained, all


def add_options(parser: Parser) -> None:
    parser.add_argument("--quick", action="store_true", help="two small sites, to see that it works")
    parser.add_argument(
        "--scratch",
        type=Path,
        metavar="DIR",
        help="where the crawl and wget write (default: the system's temporary folder)",
    )


def measure(arguments) -> dict:
    check_programs("nginx", "wget")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # server and scratch folder go too
    hosts = make_hosts(QUICK_SOURCES if arguments.quick else SOURCES)
    sites = list(hosts)
    print(
        f"{file_count(list(hosts.values()))} files on {len(sites)} sites: {', '.join(site.name for site in sites)}",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="bench-coverage-", dir=arguments.scratch) as scratch:
        folder = Path(scratch)
        write_hosts(folder / "hosts", sites)
        log = folder / "access.log"
        with serving(list(hosts.values()), folder / "nginx", log) as port:
            urls = [f"http://{site.name}:{port}/" for site in sites]
            wget_s = run_wget(urls, sites, port, folder).wall_s
            crawl_s = run_crawler(urls, sites, folder / "hosts", folder).wall_s
        text = log.read_text(errors="replace")
        books = Books(folder / "crawl")
        ours, theirs = read_log(text, CRAWLER), read_log(text, WGET)
        print(
            f"wget asked for {len(theirs)} URLs in {wget_s:.0f} s; "
            f"the crawler for {len(ours)} in {crawl_s:.0f} s and {books.cycles} cycles"
        )
        return compare(ours, theirs, books, hosts) | {"wget_s": round(wget_s, 1), "crawl_s": round(crawl_s, 1)}


def compare(ours: dict[str, Asked], theirs: dict[str, Asked], books: Books, hosts: dict[Site, Host]) -> dict:
    answered = {url for url, (outcome, _) in books.collected.items() if outcome == ANSWERED}
    refused = [
        url for url, (outcome, reason) in books.collected.items() if (outcome, reason) == (REFUSED, REASON_ROBOTS)
    ]
    print(
        f"the crawl's tables have {len(answered)} URLs as answered, and differ from the server's log in "
        f"{len(answered ^ ours.keys())}; "
        f"{len(refused)} were refused by robots.txt, of which wget asked for {len(theirs.keys() & refused)}"
    )
    rows = count_sorts(ours, theirs)
    print_rows(rows)
    scope = Scope(replace(ScopeConfig(), accept_domains=tuple(site.name for site in hosts)), Keys(0))
    follow, evidence = frozenset(Extractor().follow), books.of(ours.keys() ^ theirs.keys())

    def explain(url: str) -> str:
        page = theirs[url].referer
        referer = Referer(page, page in ours, scope.judge(page) if page else "", read_file(hosts, page))
        return explain_theirs(url, evidence[url], scope.judge(url), follow, referer)

    only_theirs = group(theirs.keys() - ours.keys(), explain)
    only_ours = group(ours.keys() - theirs.keys(), lambda url: explain_ours(evidence[url]))
    differ = [url for url in ours.keys() & theirs.keys() if ours[url][:2] != theirs[url][:2]]
    print_groups("only wget", only_theirs, theirs)
    print_groups("only the crawler", only_ours, ours)
    print_groups("answered differently", {UNEXPLAINED: sorted(differ)} if differ else {}, ours)
    without = [
        url
        for groups in (only_theirs, only_ours)
        for why, urls in groups.items()
        if why.startswith(UNEXPLAINED)
        for url in urls
    ] + differ
    documents = [row for row in rows if row.sort in DOCUMENTS]
    print(
        f"documents asked for by both: {sum(row.both for row in documents)}; "
        f"differences without an explanation: {len(without)}",
        flush=True,
    )
    return {
        "ours": len(ours),
        "wget": len(theirs),
        "both": len(ours.keys() & theirs.keys()),
        "unexplained": len(without),
        "documents_both": sum(row.both for row in documents),
        "documents_only_wget": sum(row.only_wget for row in documents),
        "documents_only_ours": sum(row.only_ours for row in documents),
        "only_wget": {why: len(urls) for why, urls in only_theirs.items()},
        "only_ours": {why: len(urls) for why, urls in only_ours.items()},
    }


def print_rows(rows: list[Row]) -> None:
    print(f"  {'':24} {'both':>8} {'only wget':>10} {'only ours':>10}")
    for row in (*rows, Row("all", *(sum(column) for column in zip(*(row[1:] for row in rows))))):
        print(f"  {row.sort:24} {row.both:>8} {row.only_wget:>10} {row.only_ours:>10}")
    sys.stdout.flush()


def print_groups(title: str, groups: dict[str, list[str]], asked: dict[str, Asked]) -> None:
    print(f"{title}: {sum(map(len, groups.values()))}")
    for why, urls in groups.items():
        print(f"  {len(urls):6}  {why}")
        for url in urls if why.startswith(UNEXPLAINED) else urls[:SHOWN]:
            print(f"            {url}  ({sort_of(asked[url])})")
    sys.stdout.flush()
