"""reconsider: takes back what a crawl decided about URLs and servers, so that it requests them again.

  bin/reconsider [--crawl DIR] URL...           these URLs
  bin/reconsider --server www.example.br        a server, or all servers of a host
  bin/reconsider --domain example.br            all servers of a registered domain
  bin/reconsider --given-up                     URLs and servers that were given up
  bin/reconsider --refused                      URLs that robots.txt or a rule refused
  bin/reconsider --backed-off                   servers that wait because they failed
  bin/reconsider --reason connection_refused    URLs and failing servers whose last failure has this reason

--server and --domain limit the options below them: --domain example.br --refused takes back the refusals
of that domain. Several of the options below add up. Without any of them, all decisions about the server or
domain are taken back. --server, --domain and --reason may be repeated.

A reconsidered URL waits again and has no failed attempts. Its server has no failures and is due at once,
unless it asked for a later time itself; its robots.txt is requested again. A reconsidered server takes
along its URLs that were given up. Collected URLs stay collected. The decision waits in inbox/ like
seeds, so a running crawl need not be stopped; each block absorbs it in its next cycle. Rules still hold:
a URL that robots.txt or [scope] refuses today is refused again.

Example: bin/reconsider --crawl brazil --domain example.br --given-up
"""

import argparse
import os
import secrets
import shlex
import sys
import time
from pathlib import Path

from contract import names
from contract.canonical import Canonical
from contract.command import make_parser, run
from contract.config import Config
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import CrawlFolder, open_folder
from contract.errors import EX_DATAERR, TryLater, Usage
from contract.inbox import DECISION_SUFFIX
from contract.lines import say
from contract.log_summary import read_log
from contract.policies import revisits
from contract.seeds import parse_lines
from contract.tables import RECONSIDERED
from contract.units import count
from contract.url import NotCanonical, canonicalise, host_named, server_of
from storage.errors import Damaged
from storage.publish import ASIDE, make_folder, sync_file, sync_folder
from storage.tables import TableWriter
from supervise.crawl_state import now_ms
from supervise.selection import MISSES_ANY, Selection, Wanted

NAME = "reconsider"
LOOKS = 3  # a run may delete a generation while it is read; the log then names a newer one


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("urls", nargs="*", metavar="URL")
    parser.add_argument(
        "--server", action="append", default=[], metavar="SERVER", help="scheme://host[:port], or a host"
    )
    parser.add_argument("--domain", action="append", default=[], metavar="DOMAIN", help="a registered domain")
    parser.add_argument(
        "--reason", action="append", default=[], metavar="REASON", help="a reason, as bin/why prints it"
    )
    parser.add_argument("--given-up", action="store_true", help="URLs and servers that were given up")
    parser.add_argument("--refused", action="store_true", help="URLs that robots.txt or a rule refused")
    parser.add_argument("--backed-off", action="store_true", help="servers that wait because they failed")
    arguments = parser.parse_args()
    crawl = open_folder(arguments.crawl)
    config = read_crawl_config(crawl.path)
    wanted = read_wanted(arguments, config)
    path, selection = select(crawl, wanted, config.revisit.misses_max if revisits(config) else MISSES_ANY)
    for note in selection.notes:
        say(f"{NAME}: {note}", sys.stderr)
    if path is None:
        print("nothing to reconsider")
        return EX_DATAERR if selection.notes else 0
    say(
        f"{count(selection.urls, 'URL')} and {count(selection.servers, 'server')} left in {path}; "
        f"each block absorbs them in its next cycle\n"
        f"next: bin/run-cycle --crawl {shlex.quote(str(crawl.path))}"
    )
    return 0


def read_wanted(arguments: argparse.Namespace, config: Config) -> Wanted:
    canonical = Canonical(config.url)
    lines = list(parse_lines((number, os.fsencode(text)) for number, text in enumerate(arguments.urls, 2)))
    if bad := [line.problem for line in lines if line.problem]:
        raise Usage(f"expected URLs: {bad[0]}")
    wanted = Wanted(
        tuple(dict.fromkeys(canonical.fold(line.url) for line in lines)),
        frozenset(map(read_server, arguments.server)),
        frozenset(map(read_host, arguments.domain)),
        frozenset(arguments.reason),
        arguments.given_up,
        arguments.refused,
        arguments.backed_off,
    )
    if wanted == Wanted():
        raise Usage(f"say what to reconsider: URLs, or an option such as --given-up (see bin/{NAME} --help)")
    return wanted


def read_server(text: str) -> str:
    try:
        return server_of(canonicalise(text)) if "://" in text else host_named(text)
    except NotCanonical:
        raise Usage(f"--server {text}: expected scheme://host[:port], or a host") from None


def read_host(text: str) -> str:
    try:
        return host_named(text)
    except NotCanonical:
        raise Usage(f"--domain {text}: expected the name of a domain") from None


def select(crawl: CrawlFolder, wanted: Wanted, misses_max: int) -> tuple[Path | None, Selection]:
    """Writes the decision to inbox/; returns its path, none where it is empty, and what was selected."""
    for _ in range(LOOKS):
        log = read_log(crawl)
        selection = Selection(crawl, log, wanted, now_ms(), misses_max)
        try:
            return leave(crawl.path, selection), selection
        except (Damaged, FileNotFoundError) as error:
            if read_log(crawl).length == log.length:
                raise
            failure = error
    raise TryLater(f"{failure}: a run changed the crawl while it was read; try again")


def leave(crawl: Path, selection: Selection) -> Path | None:
    """Writes by rename, so that readers of inbox/ find whole files only."""
    folder = crawl / names.INBOX
    make_folder(folder)
    name = f"{time.time_ns()}-{secrets.token_hex(4)}{DECISION_SUFFIX}"
    aside = folder / f"{ASIDE}{name}"
    try:
        writer = TableWriter(aside, RECONSIDERED)
        for table in selection.tables():
            writer.append(table)
        writer.close()
        if not selection.urls + selection.servers:
            return None
        sync_file(aside)
        aside.rename(folder / name)
        sync_folder(folder)
        return folder / name
    finally:
        aside.unlink(missing_ok=True)


if __name__ == "__main__":
    run(main, NAME)
