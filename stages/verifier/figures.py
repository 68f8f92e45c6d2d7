"""What a generation's manifest tells of it, so that planning and status open no block."""

import numpy as np
import pyarrow as pa

from contract.tables import COLLECTED_STATE, PRESCHEDULED, STATES, WAITING
from storage.tables import column


def describe_generation(servers: pa.Table, states: np.ndarray) -> dict:
    """Of a table of servers and the number of rows in each state."""
    due = column(servers, "due_at_ms")[column(servers, "waiting") > 0]
    _, domain = np.unique(column(servers, "domain_key"), return_inverse=True)
    domains = int(domain.max()) + 1 if len(domain) else 0
    known = np.bincount(domain, column(servers, "known"), minlength=domains)
    return {
        "known": int(states.sum()), "states": dict(zip(STATES, states.tolist())), "collected": int(states[COLLECTED_STATE]),
        "waiting": int(states[WAITING] + states[PRESCHEDULED]), "earliest_due_ms": int(due.min()) if len(due) else None,
        "servers": len(servers), "domains": domains,
        "servers_failing": int(((column(servers, "failures") > 0) & ~column(servers, "given_up")).sum()),
        "servers_given_up": int(column(servers, "given_up").sum()),
        "largest_domain_known": int(known.max()) if domains else 0,
        "largest_domain_servers": int(np.bincount(domain).max()) if domains else 0,
    }
