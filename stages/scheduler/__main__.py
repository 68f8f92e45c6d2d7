"""scheduler: picks the URLs of the next cycle from a block of known URLs.

  bin/scheduler --crawl DIR --cycle ID              write the list of that cycle
  bin/scheduler --crawl DIR --cycle ID --out DIR2   write the same files to DIR2 instead

Reads the plan of the cycle and the block's live generation. Writes Lista_de_URLs.parquet, the URLs
to fetch in their order, and Servidores.parquet, what is known of their servers (robots.txt, delay,
last request, failures). A list has at most [scheduler] server_max_urls URLs per server, and none of a
server that is not due yet because it failed or asked for time. Servers are spread evenly. A rerun
writes the same bytes as long as the generation that it reads is kept: for the last cycle of each
block it is ([blocks] keep_generations).

Example: bin/scheduler --crawl demo/crawl --cycle 30 --out /tmp/list
(the cycle must be one of the last of its block, whose generations are kept: bin/status lists them)
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.command import make_parser, run, setting_aside
from contract.crawl_folder import hold_lock, open_folder
from contract.errors import Usage
from contract.generation import Generation, open_generation, read_urls
from contract.log import KINDS
from contract.plan import Plan, read_plan
from contract.policies import policy_of
from contract.robots_groups import read_sitemaps
from contract.stage import expect_ours, live_with_supervisor
from contract.tables import CYCLE_SERVERS, DISTINCT, TAKEN, URL_LIST
from contract.units import count
from stages.scheduler.selection import choose, server_caps
from storage.publish import is_published, publishing
from storage.tables import column, write_table
from storage.text_segments import NO_TEXT, read_blobs

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
            raise Usage(f"cycle {plan.cycle} is of kind {plan.kind}: it has no list")
        folder = arguments.out or crawl.path / names.cycle(plan.cycle) / NAME
        if arguments.out:
            expect_ours(folder, [names.URL_LIST, names.SERVERS])
        elif is_published(folder):
            print(f"{NAME}: {folder} is whole already")
            return
        generation = open_generation(crawl.path, plan.block, plan.generation)
        listed, servers = make_list(crawl.path, plan, generation)
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
                "counts": {"listed": len(listed), "servers": len(servers)},
            }
    totals = f"{count(len(listed), 'URL')} of {count(len(servers), 'server')}"
    print(f"{NAME}: cycle {plan.cycle}, block {plan.block}: {totals}")


def make_list(crawl: Path, plan: Plan, generation: Generation) -> tuple[pa.Table, pa.Table]:
    table = {
        name: column(generation.servers, name)
        for name in ("delay_ms", "due_at_ms", "given_up", "server_key", "domain_key")
    }
    caps = server_caps(table, plan.now_ms, plan.config)
    hands_on = policy_of(plan.config).hands_on
    chosen = choose(generation.rows, generation.server_index, caps, plan.config.scheduler.list_max_urls, hands_on)
    server = generation.server_index[chosen]
    listed = pa.table(
        {
            "order": np.arange(len(chosen), dtype=np.uint32),
            "url": pa.array(read_urls(crawl, generation, chosen), pa.string()),
            "domain_key": table["domain_key"][server],
            "url_key": generation.rows["key"][chosen],
            "server_key": table["server_key"][server],
            "depth": generation.rows["depth"][chosen],
            **no_revisits(len(chosen)),
            **take_along(generation, chosen, hands_on),
        },
        schema=URL_LIST,
    )
    return listed, known_servers(crawl, generation.servers.take(pa.array(np.unique(server))))


def take_along(generation: Generation, chosen: np.ndarray, order: str) -> dict[str, np.ndarray]:
    """What each page of the list gives to its targets: all that it has of what the list is ordered by."""
    return {
        name: generation.rows[name.removesuffix("_taken")][chosen]
        if name == f"{order}_taken"
        else np.zeros(len(chosen), np.uint64)
        for name in TAKEN
    }


def no_revisits(rows: int) -> dict[str, np.ndarray]:
    """The columns of a list that asks for first visits only."""
    texts = {name: np.full(rows, "", object) for name in ("etag", "last_modified", "payload_digest")}
    return {
        "revisit": np.zeros(rows, bool),
        **texts,
        "fetched_at_ms": np.zeros(rows, np.int64),
        "counted": np.zeros(rows, bool),
        "score": np.zeros(rows, np.uint32),
        "vrank": np.zeros(rows, np.float32),
    }


def known_servers(crawl: Path, servers: pa.Table) -> pa.Table:
    """Servidores: what the block knows of these servers, with the text of robots.txt and the sitemaps it names."""
    position = column(servers, "robots_text")
    has = np.flatnonzero(position != NO_TEXT)
    texts = read_blobs(crawl / names.TEXT, names.segment, position[has], column(servers, "robots_length")[has])
    robots: list[bytes | None] = [None] * len(servers)
    for row, text in zip(has.tolist(), texts):
        robots[row] = text
    columns = {
        field.name: servers.column(field.name) for field in CYCLE_SERVERS if field.name not in ("robots", "sitemaps")
    }
    sitemaps = [read_sitemaps(text or b"") for text in robots]
    columns |= {
        "robots": pa.array(robots, pa.binary()),
        "sitemaps": pa.array(sitemaps, CYCLE_SERVERS.field("sitemaps").type),
    }
    return pa.table(columns).select(CYCLE_SERVERS.names).cast(CYCLE_SERVERS)


if __name__ == "__main__":
    run(main, NAME)
