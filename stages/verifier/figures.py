"""What a generation's manifest tells of it, so that planning and status open no block."""

import numpy as np

from contract.generation import Generation
from contract.tables import STATES, WAITING, PRESCHEDULED
from storage.tables import column


def describe_generation(generation: Generation) -> dict:
    states = np.bincount(generation.rows["state"], minlength=len(STATES)).tolist()
    servers = generation.servers
    waiting = column(servers, "waiting") > 0
    due = column(servers, "due_at_ms")[waiting]
    _, domain = np.unique(column(servers, "domain_key"), return_inverse=True)
    domains = int(domain.max()) + 1 if len(domain) else 0
    known = np.bincount(domain, column(servers, "known"), minlength=domains)
    return {
        "known": len(generation), "states": dict(zip(STATES, states)), "collected": len(generation.side["key"]),
        "waiting": states[WAITING] + states[PRESCHEDULED], "earliest_due_ms": int(due.min()) if len(due) else None,
        "servers": len(servers), "domains": domains,
        "servers_failing": int(((column(servers, "failures") > 0) & ~column(servers, "given_up")).sum()),
        "servers_given_up": int(column(servers, "given_up").sum()),
        "largest_domain_known": int(known.max()) if domains else 0,
        "largest_domain_servers": int(np.bincount(domain).max()) if domains else 0,
        "links_in_sum": int(generation.rows["links_in"].sum(dtype=np.uint64)),
    }
