"""fetcher: fetches a list of URLs into WARC files, politely, by robots.txt; it may be killed at any instant.

  bin/fetcher --crawl DIR --cycle ID              one cycle of a crawl folder
  bin/fetcher --crawl DIR --cycle ID --out DIR2   the same into another folder; the crawl does not change
  bin/fetcher LIST --out DIR                      a standalone list: text, one URL per line, or .parquet
  bin/fetcher --trace URL                         one URL; prints every step and decision, stores nothing

A cycle is fixed by its plan; the scheduler must have run. The output is cycles/ID/fetcher/ with
Repositorio_de_Paginas/00000.warc.zst ... and manifest.json, which appears last. Until then, run the same command again:
it resumes. For a standalone list, each URL gets a line on standard output: its status, or the reason why there is none,
bytes, milliseconds, URL. The reason is `not_reached` where time ran out, or `not_reached:` and the failure of its
robots.txt. Such a list has no time limit unless fetcher.cycle_max_s is set, by --set or in a --config FILE.
A list and --trace use the configuration of --config, else that of the crawl which --crawl names, else pipeline.toml.

The fetcher asks every server for robots.txt first. It sends one request at a time to a host and to an address, and
pauses at least fetcher.delay_s after each. It refuses loopback and private addresses unless
fetcher.allow_private_addresses is set. SIGTERM or Ctrl-C stops it in order within seconds, a second one at once.
SSL_CERT_FILE replaces the system's certificates.

--trace prints, in this order: the URL and its scope, its addresses and whether they may be asked, robots.txt and the
rule that decides, the pause (which it keeps), request and answer with their heads, the outcome. Control characters that
a server sent are printed as escapes. A redirect of the page is not followed. Exit codes of --trace: 0 answered or
refused; 64 not a URL that can be fetched; 75 failed or not reached, for a reason that may pass; 65 the same for another
reason (no such name, TLS, bad HTTP, too slow). Ctrl-C ends it at once.

Exit codes: 0 done (a cycle: also when it was done before); 64 usage; 65 damaged input; 75 interrupted, locked or disk
full: run it again; 78 bad configuration.

Example:
  echo https://example.org/ > urls.txt
  bin/fetcher urls.txt --out pages --set fetcher.contact=https://example.org/bot
  bin/show pages/Repositorio_de_Paginas/00000.warc.zst
  bin/fetcher --trace https://example.org/ --set fetcher.contact=https://example.org/bot
"""

from pathlib import Path

from contract import crawl_folder, names
from contract.command import add_configuration, load_configuration, make_parser, run, setting_aside
from contract.config import Fetcher, require_contact
from contract.errors import Usage
from contract.log import CRAWL, KINDS
from contract.plan import read_plan
from contract.stage import describe_inputs, expect_ours, fetchers_at_once, live_with_supervisor, open_inputs
from stages.fetcher import dictionary
from stages.fetcher.fetch_task import FetchTask
from stages.fetcher.pre_refusals import refuse_before
from stages.fetcher.processes import fetch, settings_among
from stages.fetcher.slots import FileSlots
from stages.fetcher.standalone import fetch_standalone
from stages.fetcher.stopping import say
from stages.fetcher.trace.run import trace
from stages.fetcher.url_list import read_known_servers, read_revisits, read_scheduled
from storage.publish import is_published, publishing


def main() -> int:
    parser = make_parser(names.FETCHER, __doc__)
    parser.add_argument("list", nargs="?", type=Path, metavar="LIST", help="a standalone list instead of a cycle's")
    parser.add_argument("--cycle", type=int, metavar="ID", help="the cycle whose list is fetched")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write to this folder, not into the crawl folder")
    parser.add_argument("--trace", metavar="URL", help="ask for one URL and print every step; writes no files")
    add_configuration(parser)
    arguments = parser.parse_args()
    if arguments.trace is not None:
        if arguments.list or arguments.cycle is not None or arguments.out:
            raise Usage("--trace URL stands alone: no LIST, no --cycle, no --out")
        return trace(arguments.trace, load_configuration(arguments))
    if (arguments.list is None) == (arguments.cycle is None):
        raise Usage("name either a cycle (--cycle ID) or a list of URLs (LIST --out DIR); see bin/fetcher --help")
    return fetch_cycle(arguments) if arguments.list is None else fetch_standalone(arguments)


def fetch_cycle(arguments) -> int:
    if arguments.config or arguments.set:
        raise Usage("--config and --set: the plan of a cycle fixes its configuration")
    live_with_supervisor()
    crawl = crawl_folder.open_folder(arguments.crawl)
    crawl_folder.hold_lock(crawl)
    with setting_aside(crawl):
        plan = read_plan(crawl.path, arguments.cycle)
        if not KINDS[plan.kind].fetches:
            raise Usage(f"cycle {plan.cycle} is of kind {plan.kind}: only a {CRAWL} cycle fetches")
        cycle_folder = crawl.path / names.cycle(plan.cycle)
        folder = cycle_folder / names.FETCHER
        if arguments.out:
            folder = arguments.out
            expect_ours(folder, [names.PAGES])
        elif is_published(folder):
            say(f"cycle {plan.cycle} is fetched already: {folder / names.MANIFEST}")
            return 0
        require_contact(plan.config.fetcher)
        inputs = cycle_folder / names.SCHEDULER
        open_inputs(inputs)
        urls = read_scheduled(inputs)
        keys = crawl.keys()
        task = FetchTask(
            folder,
            urls,
            read_known_servers(inputs, plan.now_ms),
            settings_among(plan.config.fetcher, fetchers_at_once()),
            refuse_before(urls, plan.config.scope, keys),
            f"{crawl.crawl_id}/{plan.cycle:08d}",
            FileSlots(crawl.path / names.SLOTS),
            keys.domain,
            print_nothing,
            read_revisits(inputs / names.URL_LIST),
            dictionary_for(plan.config.fetcher, crawl.path, may_train=not arguments.out),
        )
        with publishing(folder, resume=True) as manifest:
            result = fetch(task)
            manifest.update(
                {
                    "stage": names.FETCHER,
                    "cycle": plan.cycle,
                    "inputs": describe_inputs(inputs, crawl.path),
                    "config_digest": plan.config.digest(),
                    "counts": result.counts,
                }
            )
    return 0


def dictionary_for(config: Fetcher, crawl: Path, *, may_train: bool) -> bytes | None:
    """The dictionary that the configuration asks for; with --out the crawl must not change, so none is trained."""
    if not config.warc_dictionary or config.warc_compression != "zstd":
        return None
    return dictionary.find_or_train(crawl) if may_train else dictionary.find(crawl)


def print_nothing(url: str, what: str, size_bytes: int, total_ms: int) -> None:
    pass


if __name__ == "__main__":
    run(main, names.FETCHER)
