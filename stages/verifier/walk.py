"""The walk of a turn through its block: everything is sorted by (domain key, URL key), and merged piece by piece.

A piece is a range of pairs of keys whose rows, those of the parent generation and those that arrive, fit into memory
together; mostly one holds the whole block. What needs a whole server in view goes along: the table of servers with
its counts, the rules about servers, and the best of the waiting URLs.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.accumulators import ACCUMULATORS
from contract.blocks import KEY_BITS, interval
from contract.crawl_folder import CrawlFolder
from contract.generation import Generation, GenerationWriter
from contract.plan import Plan, VerifierPlan
from contract.tables import PRESCHEDULED, WAITING
from stages.verifier.arrived_links import Arrived, find_firsts, first_of_each, gather, slice_rows
from stages.verifier.decisions import Decisions
from stages.verifier.figures import describe_generation
from stages.verifier.harvest import Answers, Happened, Harvest
from stages.verifier.merge import (
    apply_happened,
    apply_servers,
    count_sets,
    find_duplicates,
    find_known,
    find_server_places,
    merge_rows,
    merge_side,
    reconsider,
)
from stages.verifier.paths import path_levels
from stages.verifier.pieces import Range, cut
from stages.verifier.prescheduling import POLICIES, Refill
from stages.verifier.refusals import Refusals
from stages.verifier.server_table import ServerTable, judge
from stages.verifier.texts import Texts
from stages.verifier.timing import Timing
from storage.errors import Damaged
from storage.keyed_file import KeyedFile
from storage.pairs import find_pair
from storage.tables import column
from storage.text_segments import NO_TEXT, read_blobs

BASE_BYTES = 300 << 20  # what the libraries, the writing of AUX and the packing of texts take
SERVER_BYTES = 700  # of a row of the table of servers, which is held whole, before and after ...
FAILURE_TIMES = 6  # ... and as often the texts of last failures are in memory: before and after, and as objects
ROW_BYTES = 6  # of every row of the block, from its piece to the end: its state, and its columns as they are packed
PARENT_ROW_BYTES = 50  # of a row of the parent: its columns, those that they become, and where they come from
FOLDED_ROW_BYTES = 300  # of one whose text is written anew: as it was read, joined, and in order
ARRIVED_ROW_BYTES = 250  # of a row that arrives: as it was read, joined, sorted, and as text
ARRIVED_TIMES = 4  # as often its bytes are in memory, which counts where URLs are long
PIECE_BYTES_LEAST = 16 << 20
PIECE_BYTES_MOST = 64 << 30  # rows of a piece are counted with 31 bits


class Walk:
    def __init__(
        self,
        crawl: CrawlFolder,
        plan: Plan,
        fixed: VerifierPlan,
        parent: Generation,
        harvest: Harvest,
        slices: list[KeyedFile],
        decisions: Decisions,
        happened: Happened,
        answers: Answers,
        timing: Timing,
    ):
        self._crawl, self._plan, self._parent, self._harvest, self._happened, self._answers = (
            crawl.path,
            plan,
            parent,
            harvest,
            happened,
            answers,
        )
        self._decisions = decisions
        self._limits = plan.config.verifier
        self._policy = POLICIES[self._limits.prescheduled_by]
        self._sources = [*harvest.sources(), *slices]
        self._range: Range = tuple(key << KEY_BITS for key in interval(fixed.block, fixed.blocks))
        self._timing = timing
        self._rows_done = self._side_done = 0
        self._sums = dict.fromkeys((accumulator.name for accumulator in ACCUMULATORS), 0)
        self.counts: Counter[str] = Counter()
        self.refusals = Refusals(self._limits, parent.prefixes, crawl.hash_seed)

    def write(self, folder: Path, out: Path) -> tuple[dict, dict]:
        """Writes the generation into `folder`, its text below `out`; returns its figures and its segments of text."""
        servers = self._parent.servers
        failures = servers.select(["last_failure_reason", "last_failure_message"])
        servers_bytes = SERVER_BYTES * len(servers) + FAILURE_TIMES * failures.nbytes
        room = self._limits.memory_max_bytes - BASE_BYTES - servers_bytes - ROW_BYTES * len(self._parent)
        self._texts = Texts(self._crawl, out, self._plan.cycle, self._parent)
        pieces = cut(*self._range, self._weigh, min(max(room, PIECE_BYTES_LEAST), PIECE_BYTES_MOST))
        self.counts["pieces"] = len(pieces)
        whole = self._read(pieces[0]) if len(pieces) == 1 else None
        self._timing.mark("read")
        self._servers = ServerTable(self._parent.servers, *self._find_servers(whole))
        self.refusals.move_servers(self._servers.place_of_old)
        self._revived = self._servers.forgive(*self._decisions.servers(*self._range))
        new_robots, self._new_rules = self._take_observed()
        judge(self._servers.columns, self._plan.now_ms, self._plan.config)
        self._refill = Refill(self._may_need(), self._policy, self._limits.prescheduled_max)
        self._duplicate = find_duplicates(self._parent, self._answers)
        writer = GenerationWriter(folder)
        states = []
        self._timing.mark("servers")
        for piece in pieces:
            arrived, whole = whole or self._read(piece), None
            self._timing.mark("read")
            states.append(self._take(piece, arrived, writer))
        if self._side_done != self._parent.side.rows:
            raise Damaged(
                "state", f"expected {self._parent.side.rows} URLs that were collected before, found {self._side_done}"
            )
        state = states[0] if len(states) == 1 else np.concatenate(states)
        rows, places = self._refill.choose(self._servers.states[:, PRESCHEDULED], self._limits.prescheduled_refill)
        state[rows] = PRESCHEDULED
        self._servers.move(places, WAITING, PRESCHEDULED)
        self._timing.mark("preschedule")
        texts = self._texts.close(self._servers.columns, new_robots)
        self._timing.mark("texts")
        writer.rows.append({"state": state})
        writer.close_rows()
        self._timing.mark("write")
        servers = self._servers.table()
        writer.write_servers(servers, self.refusals.prefixes())
        self._timing.mark("servers")
        return {
            **describe_generation(servers, self._servers.states.sum(axis=0)),
            **{f"{name}_sum": total for name, total in self._sums.items()},
        }, texts

    def _weigh(self, low: int, high: int) -> int:
        """About how much memory the turn needs for a range of pairs."""
        measured = [source.measure(low, high) for source in (*self._sources, *self._decisions.sources)]
        arrived = sum(max(rows * ARRIVED_ROW_BYTES, size * ARRIVED_TIMES) for rows, size in measured)
        each = PARENT_ROW_BYTES + self._texts.folded_share * FOLDED_ROW_BYTES
        return int((self._row_of(high) - self._row_of(low)) * each + arrived)

    def _row_of(self, pair: int) -> int:
        """How many rows of the parent lie before a pair."""
        domain_key, key = divmod(pair, 1 << KEY_BITS)
        if domain_key >> KEY_BITS:
            return len(self._parent)
        (start,), (stop,) = self._parent.domains.rows_of(np.array([domain_key], np.uint64))
        return int(start + np.searchsorted(self._parent.rows["key"][start:stop], np.uint64(key)))

    def _read(self, piece: Range) -> Arrived:
        return Arrived(
            [source.read(*piece) for source in self._sources], slice_rows(self._harvest.unlisted_here, *piece)
        )

    def _find_servers(self, whole: Arrived | None) -> tuple[np.ndarray, np.ndarray]:
        """(server key, domain key) of every server that a row arrives of, each once."""
        if whole is not None:
            found, place = whole.servers
            return found, whole.join("domain_key")[find_firsts(place, len(found))]
        keys, domains = [], []
        for table in (
            self._harvest.unlisted_here,
            *(table for source in self._sources for table in source.read_pieces(*self._range)),
        ):
            found, row = first_of_each(column(table, "server_key"))
            keys.append(found)
            domains.append(column(table, "domain_key")[row])
        server_keys, row = first_of_each(np.concatenate(keys))
        return server_keys, np.concatenate(domains)[row]

    def _take_observed(self) -> tuple[dict[int, bytes], np.ndarray]:
        """Merges Servidores into the table; returns the robots.txt that are new, by place of the server, and the places where they changed."""
        servers = self._servers
        places, rows = servers.take_observed(self._harvest.servers)
        robots = self._harvest.servers.column("robots").take(pa.array(rows))
        told = places[robots.is_valid().to_numpy()]
        had = told[servers["robots_text"][told] != NO_TEXT]
        stored = read_blobs(
            self._crawl / names.TEXT, names.segment, servers["robots_text"][had], servers["robots_length"][had]
        )
        before = dict(zip(had.tolist(), stored))
        new = {
            place: text
            for place, text in zip(told.tolist(), robots.drop_null().to_pylist())
            if before.get(place) != text
        }
        return new, np.array([place for place in new if place in before], np.int64)

    def _may_need(self) -> np.ndarray:
        """Which servers may have fewer prescheduled URLs than they should once the turn is done; bool, by place."""
        gone = self._servers.find(self._happened.server_key)
        left = self._servers["prescheduled"].astype(np.int64) - np.bincount(
            gone[gone >= 0], minlength=len(self._servers)
        )
        return (left < self._limits.prescheduled_refill) & ~self._servers["given_up"].astype(bool)

    def _take(self, bounds: Range, arrived: Arrived, writer: GenerationWriter) -> np.ndarray:
        """Merges a piece and appends its rows, all but their states, which are returned."""
        links = gather(arrived)
        self._timing.mark("sort")
        piece = find_known(self._parent, self._row_of(bounds[0]), self._row_of(bounds[1]), links)
        self._timing.mark("find")
        lines = links.lines_of(piece.new)
        self._timing.mark("urls")
        piece.new_servers = links.server_places(piece.new, self._servers)
        self._name_servers(piece.new_servers, lines)
        answers = self._answers.part(*bounds)
        lines = self.refusals.judge(piece, lines, self._servers, answers, arrived.linked_rows < arrived.rows)
        arrived.forget()
        features = {"levels": path_levels(lines)} if "levels" in self._policy.features else {}
        self._timing.mark("rules")
        self._texts.append(piece, lines)
        merge_rows(piece, self._servers, self._texts.segment_of_old, self._texts.own, features)
        self._timing.mark("merge")
        find_server_places(piece, self._servers)
        self._timing.mark("servers")
        self.counts["reconsidered"] += reconsider(piece, *self._decisions.urls(*bounds), self._revived)
        apply_happened(piece, self._happened.part(*bounds), self._limits.attempts_max)
        apply_servers(piece, self._servers, self._new_rules)
        start = find_pair(self._answers.domain_key, self._answers.key, bounds[0])
        duplicate = self._duplicate[start : start + len(answers.key)]
        side, self._side_done = merge_side(piece, self._side_done, answers, self._plan.cycle, duplicate)
        self._timing.mark("states")
        self._servers.count(piece.server_places, piece.rows["state"])
        self._refill.offer(piece.rows, piece.server_places, self._rows_done)
        self._timing.mark("preschedule")
        state = piece.rows.pop("state")
        writer.rows.append(piece.rows)
        writer.side.append(side)
        self._timing.mark("write")
        self._rows_done += len(state)
        self.counts.update({**count_sets(piece, answers), "duplicates": int(duplicate.sum())})
        for name in self._sums:
            self._sums[name] += int(piece.rows[name].sum(dtype=np.uint64))
        self._timing.mark("count")
        self._texts.settle()
        self._timing.mark("texts")
        return state

    def _name_servers(self, places: np.ndarray, lines: pa.LargeBinaryArray) -> None:
        """Names the servers of new URLs that have no name yet, by a URL of each."""
        nameless = np.flatnonzero(self._servers["server"][places] == "")
        found, row = first_of_each(places[nameless])
        self._servers.name(found, lines.take(pa.array(nameless[row])))
