"""A crawl turned inside the test process: real files and the real verifier and scheduler, harvests made by the test."""

import copy
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.accumulators import ACCUMULATORS, DAY_MS, HANDED_ON, share_out
from contract.config import Config
from contract.crawl_folder import CrawlFolder, create, open_folder
from contract.generation import open_generation
from contract.log import ABSORB, FORGET, GROW, History, commit, replay
from contract.plan import Plan, VerifierPlan, write_plan
from contract.tables import ANSWERED, COLLECTED, CYCLE_SERVERS, EXTRACTED, FAILURES, LINKS, METADATA, URL_LIST
from contract.url import server_of
from examine.readers import iterate_generation
from stages.scheduler.__main__ import make_list
from stages.verifier.__main__ import entry_of, work
from storage.publish import publishing
from storage.tables import read_table, write_table
from supervise.crawl_state import CrawlState
from supervise.deletion import delete_superseded
from supervise.inbox import take_inbox
from supervise.seed import leave

NOW_MS = 1_800_000_000_000


@dataclass
class Page:
    """What happened to a URL of a list."""

    outcome: str = ANSWERED
    reason: str = ""
    links: list[str] = field(default_factory=list)
    lastmods: dict[str, int] = field(default_factory=dict)  # of links, as of a sitemap: seconds since 1970
    relevance: int = 0  # what its text is worth to a topic
    digest: bytes = bytes(16)  # of the content; all zero: not known
    status: int = 200
    message: str = ""
    trouble: str = ""
    at_ms: int = NOW_MS  # when it was fetched
    is_revisit: bool = False  # the record is one of an unchanged page: it has no links
    is_parsed: bool = True  # its links were read
    links_other_domains: int | None = None  # None: as many as `links` has


class SmallCrawl:
    def __init__(self, folder: Path, blocks: int = 2, config: Config = Config()):
        self.crawl: CrawlFolder = create(folder, blocks, hash_seed=17)
        self.config = config
        self.keys = self.crawl.keys()
        self.crawl_state = CrawlState(self.crawl)

    def copy(self, folder: Path) -> "SmallCrawl":
        """The same crawl in another folder."""
        other = copy.copy(self)
        other.crawl = open_folder(Path(shutil.copytree(self.crawl.path, folder)))
        other.crawl_state = CrawlState(other.crawl)
        return other

    def seed(self, urls: list[str]) -> None:
        leave(self.crawl.path, urls)
        take_inbox(self.crawl_state, self.config)

    def plan(self, kind: str, block: int, now_ms: int = NOW_MS) -> Plan:
        log = self.crawl_state.log
        plan = Plan(self.crawl_state.next_cycle(), kind, block, log.blocks, log.generation(block), now_ms, self.config)
        write_plan(self.crawl.path, plan)
        return plan

    def schedule(self, plan: Plan) -> list[str]:
        generation = open_generation(self.crawl.path, plan.block, plan.generation)
        listed, servers = make_list(self.crawl.path, plan, generation)
        folder = self.crawl.path / names.cycle(plan.cycle) / names.SCHEDULER
        with publishing(folder) as manifest:
            write_table(folder / names.URL_LIST, listed)
            write_table(folder / names.SERVERS, servers)
            manifest |= {"counts": {"listed": len(listed)}}
        return listed.column("url").to_pylist()

    def harvest(
        self,
        plan: Plan,
        pages: dict[str, Page],
        foreign: frozenset = frozenset(),
        servers: dict[str, dict] | None = None,
    ) -> None:
        """Writes the extractor's folder for what happened; URLs of the list that are not in `pages` were not reached.

        `servers` tells what was seen of servers, by name; of others, and in other columns, what was known stays.
        """
        cycle = self.crawl.path / names.cycle(plan.cycle)
        listed = read_table(cycle / names.SCHEDULER / names.URL_LIST, URL_LIST).to_pylist()
        depth = {row["url"]: row["depth"] for row in listed}
        shares = {
            row["url"]: {
                one.name: int(share_out(one, np.uint64(row[f"{one.name}_taken"]), len(set(pages[row["url"]].links))))
                for one in HANDED_ON
            }
            for row in listed
            if row["url"] in pages and pages[row["url"]].links and not row["counted"]
        }
        counted = {row["url"] for row in listed if row["counted"]}  # their links gave what they give already
        found: dict[str, list[dict[str, int]]] = {}
        for url, page in pages.items():
            for link in set(page.links):
                counts = url not in counted
                is_mention = counts and self.domain(link) != self.domain(url)
                found.setdefault(link, []).append(
                    {
                        "depth": min(255, depth.get(url, 0) + 1),
                        "links_in": counts,
                        "mentions": is_mention,
                        "relevance": counts and page.relevance,
                        **(shares.get(url) or dict.fromkeys((one.name for one in HANDED_ON), 0)),
                        "linked_day": page.at_ms // DAY_MS,
                        "lastmod_s": page.lastmods.get(link, 0),
                    }
                )
        merge = {"depth": min} | {one.name: max if one.is_largest else sum for one in ACCUMULATORS}
        extracted = [
            {**self.keyed(url), **{name: join(row[name] for row in rows) for name, join in merge.items()}}
            for url, rows in found.items()
        ]
        collected = [
            {
                **self.keyed(url),
                "depth": depth.get(url, 0),
                "outcome": page.outcome,
                "reason": page.reason,
                "status": page.status,
                "attempts": 1,
                "fetched_at_ms": page.at_ms,
                "foreign": url in foreign,
                "cash_taken": shares[url]["cash"] * len(set(page.links)) if url in shares else 0,
            }
            for url, page in pages.items()
        ]
        metadata = [
            {
                **dict.fromkeys(METADATA.names, 0),
                **{name: "" for name in METADATA.names if METADATA.field(name).type == pa.string()},
                **{name: False for name in METADATA.names if METADATA.field(name).type == pa.bool_()},
                **self.keyed(url),
                "content_digest": page.digest,
                "status": page.status,
                "trouble": page.trouble,
                "parsed": page.is_parsed,
                "revisit": page.is_revisit,
                "fetched_at_ms": page.at_ms,
                "links_own_domain": sum(self.domain(link) == self.domain(url) for link in set(page.links)),
                "links_other_domains": (
                    len({self.domain(link) for link in page.links} - {self.domain(url)})
                    if page.links_other_domains is None
                    else page.links_other_domains
                ),
            }
            for url, page in pages.items()
            if page.outcome == ANSWERED
        ]
        failures = [
            {
                **self.keyed(url),
                "server": server_of(url),
                "is_robots": False,
                "outcome": page.outcome,
                "reason": page.reason,
                "message": page.message,
                "address": "192.0.2.1",
                "failed_at_ms": page.at_ms,
                "attempts": 1,
            }
            for url, page in pages.items()
            if page.outcome != ANSWERED
        ]
        known = read_table(cycle / names.SCHEDULER / names.SERVERS, CYCLE_SERVERS).to_pylist()
        seen = [{**row, **(servers or {}).get(row["server"], {})} for row in known]
        folder = cycle / names.EXTRACTOR
        with publishing(folder) as manifest:
            for name, rows, schema in (
                (names.EXTRACTED, extracted, EXTRACTED),
                (names.COLLECTED, collected, COLLECTED),
                (names.METADATA, metadata, METADATA),
                (names.FAILURES, failures, FAILURES),
                (names.LINKS, [], LINKS),
            ):
                rows.sort(key=lambda row: (row["domain_key"], row["url_key"]))
                write_table(folder / name, pa.Table.from_pylist(rows, schema=schema))
            write_table(folder / names.SERVERS, pa.Table.from_pylist(seen, schema=CYCLE_SERVERS))
            manifest |= {"counts": {}}

    def domain(self, url: str) -> int:
        """The key of its registered domain."""
        return self.keys.server(server_of(url)).domain_key

    def keyed(self, url: str) -> dict:
        server = self.keys.server(server_of(url))
        return {"domain_key": server.domain_key, "url_key": self.keys.of(url), "server_key": server.key, "url": url}

    def work(self, plan: Plan) -> tuple[dict, VerifierPlan | None]:
        """The verifier's work without its commit."""
        return work(self.crawl, self.crawl.path, plan, self.crawl_state.log)

    def verify(self, plan: Plan) -> dict:
        report, fixed = self.work(plan)
        commit(self.crawl.path, entry_of(plan, fixed, self.crawl_state.log))
        self.crawl_state.refresh()
        return report

    def absorb(self, block: int) -> dict:
        return self.verify(self.plan(ABSORB, block))

    def forget(self, block: int, now_ms: int) -> dict:
        return self.verify(self.plan(FORGET, block, now_ms))

    def grow(self, block: int) -> dict:
        return self.verify(self.plan(GROW, block))

    def absorb_all(self) -> None:
        for view in self.crawl_state.views():
            if view.pending:
                self.absorb(view.block)

    def delete(self, keep: int = 0) -> None:
        delete_superseded(self.crawl_state, keep)

    def history(self) -> History:
        return replay(self.crawl.path, self.crawl.blocks_first)

    def rows(self) -> dict[str, dict]:
        """Every known URL with its columns, over all blocks."""
        known = {}
        for block in range(self.crawl_state.log.blocks):
            generation = open_generation(self.crawl.path, block, self.crawl_state.log.generation(block))
            for row in iterate_generation(self.crawl.path, generation):
                assert row["url"] not in known, "one URL in two blocks"
                known[row["url"]] = {**row, "block": block}
        return known
