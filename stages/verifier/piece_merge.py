"""The merge of one piece as a list of steps: what a step returns are the arguments of the next one.

Nothing outlives its use: a step hands on only what later steps need, so that the memory of the rest is free again.
What belongs to the whole block goes along in `Block`, from piece to piece.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from contract.config import Config
from contract.generation import Generation, GenerationWriter
from contract.policies import features_of
from contract.policies.policy import Urls
from contract.policies.rules import BUDGET
from contract.surt_match import find_rules
from contract.tables import PRESCHEDULED, WAITING
from stages.verifier.arrived_links import Arrived, Gathered, first_of_each, gather
from stages.verifier.decisions import Decisions
from stages.verifier.figures import RowFigures, VisitFigures
from stages.verifier.harvest import Answers, Happened
from stages.verifier.merge import (
    Match,
    apply_happened,
    apply_servers,
    close_rows,
    count_sets,
    find_known,
    index_servers,
    merge_rows,
    merge_side,
    reconsider,
)
from stages.verifier.pieces import Range
from stages.verifier.preparation import Preparation
from stages.verifier.prescheduling import Refill
from stages.verifier.refusals import Refusals
from stages.verifier.server_table import ServerTable
from stages.verifier.texts import Texts
from stages.verifier.visits import VISIT_COUNTS
from storage.pairs import find_pair

Rows = dict[str, np.ndarray]  # columns of one length


@dataclass
class Block:
    """What a turn holds of its whole block while it merges piece after piece."""

    cycle: int
    config: Config
    files: dict[str, Path]  # of the policy
    memory: dict[str, Any]  # of features, from piece to piece
    parent: Generation
    preparation: Preparation
    has_closed: bool  # whether a domain is closed
    chooses_anew: bool  # no URL counts as prescheduled at the beginning of the turn
    read: Callable[[Range], Arrived]
    row_of: Callable[[int], int]  # how many rows of the parent lie before a pair of keys
    decisions: Decisions
    happened: Happened
    answers: Answers
    duplicate: np.ndarray  # bool, of each answer
    servers: ServerTable
    revived: np.ndarray  # bool, by index of the server
    changed_robots: np.ndarray  # indexes of servers
    refusals: Refusals
    refill: Refill
    figures: RowFigures
    visits: VisitFigures
    texts: Texts
    writer: GenerationWriter
    counts: Counter[str]
    rows_done: int = 0  # of the new generation
    side_done: int = 0  # of the parent's side set


class PieceMerge:
    """Merges the rows of a range of pairs, and writes all of their columns but `state`, which the last step returns."""

    def __init__(self, block: Block, bounds: Range):
        self._block = block
        self._bounds = bounds
        self._answers = block.answers.part(*bounds)
        start = find_pair(block.answers.domain_key, block.answers.key, bounds[0])
        self._duplicate = block.duplicate[start : start + len(self._answers.key)]
        # Each step with the part of the turn that its time is counted in.
        self.steps: tuple[tuple[str, Callable[..., tuple]], ...] = (
            ("read", self._read),
            ("sort", self._sort),
            ("find", self._find),
            ("urls", self._take_urls),
            ("rules", self._judge),
            ("features", self._take_features),
            ("merge", self._merge),
            ("servers", self._index_servers),
            ("states", self._set_states),
            ("preschedule", self._preschedule),
            ("write", self._write),
            ("count", self._count),
            ("texts", self._settle_texts),
        )

    def _read(self) -> tuple[Arrived]:
        return (self._block.read(self._bounds),)

    def _sort(self, arrived: Arrived) -> tuple[Gathered]:
        return (gather(arrived),)

    def _find(self, gathered: Gathered) -> tuple[Gathered, Match]:
        start, stop = map(self._block.row_of, self._bounds)
        return gathered, find_known(self._block.parent, start, stop, gathered.links)

    def _take_urls(self, gathered: Gathered, match: Match) -> tuple[Gathered, Match, pa.LargeBinaryArray]:
        return gathered, match, gathered.lines_of(match.new)

    def _judge(
        self, gathered: Gathered, match: Match, lines: pa.LargeBinaryArray
    ) -> tuple[Match, np.ndarray, pa.LargeBinaryArray, np.ndarray | None]:
        """What the rules about servers grant: links, index of the server of each, lines, and rules of [[budget]]."""
        servers, arrived = self._block.servers, gathered.arrived
        new_servers = gathered.server_index(match.new, servers)
        name_servers(servers, new_servers, lines)
        config = self._block.config
        return self._block.refusals.judge(
            match,
            new_servers,
            gathered.server_keys(match.new),
            lines,
            find_rules(lines, config.budget) if config.budget else None,
            servers,
            self._answers,
            has_unlisted=arrived.linked_rows < arrived.rows,
        )

    def _take_features(
        self, match: Match, new_servers: np.ndarray, lines: pa.LargeBinaryArray, budget: np.ndarray | None
    ) -> tuple[Match, np.ndarray, pa.LargeBinaryArray, Rows]:
        links, servers = match.links, self._block.servers
        urls = Urls(
            lines,
            links.key[match.new],
            links.domain_key[match.new],
            servers["server_key"][new_servers],
            self._block.cycle,
            self._block.config,
            self._block.files,
            self._block.memory,
        )
        features = {} if budget is None else {BUDGET.name: budget}
        for one in features_of(self._block.config):
            if one.name not in features:
                features[one.name] = one.compute(urls)
        return match, new_servers, lines, features

    def _merge(
        self, match: Match, new_servers: np.ndarray, lines: pa.LargeBinaryArray, features: Rows
    ) -> tuple[Match, np.ndarray, Rows, np.ndarray]:
        """The rows of the merged piece, and the old states of the parent's rows; a thread writes lines meanwhile."""
        texts = self._block.texts
        texts.append(match, lines)
        rows, old_state = merge_rows(
            match, new_servers, self._block.servers, texts.segment_of_old, texts.own, features, self._block.preparation
        )
        return match, new_servers, rows, old_state

    def _index_servers(
        self, match: Match, new_servers: np.ndarray, rows: Rows, old_state: np.ndarray
    ) -> tuple[Match, Rows, np.ndarray, np.ndarray]:
        return match, rows, old_state, index_servers(match, new_servers, rows["server"], self._block.servers)

    def _set_states(
        self, match: Match, rows: Rows, old_state: np.ndarray, server_index: np.ndarray
    ) -> tuple[Match, Rows, np.ndarray, np.ndarray, Rows]:
        """Sets states, attempts and what was given away, in `rows` itself; adds the rows of the side set."""
        block = self._block
        if block.chooses_anew:
            rows["state"][rows["state"] == PRESCHEDULED] = WAITING
        decided = block.decisions.urls(*self._bounds)
        block.counts["reconsidered"] += reconsider(match, rows, server_index, *decided, block.revived)
        happened = block.happened.part(*self._bounds)
        apply_happened(match, rows, happened, block.config.verifier.attempts_max)
        apply_servers(rows["state"], server_index, block.servers, block.changed_robots)
        if block.has_closed:
            close_rows(rows["state"], server_index, block.servers["closed"])
        side, block.side_done, counts, claims = merge_side(
            match,
            old_state,
            rows["state"],
            block.side_done,
            self._answers,
            happened,
            self._duplicate,
            block.cycle,
            block.config.revisit,
        )
        block.counts.update({name: counts[name] for name in VISIT_COUNTS})
        block.servers.add_claims(server_index[claims.row], claims.is_true)
        block.visits.take(side, rows, server_index)
        return match, rows, old_state, server_index, side

    def _preschedule(
        self, match: Match, rows: Rows, old_state: np.ndarray, server_index: np.ndarray, side: Rows
    ) -> tuple[Match, Rows, np.ndarray, Rows]:
        self._block.servers.count(server_index, rows["state"])
        self._block.servers.add_mentions(server_index, rows["mentions"])
        self._block.refill.offer(rows, server_index, self._block.rows_done)
        return match, rows, old_state, side

    def _write(self, match: Match, rows: Rows, old_state: np.ndarray, side: Rows) -> tuple[Match, Rows, np.ndarray]:
        self._block.writer.rows.append({name: values for name, values in rows.items() if name != "state"})
        self._block.writer.side.append(side)
        return match, rows, old_state

    def _count(self, match: Match, rows: Rows, old_state: np.ndarray) -> tuple[np.ndarray]:
        block = self._block
        block.rows_done += len(rows["state"])
        block.counts.update(count_sets(match, old_state, self._answers))
        block.figures.take(rows)
        return (rows["state"],)

    def _settle_texts(self, state: np.ndarray) -> tuple[np.ndarray]:
        self._block.texts.settle()
        return (state,)


def name_servers(servers: ServerTable, server_index: np.ndarray, lines: pa.LargeBinaryArray) -> None:
    """Names the servers of these new URLs that have no name yet, by a URL of each."""
    nameless = np.flatnonzero((servers["server"][server_index] == "") & (server_index >= 0))
    found, row = first_of_each(server_index[nameless])
    servers.name(found, lines.take(pa.array(nameless[row])))
