"""The configuration of a run: that of the crawl, or that of --config, which replaces it; --set on top for this run."""

import sys
from pathlib import Path

from contract import config_file, names
from contract.command import Parser, add_configuration
from contract.config import Config, require_contact, require_files
from contract.crawl_config import encode_value, find_differences, read_crawl_config, write_crawl_config
from contract.crawl_folder import CrawlFolder
from contract.errors import BadConfiguration, Usage
from contract.lines import say
from contract.log import KINDS
from contract.log_summary import read_log
from contract.plan import newest_plan

# Site owners notice these keys, or a change makes the pages of one crawl hard to compare.
GRAVE_SECTIONS = ("scope.", "url.")
GRAVE = ("fetcher.contact", "fetcher.delay_s", "fetcher.delay_scope", "fetcher.delay_response_factor")


def add_replacement(parser: Parser) -> None:
    add_configuration(parser)
    parser.add_argument(
        "--yes", action="store_true", help="let --config change the scope, contact or delay of a crawl that has pages"
    )


def settle(crawl: CrawlFolder, arguments) -> Config:
    """The configuration of a run that holds the crawl's lock. That of --config is stored in the crawl folder."""
    own, config = (read_configuration(crawl, arguments.config, overrides) for overrides in ([], arguments.set))
    require_contact(config.fetcher)
    require_files(config)
    if arguments.config is not None:
        replace_configuration(crawl, own, arguments)
    if not arguments.quiet:
        for difference in find_differences(own, config):
            say(f"this run only: {difference.name} = {encode_value(difference.after)}", sys.stderr)
    return config


def read_configuration(crawl: CrawlFolder, file: Path | None, overrides: list[str]) -> Config:
    return config_file.load(file, overrides) if file else read_crawl_config(crawl.path, overrides)


def replace_configuration(crawl: CrawlFolder, config: Config, arguments) -> None:
    try:
        before, is_whole = read_crawl_config(crawl.path), True
    except BadConfiguration:
        plan = newest_plan(crawl.path)
        before, is_whole = plan.config if plan else config, False
        if not arguments.quiet:
            say(
                f"{crawl.path / names.CONFIGURATION} was missing, damaged or edited; {arguments.config} replaces it",
                sys.stderr,
            )
    differences = find_differences(before, config)
    if not arguments.quiet:
        for difference in differences:
            say(str(difference), sys.stderr)
    grave = [name for name, _, _ in differences if name.startswith(GRAVE_SECTIONS) or name in GRAVE]
    if grave and not arguments.yes and has_pages(crawl):
        confirm(grave, arguments)
    if differences or not is_whole:
        write_crawl_config(crawl.path, config)


def has_pages(crawl: CrawlFolder) -> bool:
    return any(KINDS[kind].fetches for kind in read_log(crawl).kinds)


def confirm(grave: list[str], arguments) -> None:
    """Usage unless a person at a terminal agrees."""
    what = f"{arguments.config} changes {', '.join(grave)} of a crawl that has pages"
    if arguments.quiet or sys.stdin is None or not sys.stdin.isatty():
        raise Usage(f"{what}: add --yes to confirm; nothing was changed")
    say(f"{what}.", sys.stderr)
    print("Replace its configuration? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Usage("the configuration was not replaced; nothing was changed")
