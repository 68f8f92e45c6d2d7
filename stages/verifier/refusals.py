"""New URLs that a rule about their whole server refuses: judged, counted, and kept as rows of UrlsRecusadas."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract.accumulators import COUNTED_NAMES
from contract.config import Config
from contract.generation import Generation
from contract.policies import policy_of
from contract.policies.rules import BUDGET
from contract.surt import parse_surt
from contract.tables import REFUSED_ROWS
from contract.url import Keys, is_address
from stages.verifier import prefixes as prefix_table
from stages.verifier.arrived_links import Links
from stages.verifier.harvest import Answers
from stages.verifier.merge import Match
from stages.verifier.preparation import Preparation
from stages.verifier.rules import GRANTED, RULES, Limits, NewRows, judge_new, judge_servers
from stages.verifier.server_table import ServerTable
from storage.pairs import find_pairs
from storage.tables import column

COUNTED_AT_ONCE = 1 << 20  # rows


class Refusals:
    def __init__(self, limits: Limits, prefixes: pa.Table, seed: int, known_of_rule: np.ndarray):
        self._limits = limits
        self._prefixes = prefix_table.from_table(prefixes)
        self._seed = seed
        self._known_of_rule = known_of_rule  # URLs under each number of a rule of [[budget]], those granted included
        self._domain_urls: np.ndarray | None = None  # by index of the server: maximum URLs of its domain, by the policy
        self._no_servers = np.empty(0, np.uint64)  # keys of the servers that are refused, rising
        self._no_server_codes = np.empty(0, np.uint8)
        self._rows: list[pa.Table] = [REFUSED_ROWS.empty_table()]

    def admit_servers(
        self, parent: pa.Table, server_keys: np.ndarray, domain_keys: np.ndarray, depths: np.ndarray, forced: np.ndarray
    ) -> np.ndarray:
        """Which of the servers that links lead to get a row in the table, bool: those that the parent's table has,
        those of the keys `forced`, and of the others as many as the rules let in.
        """
        admitted = np.ones(len(server_keys), bool)
        if not (self._limits.domain_max_servers or self._limits.servers_max):
            return admitted
        is_new = ~np.isin(server_keys, column(parent, "server_key"))
        is_forced = np.isin(server_keys, forced)
        judged = np.flatnonzero(is_new & ~is_forced)
        there = np.concatenate([column(parent, "domain_key"), domain_keys[is_new & is_forced]])
        codes = judge_servers(domain_keys[judged], server_keys[judged], depths[judged], there, self._limits)
        refused = judged[codes != GRANTED]
        order = np.argsort(server_keys[refused])
        self._no_servers, self._no_server_codes = server_keys[refused][order], codes[codes != GRANTED][order]
        admitted[refused] = False
        return admitted

    def move_servers(self, index_of_old: np.ndarray) -> None:
        self._prefixes = prefix_table.move_servers(self._prefixes, index_of_old)

    def limit_domains(self, config: Config, files: Mapping[str, Path], domain_keys: np.ndarray) -> None:
        """Takes the policy's budgets of the domains of all servers, whose keys are given by index of the server."""
        budget = policy_of(config).domain_urls
        self._domain_urls = budget(config, files, domain_keys) if budget else None

    def judge(
        self,
        match: Match,
        new_servers: np.ndarray,
        server_keys: np.ndarray,
        lines: pa.LargeBinaryArray,
        budget: np.ndarray | None,
        servers: ServerTable,
        answers: Answers,
        has_unlisted: bool,
    ) -> tuple[Match, np.ndarray, pa.LargeBinaryArray, np.ndarray | None]:
        """Removes what a rule refuses from the new links, their servers (by index), their lines and rules of budgets.

        A URL that was answered because another list had it (`has_unlisted`) is always granted, even if it is linked.
        The index of a server that was refused is -1.
        """
        links, new = match.links, match.new
        codes = np.zeros(len(new), np.uint8)
        here: np.ndarray | slice = slice(None)
        if len(self._no_servers):
            here = np.flatnonzero(new_servers >= 0)
            outside = np.flatnonzero(new_servers < 0)
            codes[outside] = self._no_server_codes[np.searchsorted(self._no_servers, server_keys[outside])]
        judged = new[here]
        rows = NewRows(
            new_servers[here].astype(np.uint32),
            links.key[judged],
            links.depth[judged],
            lines if isinstance(here, slice) else lines.take(pa.array(here)),
            None if budget is None else budget[here],
        )
        answered = (
            find_pairs(links.domain_key[judged], links.key[judged], answers.domain_key, answers.key) >= 0
            if has_unlisted
            else None
        )
        codes[here], self._prefixes = judge_new(
            rows,
            servers.known,
            servers["domain_key"],
            self._prefixes,
            self._limits,
            self._seed,
            answered,
            self._known_of_rule,
            self._domain_urls,
        )
        granted, refused = np.flatnonzero(codes == GRANTED), np.flatnonzero(codes)
        if len(refused):
            self._keep(links, new[refused], codes[refused])
            lines = lines.take(pa.array(granted))
        servers.known += np.bincount(new_servers[granted], minlength=len(servers))
        if budget is not None:
            budget = budget[granted]
            self._known_of_rule += np.bincount(budget, minlength=len(self._known_of_rule))
        return match.grant(granted, refused), new_servers[granted], lines, budget

    def _keep(self, links: Links, which: np.ndarray, codes: np.ndarray) -> None:
        columns = {"domain_key": links.domain_key[which], "url_key": links.key[which], "rule": codes}
        columns |= {name: links.brought_of(name, which) for name in COUNTED_NAMES}
        self._rows.append(pa.table({name: columns[name] for name in REFUSED_ROWS.names}, schema=REFUSED_ROWS))

    def counts(self) -> dict[str, int]:
        codes = np.bincount(
            np.concatenate([table.column("rule").to_numpy() for table in self._rows]), minlength=len(RULES)
        )
        return {rule: int(count) for rule, count in zip(RULES, codes) if rule}

    def table(self) -> pa.Table:
        return pa.concat_tables(self._rows)

    def prefixes(self) -> pa.Table:
        return prefix_table.to_table(self._prefixes)


def limits_of(config: Config, keys: Keys, share: float) -> Limits:
    """The limits of a block that has this share of the key space."""
    limits = config.verifier

    def part(most: int) -> int:
        return max(1, int(most * share)) if most else 0

    return Limits(
        limits.server_max_urls,
        limits.domain_max_urls,
        limits.prefix_from_urls,
        limits.prefix_max_urls,
        limits.query_max_urls,
        limits.domain_max_servers,
        part(limits.servers_max),
        tuple(rule.urls if is_of_one_domain(rule.surt, keys) else part(rule.urls) for rule in config.budget),
    )


def is_of_one_domain(surt: str, keys: Keys) -> bool:
    """Whether a SURT prefix takes URLs of one registered domain only, and so of one block; not where it is empty."""
    if not surt:
        return False
    host, path = parse_surt(surt)
    if path:
        return True  # of one server
    name = host.rstrip(",")
    name = name if is_address(name) else ".".join(reversed(name.split(",")))
    # Below a public suffix, such as com.br, each name is a domain of its own.
    return is_address(name) or keys.domain(f"x.{name}") == keys.domain(name)


def count_budgets(parent: Generation, preparation: Preparation, rules: int) -> np.ndarray:
    """How many URLs the block knows under each number of a rule of [[budget]]; of 0, under none, it does not matter."""
    counts = np.zeros(rules + 1, np.int64)
    for start in range(0, len(parent) if rules else 0, COUNTED_AT_ONCE):
        numbers = preparation.read(parent, BUDGET.name, start, min(start + COUNTED_AT_ONCE, len(parent)))
        counts += np.bincount(numbers, minlength=len(counts))
    return counts
