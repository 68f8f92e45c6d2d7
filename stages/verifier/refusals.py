"""New URLs that a rule about their whole server refuses: judged, counted, and kept as rows of UrlsRecusadas."""

import numpy as np
import pyarrow as pa

from contract.accumulators import COUNTED_NAMES
from contract.config import Verifier
from contract.tables import REFUSED_ROWS
from stages.verifier import prefixes as prefix_table
from stages.verifier.arrived_links import Links
from stages.verifier.harvest import Answers
from stages.verifier.merge import Match
from stages.verifier.rules import GRANTED, RULES, Limits, NewRows, judge_new
from stages.verifier.server_table import ServerTable
from storage.pairs import find_pairs


class Refusals:
    def __init__(self, limits: Verifier, prefixes: pa.Table, seed: int):
        self._limits = Limits(
            limits.server_max_urls,
            limits.domain_max_urls,
            limits.prefix_from_urls,
            limits.prefix_max_urls,
            limits.query_max_urls,
        )
        self._prefixes = prefix_table.from_table(prefixes)
        self._seed = seed
        self._rows: list[pa.Table] = [REFUSED_ROWS.empty_table()]

    def move_servers(self, index_of_old: np.ndarray) -> None:
        self._prefixes = prefix_table.move_servers(self._prefixes, index_of_old)

    def judge(
        self,
        match: Match,
        new_servers: np.ndarray,
        lines: pa.LargeBinaryArray,
        servers: ServerTable,
        answers: Answers,
        has_unlisted: bool,
    ) -> tuple[Match, np.ndarray, pa.LargeBinaryArray]:
        """Removes what a rule refuses from the new links, their servers (by index) and their lines.

        A URL that was answered because another list had it (`has_unlisted`) is always granted, even if it is linked.
        """
        links, new = match.links, match.new
        rows = NewRows(new_servers.astype(np.uint32), links.key[new], links.depth[new], lines)
        answered = (
            find_pairs(links.domain_key[new], links.key[new], answers.domain_key, answers.key) >= 0
            if has_unlisted
            else None
        )
        codes, self._prefixes = judge_new(
            rows, servers.known, servers["domain_key"], self._prefixes, self._limits, self._seed, answered
        )
        granted, refused = np.flatnonzero(codes == GRANTED), np.flatnonzero(codes)
        if len(refused):
            self._keep(links, new[refused], codes[refused])
            lines = lines.take(pa.array(granted))
        servers.known += np.bincount(new_servers[granted], minlength=len(servers))
        return match.grant(granted, refused), new_servers[granted], lines

    def _keep(self, links: Links, which: np.ndarray, codes: np.ndarray) -> None:
        columns = {"domain_key": links.domain_key[which], "url_key": links.key[which], "rule": codes}
        columns |= {name: links.sums_of(name, which) for name in COUNTED_NAMES}
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
