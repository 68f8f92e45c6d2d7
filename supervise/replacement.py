"""The configuration of a run: that of the crawl, or that of --config, which replaces it; --set on top for this run."""

import sys
from pathlib import Path

from contract import config_file, names
from contract.command import Parser, add_configuration
from contract.config import Config, require_contact, require_files
from contract.crawl_config import encode_value, find_differences, read_crawl_config, write_crawl_config
from contract.crawl_folder import CrawlFolder
from contract.errors import BadConfiguration, BadInput, Usage
from contract.lines import say
from contract.log import KINDS
from contract.log_summary import read_log
from contract.plan import newest_plan
from contract.policy_files import Adoption, advise_policy_file, lost_copy, prepare_adoption, verify_files
from contract.url import Keys
from storage.errors import Damaged

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
    keys = crawl.keys()
    # Of both, before anything is written: a file that no policy can read changes nothing.
    adoption = read_policy_file(crawl, keys, config)
    own_adoption = adoption if own == config else own_file(crawl, keys, own, arguments)
    require_files(config)
    if arguments.config is not None:
        replace_configuration(crawl, own_adoption, arguments)
    elif own_adoption.config != own:  # bin/seed was killed before it had stored the copy
        write_crawl_config(crawl.path, own_adoption.write())
    config = adoption.write()
    verify_policy_file(crawl, config)
    if not arguments.quiet:
        for difference in find_differences(own_adoption.config, config):
            say(f"this run only: {difference.name} = {encode_value(difference.after)}", sys.stderr)
    return config


def read_policy_file(crawl: CrawlFolder, keys: Keys, config: Config) -> Adoption:
    try:
        return prepare_adoption(crawl.path, keys, config)
    except BadConfiguration as error:
        if lost_copy(crawl.path, config):
            raise BadConfiguration(f"{error}; {advise_policy_file(crawl.path)}") from None
        raise


def own_file(crawl: CrawlFolder, keys: Keys, own: Config, arguments) -> Adoption:
    """That of the crawl, or of --config. A copy that is lost stops a run only if the run needs it."""
    if arguments.config is None and lost_copy(crawl.path, own):
        return Adoption(own)
    return read_policy_file(crawl, keys, own)


def verify_policy_file(crawl: CrawlFolder, config: Config) -> None:
    try:
        verify_files(crawl.path, config)
    except Damaged as error:
        raise BadInput(f"{error}; {advise_policy_file(crawl.path)}") from None


def read_configuration(crawl: CrawlFolder, file: Path | None, overrides: list[str]) -> Config:
    return config_file.load(file, overrides) if file else read_crawl_config(crawl.path, overrides)


def replace_configuration(crawl: CrawlFolder, adoption: Adoption, arguments) -> None:
    config = adoption.config
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
    adoption.write()
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
