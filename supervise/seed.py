"""seed: adds URLs to a crawl; makes the crawl folder where there is none.

  bin/seed [--crawl DIR] URL...            URLs as arguments
  bin/seed [--crawl DIR] --file FILE       one URL per line
  bin/seed [--crawl DIR] < FILE            the same from standard input

A line without a scheme gets http://. Blank lines and lines that start with # are skipped. Each bad line
is reported with its number; all other lines are added. The URLs wait in inbox/ until the next cycle
takes them in; a running crawl need not be stopped. Seeds are fetched even if [scope] would not accept
them as links.

A new crawl folder gets [blocks] first blocks. It stores the configuration, that of --config with --set on
top, as configuration.toml, and later commands use it. If the folder exists, --config and --set must agree
with its configuration; bin/run-cycle --config FILE replaces it. A file that the policy reads is copied
into the new folder.

Example: bin/seed --crawl brazil --config brazil.toml https://www.ufmg.br/ https://www.gov.br/
"""

import os
import secrets
import sys
import time
from pathlib import Path

from contract import config_file, names
from contract.command import add_configuration, given, make_parser, run
from contract.config import Config, require_files
from contract.crawl_config import find_differences, read_crawl_config, write_crawl_config
from contract.crawl_folder import CrawlFolder, create, open_folder
from contract.errors import EX_DATAERR, Usage
from contract.lines import say
from contract.policy_files import Adoption, prepare_adoption
from contract.seeds import Line, parse_lines, read_lines
from contract.units import count
from contract.url import Keys
from storage.publish import make_folder, put

NAME = "seed"
PROBLEMS_SHOWN = 20


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("urls", nargs="*", metavar="URL")
    parser.add_argument("--file", type=Path, metavar="FILE", help="read URLs from this file")
    add_configuration(parser)
    arguments = parser.parse_args()
    is_new = not (arguments.crawl / names.CRAWL_FILE).exists()
    if is_new or arguments.config:
        config = config_file.load(arguments.config, arguments.set)
        require_files(config)
    else:
        config = read_crawl_config(arguments.crawl, arguments.set)
    # The file of a policy is read before the folder is made: a bad one leaves nothing behind.
    hash_seed = secrets.randbits(64) if is_new else open_folder(arguments.crawl).hash_seed
    is_own = not (is_new or arguments.config or arguments.set)
    adoption = Adoption(config) if is_own else prepare_adoption(arguments.crawl, Keys(hash_seed), config)
    if arguments.urls and arguments.file:
        raise Usage("give URLs as arguments or with --file, not both")
    if not arguments.urls and not arguments.file and (sys.stdin is None or sys.stdin.isatty()):
        raise Usage("no URLs: give them as arguments, with --file, or on standard input")
    lines = list(parse_lines(read_input(arguments)))
    urls = list(dict.fromkeys(line.url for line in lines if line.url))
    bad = [line for line in lines if line.problem]
    report(bad)
    if not urls:
        say(f"{NAME}: no usable URL in {count(len(lines), 'line')}, nothing added", sys.stderr)
        return EX_DATAERR
    crawl = create(arguments.crawl, config.blocks.first, hash_seed, config)
    if crawl.hash_seed != hash_seed:  # another bin/seed has just made it
        adoption = prepare_adoption(crawl.path, crawl.keys(), config)
    if not is_own:
        store_copy(crawl, adoption)
        expect_same(adoption.config, crawl.path)
    leave(crawl.path, urls)
    skipped = f" ({count(len(bad), 'bad line')} skipped)" if bad else ""
    say(f"{count(len(urls), 'URL')} left in {crawl.path / names.INBOX}{skipped}")
    contact = "" if config.fetcher.contact else " --set fetcher.contact=https://your.site/crawler"
    print(f"next: bin/run-cycle{given(arguments, with_set=False)}{contact}")
    return 0


def store_copy(crawl: CrawlFolder, adoption: Adoption) -> None:
    """Gives a new crawl its own copy of the file that its policy reads, instead of the operator's.

    If this is killed before, the first run does it.
    """
    own = read_crawl_config(crawl.path)
    if prepare_adoption(crawl.path, crawl.keys(), own).config == adoption.config != own:
        write_crawl_config(crawl.path, adoption.write())


def expect_same(config: Config, crawl: Path) -> None:
    """Usage where the crawl has another configuration: a run may be using it now, so bin/seed does not replace it."""
    differences = find_differences(read_crawl_config(crawl), config)
    if differences:
        raise Usage(
            f"{crawl} has a configuration of its own, and it differs: {'; '.join(map(str, differences))}. "
            "Nothing was added: give neither --config nor --set; bin/run-cycle --config FILE replaces the crawl's "
            "configuration, and --set there holds for one run"
        )


def read_input(arguments):
    if arguments.urls:
        return enumerate((os.fsencode(url) for url in arguments.urls), 1)
    if not arguments.file:
        return read_lines(sys.stdin.buffer)
    try:
        return read_lines(open(arguments.file, "rb"))
    except OSError as error:
        raise Usage(f"{arguments.file}: {error.strerror}") from None


def report(bad: list[Line]) -> None:
    for line in bad[:PROBLEMS_SHOWN]:
        say(f"{NAME}: line {line.number}: {line.problem}", sys.stderr)
    if len(bad) > PROBLEMS_SHOWN:
        say(f"{NAME}: and {count(len(bad) - PROBLEMS_SHOWN, 'more bad line')}", sys.stderr)


def leave(crawl: Path, urls: list[str]) -> None:
    """Writes by rename, so that readers of inbox/ find whole files only."""
    make_folder(crawl / names.INBOX)
    name = f"{time.time_ns()}-{secrets.token_hex(4)}.txt"
    put(crawl / names.INBOX / name, "".join(f"{url}\n" for url in urls).encode())


if __name__ == "__main__":
    run(main, NAME)
