"""The figures in a generation's manifest: planning and status then open no block."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from contract import revisits
from contract.accumulators import ACCUMULATORS
from contract.config import Config
from contract.policies import policy_of, rules
from contract.revisits import NEVER_MS, Pages
from contract.scope.link_sources import LinkSources
from contract.tables import COLLECTED_STATE, PRESCHEDULED, STATES, WAITING
from storage.tables import column, only_chunk

REASONS_MAX = 20  # why servers fail: the most that a manifest has
# A block is due when one in so many of the pages that may be due is: its list is worth a cycle. Pages of a rule that
# has an interval of its own are counted apart: a few feeds that are due each hour wait for no hundredth of the rest.
DUE_PART = 100
DAYS_END = 1 << 16  # of a column of u16
PAGES_AT_ONCE = 1 << 18  # so that the memory for rates does not follow the block

EVIDENCE = ("visits", "changes", "unchanged_min", "changed_min")  # that rates are estimated from
# Columns of the side set that each policy of [revisit] needs, besides the time of the last visit.
COLUMNS_OF = {
    revisits.NONE: (),
    revisits.UNIFORM: ("misses",),
    revisits.PROPORTIONAL: ("misses", "period_min"),
    revisits.OPTIMAL: ("misses", *EVIDENCE),
}


SERVERS_READ = ("due_at_ms", "given_up", "lastmod_claims", "lastmod_true")  # columns that figures() takes


def describe_generation(servers: pa.Table, states: np.ndarray) -> dict:
    """The figures, from a table of servers and the number of rows in each state."""
    due = column(servers, "due_at_ms")[column(servers, "waiting") > 0]
    _, domain = np.unique(column(servers, "domain_key"), return_inverse=True)
    domains = int(domain.max()) + 1 if len(domain) else 0
    known = np.bincount(domain, column(servers, "known"), minlength=domains)
    return {
        "known": int(states.sum()),
        "states": dict(zip(STATES, states.tolist())),
        "collected": int(states[COLLECTED_STATE]),
        "waiting": int(states[WAITING] + states[PRESCHEDULED]),
        "earliest_due_ms": int(due.min()) if len(due) else None,
        "servers": len(servers),
        "domains": domains,
        "servers_failing": int(((column(servers, "failures") > 0) & ~column(servers, "given_up")).sum()),
        "servers_given_up": int(column(servers, "given_up").sum()),
        "server_failures": count_failures(servers),
        "largest_domain_known": int(known.max()) if domains else 0,
        "largest_domain_servers": int(np.bincount(domain).max()) if domains else 0,
    }


class RowFigures:
    """The figures from the columns of rows, which come piece by piece: sums, and when enough can be forgotten.

    Link sources are counted by state, where the configuration has any: all other figures count them too, because a
    crawl asks for them as for other URLs.
    """

    def __init__(self, config: Config) -> None:
        self._config = config.revisit
        self._link_sources = LinkSources(config.scope)
        self._marks: list[np.ndarray] = []  # which rows are link sources, bool, by piece
        self._states = np.zeros(len(STATES), np.int64)  # of link sources
        self._sums = {one.name: 0 for one in ACCUMULATORS if not one.is_largest}  # a largest value has none
        self._ranks = [feature.name for feature in policy_of(config).features if feature.is_rank(config)]
        self._ranked = 0
        self._linked_on = np.zeros(DAYS_END, np.int64)  # rows that may be forgotten, by the day of their last link
        self._rows = 0

    def take(self, rows: Mapping[str, np.ndarray]) -> None:
        self._rows += len(rows["key"])
        for name in self._sums:
            self._sums[name] += int(rows[name].sum(dtype=np.uint64))
        if self._config.forget_after_days:
            days = rows["linked_day"][revisits.forgettable(rows["linked_day"], rows["depth"])]
            self._linked_on += np.bincount(days, minlength=DAYS_END)
        mark = np.zeros(len(rows["key"]), bool)
        if self._link_sources:
            mark = self._link_sources.mark_rows(rows[rules.LINK_SOURCE.name], rows["depth"])
            self._marks.append(mark)
            self._states += np.bincount(rows["state"][mark], minlength=len(STATES))
        if self._ranks:
            has_rank = np.any([rows[name] > 0 for name in self._ranks], axis=0)
            self._ranked += int(np.count_nonzero(has_rank & ~mark))

    def preschedule(self, chosen: np.ndarray) -> None:
        """Takes in that these rows (i64), which waited, are prescheduled now. REQUIRES: all rows were taken."""
        if self._marks and len(chosen):
            moved = int(np.count_nonzero(np.concatenate(self._marks)[chosen]))
            self._states[WAITING] -= moved
            self._states[PRESCHEDULED] += moved

    def figures(self) -> dict[str, Any]:
        due_ms = revisits.forget_due_ms(self._config, self._linked_on, self._rows)
        states = self._states.tolist()
        of_link_sources = {"link_sources": dict(zip(STATES, states))} if self._link_sources else {}
        sums = {f"{name}_sum": total for name, total in self._sums.items()}
        ranked = {"ranked": self._ranked} if self._ranks else {}
        return {**sums, "forget_due_ms": due_ms, **of_link_sources, **ranked}


def count_failures(servers: pa.Table) -> list[dict]:
    """Why servers fail or were given up: each last reason, its number of servers, the first one; common ones first."""
    given_up = column(servers, "given_up").astype(bool)
    failing = np.flatnonzero((column(servers, "failures") > 0) | given_up)
    encoded = only_chunk(servers.column("last_failure_reason")).take(pa.array(failing)).dictionary_encode()
    reasons, which = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    ended = np.bincount(which[given_up[failing]], minlength=len(reasons)).tolist()
    together = np.bincount(which, minlength=len(reasons)).tolist()
    first = np.unique(which, return_index=True)[1]
    found = []
    for number in sorted(range(len(reasons)), key=lambda number: (-together[number], reasons[number]))[:REASONS_MAX]:
        example = servers.slice(int(failing[first[number]]), 1).to_pylist()[0]
        found.append(
            {
                "reason": reasons[number],
                "failing": together[number] - ended[number],
                "given_up": ended[number],
                "example": example["server"],
                "message": example["last_failure_message"],
            }
        )
    return found


class VisitFigures:
    """The figures about visits, from the side set of a block, which comes piece by piece.

    They follow from columns and configuration alone: a block that is split has no time of its own.
    """

    def __init__(self, config: Config):
        self._config = config
        self._revisits = config.revisit.policy != revisits.NONE
        self._wanted = COLUMNS_OF[config.revisit.policy]
        self._pieces: list[Mapping[str, np.ndarray]] = []  # columns of pages, and the index of the server of each
        self._answered_at_ms = np.empty(0, np.int64)  # by server: the oldest last answer of its pages that are not gone
        self.visits = self.changes = 0

    def take(self, side: Mapping[str, np.ndarray], rows: Mapping[str, np.ndarray], server_index: np.ndarray) -> None:
        """Takes the side set of a piece, and all of its rows with the index of the server of each."""
        self.visits += int(side["visits"].sum(dtype=np.uint64))
        self.changes += int(side["changes"].sum(dtype=np.uint64))
        if not self._revisits:
            return
        collected = np.flatnonzero(rows["state"] == COLLECTED_STATE)
        if self._config.revisit.forget_after_days:
            self._take_answers(side, server_index[collected])
        piece = {name: side[name] for name in self._wanted}
        piece["seen_at_ms"] = revisits.seen_at_ms(side["fetched_at_ms"], side["visited_at_ms"])
        piece["server"] = server_index[collected]
        if self._config.priority:
            piece["rule"] = rows[rules.RULE.name][collected]
        if rows["lastmod_s"].any():
            piece["lastmod_s"] = rows["lastmod_s"][collected]
        self._pieces.append(piece)

    def _take_answers(self, side: Mapping[str, np.ndarray], server: np.ndarray) -> None:
        unknown = np.full(max(0, int(server.max(initial=-1)) + 1 - len(self._answered_at_ms)), NEVER_MS)
        self._answered_at_ms = np.append(self._answered_at_ms, unknown)
        is_there = side["misses"] == 0
        np.minimum.at(self._answered_at_ms, server[is_there], side["fetched_at_ms"][is_there])

    def _find_forget_until(self, servers: Mapping[str, np.ndarray]) -> dict[str, int | None]:
        """Until when the last full answers of the pages that are still asked allow to forget."""
        if not self._config.revisit.forget_after_days:
            return {}
        answered = self._answered_at_ms
        answered = answered[(answered < NEVER_MS) & ~servers["given_up"].astype(bool)[: len(answered)]]
        return {"forget_until_ms": revisits.forget_until_ms(self._config.revisit, answered)}

    def figures(self, servers: Mapping[str, np.ndarray]) -> dict:
        """With the table of servers as the generation will have it, or its columns of SERVERS_READ."""
        due, rule = self._find_due(servers) if self._revisits else (np.empty(0, np.int64), np.empty(0, np.uint8))
        numbers = np.flatnonzero(np.bincount(rule)).tolist()
        parts = (due[rule == number] if len(numbers) > 1 else due for number in numbers)
        moments = [moment for part in parts if (moment := find_moment(part)) is not None]
        return {
            "revisit_due_ms": min(moments, default=None),
            **self._find_forget_until(servers),
            "revisitable": int(np.count_nonzero(due < NEVER_MS)),
            "visits": self.visits,
            "changes": self.changes,
        }

    def _find_due(self, servers: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """When the scheduler may list each page: i64, NEVER_MS where it never may; and the number of the rule that says
        so, u8, 0 for none.
        """
        config, count = self._config, len(servers["due_at_ms"])
        server_due = np.where(servers["given_up"].astype(bool), NEVER_MS, servers["due_at_ms"])
        trust = revisits.trust_of(servers["lastmod_claims"], servers["lastmod_true"])
        sums = None
        if config.revisit.policy == revisits.OPTIMAL:
            sums = [np.zeros(count) for _ in EVIDENCE]
            for pages, server, _ in self._slices(trust):
                for total, part in zip(sums, revisits.sum_by_server(pages, server, count)):
                    total += part
        count_pages, done = sum(len(piece["server"]) for piece in self._pieces), 0
        due, rule_of = np.empty(count_pages, np.int64), np.empty(count_pages, np.uint8)
        for pages, server, rule in self._slices(trust):
            rates = None if sums is None else revisits.estimate_rates(pages, server, count, config.revisit, sums)
            here = slice(done, done := done + len(server))
            np.maximum(revisits.due_at_ms(config.revisit, pages, rates), server_due[server], out=due[here])
            rule_of[here] = rule
        return due, rule_of

    def _slices(self, trust: revisits.Numbers) -> Iterator[tuple[Pages, np.ndarray, np.ndarray]]:
        """Some pages at a time, with the index of the server of each, and the number of the rule that has its interval.

        Columns that nothing asks for are zero. `trust`: in the claims of each server's sitemaps.
        """
        interval_s = rules.intervals_of(self._config)
        for piece in self._pieces:
            for start in range(0, len(piece["server"]), PAGES_AT_ONCE):
                part = {name: values[start : start + PAGES_AT_ONCE] for name, values in piece.items()}
                server, rule = part.pop("server"), part.pop("rule", np.zeros(1, np.uint8))
                # Rows of a block that is not prepared yet may name a rule that is there no longer.
                intervals = np.where(rule < len(interval_s), interval_s[np.minimum(rule, len(interval_s) - 1)], 0)
                part["rule_interval_s"] = np.broadcast_to(intervals, len(server))
                dates = part.pop("lastmod_s", None)
                part["claim_trust"] = None
                if dates is not None:
                    part["claim_trust"] = revisits.claim_trust(dates, part["seen_at_ms"], server, trust)
                nothing = np.broadcast_to(np.uint32(0), len(server))
                pages = Pages(**{field.name: part.get(field.name, nothing) for field in fields(Pages)})
                yield pages, server, np.where(intervals > 0, rule, 0)


def find_moment(due: np.ndarray) -> int | None:
    """When one in DUE_PART of these pages (i64, NEVER_MS for those that never are), at least one, is due; changes the
    order of `due`.
    """
    may_be = int(np.count_nonzero(due < NEVER_MS))
    if not may_be:
        return None
    last = max(1, may_be // DUE_PART) - 1
    due.partition(last)  # in place: NEVER_MS is behind all others
    return int(due[last])
