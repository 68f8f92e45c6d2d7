"""The walk of a turn through its block: everything is sorted by (domain key, URL key), and merged piece by piece.

A piece is a range of pairs of keys. Its rows, those of the parent generation and those that arrive, fit into memory
together; mostly one piece holds the whole block. `piece_merge.py` has the steps of a piece; here are those before
and after all pieces: the table of servers, the best of the waiting URLs, and the files of the generation.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.blocks import KEY_BITS, interval
from contract.crawl_folder import CrawlFolder
from contract.generation import Generation, GenerationWriter
from contract.plan import Plan, VerifierPlan
from contract.policies import policy_of, revisits
from contract.policies.spread import KNOWN
from contract.policy_files import verify_files
from contract.scope.link_sources import LinkSources
from contract.tables import PRESCHEDULED
from stages.verifier.arrived_links import Arrived, find_firsts, least_of_each, slice_rows
from stages.verifier.closing import Closing
from stages.verifier.decisions import Decisions
from stages.verifier.figures import RowFigures, VisitFigures, describe_generation
from stages.verifier.harvest import Answers, Happened, Harvest
from stages.verifier.merge import find_duplicates
from stages.verifier.piece_merge import Block, PieceMerge
from stages.verifier.pieces import Range, cut
from stages.verifier.preparation import Preparation
from stages.verifier.prescheduling import Refill
from stages.verifier.refusals import Refusals, count_budgets, limits_of
from stages.verifier.server_table import ServerTable, judge
from stages.verifier.texts import Texts
from stages.verifier.timing import Timing
from storage.arrays import encode
from storage.errors import Damaged
from storage.keyed_file import KeyedFile
from storage.pairs import PAIR_END
from storage.tables import column
from storage.text_segments import NO_TEXT, read_blobs

BASE_BYTES = 300 << 20  # what the libraries, the writing of AUX and the packing of texts take
SERVER_BYTES = 700  # of a row of the table of servers, which is held whole, before and after ...
FAILURE_TIMES = 6  # ... and how often the texts of last failures are in memory: before and after, and as objects
ROW_BYTES = 6  # of every row of the block, from its piece to the end: its state, and its columns as they are packed
MARK_BYTES = 1  # of every row of the block, with link sources: whether it is one
VISITED_BYTES = 40  # of every collected page, with revisits: columns of its visits to the end, then when it is due
PARENT_ROW_BYTES = 50  # of a row of the parent: its columns, those that they become, and where they come from
SIDE_ROW_BYTES = 40  # of a collected one of these, besides: its row of the side set
FOLDED_ROW_BYTES = 300  # of one whose text is written anew: as it was read, joined, and in order
ARRIVED_ROW_BYTES = 250  # of a row that arrives: as it was read, joined, sorted, and as text
ARRIVED_TIMES = 4  # how often its bytes are in memory, which counts where URLs are long
PIECE_BYTES_LEAST = 16 << 20
PIECE_BYTES_MOST = 64 << 30  # rows of a piece are counted with 31 bits


class Walk:
    def __init__(
        self,
        crawl: CrawlFolder,
        plan: Plan,
        fixed: VerifierPlan,
        parent: Generation,
        preparation: Preparation,
        closing: Closing,
        harvest: Harvest,
        slices: list[KeyedFile],
        decisions: Decisions,
        happened: Happened,
        answers: Answers,
        timing: Timing,
        on_piece: Callable[[int, int], None] = lambda done, pieces: None,
    ):
        self._crawl, self._plan, self._parent, self._harvest = crawl.path, plan, parent, harvest
        self._preparation, self._closing = preparation, closing
        self._happened, self._answers, self._decisions = happened, answers, decisions
        self._limits = plan.config.verifier
        self._sources = [*harvest.sources(), *slices]
        self._range: Range = tuple(key << KEY_BITS for key in interval(fixed.block, fixed.blocks))
        self._timing = timing
        self._on_piece = on_piece  # called with how many pieces are merged, and how many there are
        self._read_ahead: list[Arrived] = []  # of a block that is one piece: its rows name the servers too
        self.counts: Counter[str] = Counter()
        limits = limits_of(plan.config, crawl.keys(), (self._range[1] - self._range[0]) / PAIR_END)
        budgets = count_budgets(parent, preparation, len(limits.rule_max_urls))
        self.refusals = Refusals(limits, parent.prefixes, crawl.hash_seed, budgets)
        # Scores change from turn to turn, or the way to compute them did.
        self._chooses_anew = policy_of(plan.config).varies or preparation.is_changed

    def write(self, folder: Path, out: Path) -> tuple[dict, dict]:
        """Writes the generation into `folder`, its text below `out`; returns its figures and its segments of text."""
        run = self._timing.run
        before = (("read", self._cut_pieces), ("servers", self._merge_servers))
        pieces, block, new_robots = run(before, folder, out)
        states = []
        for bounds in pieces:
            self._on_piece(len(states), len(pieces))
            states.append(run(PieceMerge(block, bounds).steps)[0])
        self._on_piece(len(pieces), len(pieces))
        after = (
            ("preschedule", self._preschedule),
            ("texts", self._close_texts),
            ("write", self._write_states),
            ("servers", self._write_servers),
        )
        return run(after, block, states, new_robots)

    def _cut_pieces(self, folder: Path, out: Path) -> tuple[list[Range], Path, Texts]:
        servers = self._parent.servers
        failures = servers.select(["last_failure_reason", "last_failure_message"])
        servers_bytes = SERVER_BYTES * len(servers) + FAILURE_TIMES * failures.nbytes
        room = self._limits.memory_max_bytes - BASE_BYTES - servers_bytes - ROW_BYTES * len(self._parent)
        if LinkSources(self._plan.config.scope):
            room -= MARK_BYTES * len(self._parent)
        if revisits(self._plan.config):
            room -= VISITED_BYTES * (self._parent.side.rows + len(self._answers.key))
        room -= sum(values.nbytes for values in self._preparation.columns.values())
        texts = Texts(self._crawl, out, self._plan.cycle, self._parent)
        collected_share = self._parent.side.rows / max(len(self._parent), 1)
        row_bytes = PARENT_ROW_BYTES + texts.folded_share * FOLDED_ROW_BYTES + collected_share * SIDE_ROW_BYTES
        pieces = cut(
            *self._range,
            lambda low, high: self._weigh(low, high, row_bytes),
            min(max(room, PIECE_BYTES_LEAST), PIECE_BYTES_MOST),
        )
        self.counts["pieces"] = len(pieces)
        if len(pieces) == 1:
            self._read_ahead.append(self._read(pieces[0]))
        return pieces, folder, texts

    def _merge_servers(
        self, pieces: list[Range], folder: Path, texts: Texts
    ) -> tuple[list[Range], Block, dict[int, bytes]]:
        """All that pieces need of the whole block, and the new robots.txt texts by index of their server."""
        server_keys, domain_keys, depths = self._find_servers()
        forced = column(self._harvest.unlisted_here, "server_key")  # what another list had is granted anyway
        admitted = self.refusals.admit_servers(self._parent.servers, server_keys, domain_keys, depths, forced)
        servers = ServerTable(self._parent.servers, server_keys[admitted], domain_keys[admitted])
        self.refusals.move_servers(servers.index_of_old)
        revived = servers.forgive(*self._decisions.servers(*self._range))
        new_robots, changed_robots = self._take_observed(servers)
        judge(servers.columns, self._plan.now_ms, self._plan.config)
        config = self._plan.config
        files = verify_files(self._crawl, config)
        self.refusals.limit_domains(config, files, servers["domain_key"])
        block = Block(
            cycle=self._plan.cycle,
            config=config,
            files=files,
            memory={KNOWN: (servers["domain_key"], servers.known.copy())},  # as it was before the turn
            parent=self._parent,
            preparation=self._preparation,
            has_closed=self._closing.mark(servers.columns),
            chooses_anew=self._chooses_anew,
            read=lambda bounds: self._read_ahead.pop() if self._read_ahead else self._read(bounds),
            row_of=self._row_of,
            decisions=self._decisions,
            happened=self._happened,
            answers=self._answers,
            duplicate=find_duplicates(self._parent, self._answers),
            servers=servers,
            revived=revived,
            changed_robots=changed_robots,
            refusals=self.refusals,
            refill=Refill(self._may_need(servers), servers, config, self._plan.now_ms),
            figures=RowFigures(config),
            visits=VisitFigures(config),
            texts=texts,
            writer=GenerationWriter(folder),
            counts=self.counts,
        )
        return pieces, block, new_robots

    def _preschedule(
        self, block: Block, states: list[np.ndarray], new_robots: dict[int, bytes]
    ) -> tuple[Block, np.ndarray, dict[int, bytes]]:
        """The states of all rows, some of which are prescheduled now."""
        side_rows = self._parent.side.rows
        if block.side_done != side_rows:
            raise Damaged("state", f"expected {side_rows} URLs that were collected before, found {block.side_done}")
        state = states[0] if len(states) == 1 else np.concatenate(states)
        chosen = block.refill.choose()
        block.figures.preschedule(chosen)
        state[chosen] = PRESCHEDULED
        return block, state, new_robots

    def _close_texts(
        self, block: Block, state: np.ndarray, new_robots: dict[int, bytes]
    ) -> tuple[Block, np.ndarray, dict]:
        return block, state, block.texts.close(block.servers.columns, new_robots)

    def _write_states(self, block: Block, state: np.ndarray, texts: dict) -> tuple[Block, dict]:
        block.writer.rows.append({"state": state})
        block.writer.close_rows()
        return block, texts

    def _write_servers(self, block: Block, texts: dict) -> tuple[dict, dict]:
        """Writes the table of servers; the figures of the generation, and its segments of text."""
        servers = block.servers.table()
        block.writer.write_servers(servers, self.refusals.prefixes())
        figures = describe_generation(servers, block.servers.states.sum(axis=0))
        figures |= block.visits.figures(block.servers.columns)
        return figures | block.figures.figures(), texts

    def _weigh(self, low: int, high: int, row_bytes: float) -> int:
        """Approximate memory in bytes that a range of pairs needs; `row_bytes` of it per row of the parent."""
        measured = [source.measure(low, high) for source in (*self._sources, *self._decisions.sources)]
        arrived = sum(max(rows * ARRIVED_ROW_BYTES, size * ARRIVED_TIMES) for rows, size in measured)
        return int((self._row_of(high) - self._row_of(low)) * row_bytes + arrived)

    def _row_of(self, pair: int) -> int:
        """How many rows of the parent lie before a pair."""
        domain_key, key = divmod(pair, 1 << KEY_BITS)
        if domain_key >> KEY_BITS:
            return len(self._parent)
        (start,), (stop,) = self._parent.domains.rows_of(np.array([domain_key], np.uint64))
        return int(start + np.searchsorted(self._parent.rows["key"][start:stop], np.uint64(key)))

    def _read(self, bounds: Range) -> Arrived:
        return Arrived(
            [source.read(*bounds) for source in self._sources], slice_rows(self._harvest.unlisted_here, *bounds)
        )

    def _find_servers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(server key, domain key, least depth) of every server that a row arrives of, each once."""
        for whole in self._read_ahead:
            found, number = whole.servers
            depths = least_of_each(whole.join("depth"), number, len(found))
            return found, whole.join("domain_key")[find_firsts(number, len(found))], depths
        keys, domains, depths = [], [], []
        for table in (
            self._harvest.unlisted_here,
            *(table for source in self._sources for table in source.read_pieces(*self._range)),
        ):
            found, number = encode(column(table, "server_key"))
            keys.append(found)
            domains.append(column(table, "domain_key")[find_firsts(number, len(found))])
            depths.append(least_of_each(column(table, "depth"), number, len(found)))
        server_keys, number = encode(np.concatenate(keys))
        row = find_firsts(number, len(server_keys))
        least = least_of_each(np.concatenate(depths), number, len(server_keys))
        return server_keys, np.concatenate(domains)[row], least

    def _take_observed(self, servers: ServerTable) -> tuple[dict[int, bytes], np.ndarray]:
        """Merges Servidores into the table; returns new robots.txt texts by server, and which were changed."""
        found, rows = servers.take_observed(self._harvest.servers)
        robots = self._harvest.servers.column("robots").take(pa.array(rows))
        given = found[robots.is_valid().to_numpy()]
        had = given[servers["robots_text"][given] != NO_TEXT]
        stored = read_blobs(
            self._crawl / names.TEXT, names.segment, servers["robots_text"][had], servers["robots_length"][had]
        )
        before = dict(zip(had.tolist(), stored))
        new = {
            server: text
            for server, text in zip(given.tolist(), robots.drop_null().to_pylist())
            if before.get(server) != text
        }
        return new, np.array([server for server in new if server in before], np.int64)

    def _may_need(self, servers: ServerTable) -> np.ndarray:
        """Which servers may have too few prescheduled URLs once the turn is done; bool, by index."""
        if self._chooses_anew:
            return ~servers["given_up"].astype(bool)
        gone = servers.find(self._happened.server_key)
        left = servers["prescheduled"].astype(np.int64) - np.bincount(gone[gone >= 0], minlength=len(servers))
        return (left < self._limits.prescheduled_refill) & ~servers["given_up"].astype(bool)
