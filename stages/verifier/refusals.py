"""New URLs that a rule about their whole server refuses: judged, counted, and kept as rows of UrlsRecusadas."""

import numpy as np
import pyarrow as pa

from contract.config import Verifier
from contract.tables import REFUSED_ROWS
from stages.verifier import prefixes as prefix_table
from stages.verifier.harvest import Answers
from stages.verifier.merge import Piece
from stages.verifier.rules import RULES, Limits, NewRows, judge_new
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

    def move_servers(self, new_places: np.ndarray) -> None:
        self._prefixes = prefix_table.move_servers(self._prefixes, new_places)

    def judge(
        self, piece: Piece, lines: pa.LargeBinaryArray, servers: ServerTable, answers: Answers, has_foreign: bool
    ) -> pa.LargeBinaryArray:
        """Takes what a rule refuses from the new links of a piece, whose lines are given, and gives the lines of the others.

        What was answered, because somebody else listed it (`has_foreign`), is granted whatever it is, also where a link leads to it too.
        """
        links, new = piece.links, piece.new
        places = piece.new_servers
        rows = NewRows(places.astype(np.uint32), links.key[new], links.depth[new], lines)
        answered = (
            find_pairs(links.domain_key[new], links.key[new], answers.domain_key, answers.key) >= 0
            if has_foreign
            else None
        )
        codes, self._prefixes = judge_new(
            rows, servers.known, servers["domain_key"], self._prefixes, self._limits, self._seed, answered
        )
        refused = np.flatnonzero(codes)
        piece.refused = which = new[refused]
        if len(refused):
            self._rows.append(
                pa.table(
                    {
                        "domain_key": links.domain_key[which],
                        "url_key": links.key[which],
                        "links_in": links.sums_of("links_in", which),
                        "rule": codes[refused],
                    },
                    schema=REFUSED_ROWS,
                )
            )
        granted = np.flatnonzero(codes == 0)
        servers.known += np.bincount(places[granted], minlength=len(servers))
        piece.new, piece.before, piece.new_servers = new[granted], piece.before[granted], places[granted]
        return lines.take(pa.array(granted)) if len(refused) else lines

    def counts(self) -> dict[str, int]:
        codes = np.bincount(
            np.concatenate([table.column("rule").to_numpy() for table in self._rows]), minlength=len(RULES)
        )
        return {rule: int(count) for rule, count in zip(RULES, codes) if rule}

    def table(self) -> pa.Table:
        return pa.concat_tables(self._rows)

    def prefixes(self) -> pa.Table:
        return prefix_table.to_table(self._prefixes)
