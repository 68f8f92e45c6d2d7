"""The figures in a generation's manifest: planning and status then open no block."""

import numpy as np
import pyarrow as pa

from contract.tables import COLLECTED_STATE, PRESCHEDULED, STATES, WAITING
from storage.tables import column, only_chunk

REASONS_MAX = 20  # why servers fail: the most that a manifest has


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
