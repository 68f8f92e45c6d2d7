"""Makes a list: chooses its URLs, and fills the columns of Lista_de_URLs and Servidores."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract import names
from contract.generation import Generation, read_urls
from contract.plan import Plan
from contract.policies import policy_of
from contract.policies.policy import Candidates
from contract.revisits import conditional_from_ms
from contract.robots_groups import read_sitemaps
from contract.tables import CYCLE_SERVERS, TAKEN_ALONG, URL_LIST
from stages.scheduler.candidates import Pool, find_candidates, number_columns, pick
from stages.scheduler.selection import choose, server_caps
from stages.scheduler.validators import Validators, no_validators, read_validators
from storage.arrays import Array
from storage.tables import column
from storage.text_segments import NO_TEXT, read_blobs


def make_list(crawl: Path, plan: Plan, generation: Generation) -> tuple[pa.Table, pa.Table]:
    pool, vrank = choose_urls(plan, generation)
    rows = pool.row.astype(np.int64)
    visits = describe_visits(crawl, generation, pool, conditional_from_ms(plan.config.revisit, plan.now_ms))
    listed = pa.table(
        {
            "order": np.arange(len(pool), dtype=np.uint32),
            "url": pa.array(read_urls(crawl, generation, rows), pa.string()),
            "domain_key": column(generation.servers, "domain_key")[pool.server],
            "url_key": pool.key,
            "server_key": column(generation.servers, "server_key")[pool.server],
            "depth": pick(generation.rows, "depth", rows),
            **visits,
            "score": pool.score,
            "vrank": vrank,
            **take_along(plan, generation, pool, visits["counted"]),
        },
        schema=URL_LIST,
    )
    return listed, known_servers(crawl, generation.servers.take(pa.array(np.unique(pool.server))))


def choose_urls(plan: Plan, generation: Generation) -> tuple[Pool, npt.NDArray[np.float32]]:
    """The URLs of the list, in its order, and the VRank of each."""
    config = plan.config
    servers = number_columns(generation.servers)
    caps = server_caps(servers, plan.now_ms, config)
    pool, share = find_candidates(generation, caps > 0, plan.now_ms, config)
    domain = np.unique(servers["domain_key"], return_inverse=True)[1] if policy_of(config).is_gated else None
    choice = choose(pool, caps, domain, share, config.scheduler.list_max_urls, config.revisit, plan.cycle)
    return pool.take(choice.which), choice.vrank[choice.which]


def describe_visits(crawl: Path, generation: Generation, pool: Pool, conditional_from_ms: int) -> Mapping[str, Array]:
    """What the list says of pages that are asked again: their validators, and whether their links were counted.

    Pages whose last full answer is older than `conditional_from_ms` are asked without a condition.
    """
    again = np.flatnonzero(pool.is_revisit)
    side = pool.side[again].astype(np.int64)
    columns = {name: pick(generation.side, name, side) for name in ("cycle", "row", "fetched_at_ms", "parsed")}
    validators = no_validators(len(pool))
    with_condition = columns["fetched_at_ms"] >= conditional_from_ms
    places = [columns[name][with_condition] for name in ("cycle", "row")]
    known = again[with_condition]
    for values, found in zip(validators, read_validators(crawl, *places, pool.key[known])):
        values[known] = found
    fetched_at_ms, counted = np.zeros(len(pool), np.int64), np.zeros(len(pool), bool)
    fetched_at_ms[again], counted[again] = columns["fetched_at_ms"], columns["parsed"] > 0
    return {
        "revisit": pool.is_revisit,
        **dict(zip(Validators._fields, validators)),
        "fetched_at_ms": fetched_at_ms,
        "counted": counted,
    }


def take_along(plan: Plan, generation: Generation, pool: Pool, counted: Array) -> dict[str, Array]:
    """What each page of the list takes along for its targets, by the policy; nothing, if its links were counted."""
    policy, rows = policy_of(plan.config), pool.row.astype(np.int64)
    amounts = {name: np.zeros(len(pool), np.uint64) for name in TAKEN_ALONG}
    if policy.hands_on:
        columns = {name: pick(generation.rows, name, rows) for name in policy.reads}
        of = Candidates(columns, pool.server, number_columns(generation.servers), plan.config, plan.now_ms)
        for name, amount in policy.hands_on.items():
            amounts[f"{name}_taken"] = np.where(counted, np.uint64(0), amount(of))
    return amounts


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
