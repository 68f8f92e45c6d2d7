"""scheduler: picks the URLs of the next cycle from a block of known URLs.

  bin/scheduler --crawl DIR --cycle ID              write the list of that cycle
  bin/scheduler --crawl DIR --cycle ID --out DIR2   write the same files to DIR2 instead

Reads the plan of the cycle and the block's live generation. Writes Lista_de_URLs.parquet, the URLs
to fetch in their order, and Servidores.parquet, what is known of their servers (robots.txt, delay,
last request, failures).

The list takes the best of the block by [scheduler] policy and the weights of [[priority]], across all
servers: at most list_max_urls, and server_max_urls per server. It has none of a server that is not
due yet because it failed or asked for time. With [revisit] policy, pages that are due again compete
with first visits: as long as URLs wait that could fill the list, they take at most share_max of it,
and spread_share of their places goes to the pages that were not seen for longest. The list has what
the fetcher needs to ask for a page on a condition (etag, last_modified); where the table of the
page's last answer is missing or damaged, the page is asked without one. The policy new-domains takes
one URL per registered domain. The order of the list is that of requests: the k-th URL of every server
before any (k + 1)-th.

A rerun writes the same bytes as long as the generation that it reads is kept: for the last cycle of
each block it is ([blocks] keep_generations). The crawl's own copy of a file that the policy reads
(files/) is checked first.

Example: bin/scheduler --crawl demo/crawl --cycle 30 --out /tmp/list
(ID is a cycle of kind crawl whose block still has the generation that it began from, such as the newest one of its
block: bin/show --crawl demo/crawl log lists the cycles with their kinds)
"""

from pathlib import Path

import numpy as np

from contract import names
from contract.command import make_parser, run, setting_aside
from contract.crawl_folder import hold_lock, open_folder
from contract.errors import Usage
from contract.generation import open_generation
from contract.log import KINDS
from contract.plan import read_plan
from contract.policy_files import verify_files
from contract.stage import expect_ours, live_with_supervisor
from contract.tables import DISTINCT
from contract.units import count
from stages.scheduler.listing import make_list
from storage.publish import is_published, publishing
from storage.tables import column, write_table

NAME = names.SCHEDULER


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--cycle", type=int, metavar="ID", required=True, help="the cycle whose list is written")
    parser.add_argument("--out", type=Path, metavar="DIR2", help="write to this folder instead of the crawl's")
    arguments = parser.parse_args()
    live_with_supervisor()
    crawl = open_folder(arguments.crawl)
    hold_lock(crawl)
    with setting_aside(crawl, is_asked=not arguments.out):
        plan = read_plan(crawl.path, arguments.cycle)
        if not KINDS[plan.kind].fetches:
            raise Usage(f"cycle {plan.cycle} is of kind {plan.kind}: it has no list; bin/show log lists the kinds")
        folder = arguments.out or crawl.path / names.cycle(plan.cycle) / NAME
        if arguments.out:
            expect_ours(folder, [names.URL_LIST, names.SERVERS])
        elif is_published(folder):
            print(f"{NAME}: {folder} is whole already")
            return
        verify_files(crawl.path, plan.config)
        generation = open_generation(crawl.path, plan.block, plan.generation)
        listed, servers = make_list(crawl.path, plan, generation)
        revisits = int(np.count_nonzero(column(listed, "revisit")))
        with publishing(folder) as manifest:
            write_table(folder / names.URL_LIST, listed, DISTINCT)
            write_table(folder / names.SERVERS, servers)
            manifest |= {
                "stage": NAME,
                "cycle": plan.cycle,
                "block": plan.block,
                "generation": plan.generation,
                "config_digest": plan.config.digest(),
                "inputs": {},
                "counts": {
                    "listed": len(listed),
                    "servers": len(servers),
                    "revisits": revisits,
                    "new": len(listed) - revisits,
                },
            }
    totals = f"{count(len(listed), 'URL')} of {count(len(servers), 'server')}"
    totals += f", {count(revisits, 'revisit')} among them" * bool(revisits)
    print(f"{NAME}: cycle {plan.cycle}, block {plan.block}: {totals}")


if __name__ == "__main__":
    run(main, NAME)
