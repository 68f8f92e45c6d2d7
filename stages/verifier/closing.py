"""Domains that a policy closes (new-domains): by what their pages of this cycle link to, decided before the merge.

A domain goes on as long as its newest page leads to enough other domains; else it is closed, for good and under any
policy: its URLs become refused by rule, those that wait and those that are found later. Only a page that was not
collected before decides: a visit shows nothing new. Nor does a redirect decide, which leads to a page and is none.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.blocks import in_interval
from contract.generation import Generation
from contract.policies.new_domains import close_domains
from contract.tables import COLLECTED_STATE, METADATA, ORDER
from storage.pairs import Runs
from storage.tables import column, read_table

COLUMNS = [*ORDER, "status", "links_own_domain", "links_other_domains", "revisit"]
REDIRECTS = (300, 399)


@dataclass
class Closing:
    """`closed`: keys of the domains (u64, rising) that are closed by this cycle; `counts`: what the report says."""

    closed: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    counts: dict = field(default_factory=dict)

    def mark(self, servers: dict[str, np.ndarray]) -> bool:
        """Sets `closed` of all servers of closed domains, new ones too; returns whether any is."""
        domain_key, was_closed = servers["domain_key"], servers["closed"].astype(bool)
        closed = np.union1d(self.closed, domain_key[was_closed])
        servers["closed"] = np.isin(domain_key, closed)
        return bool(len(closed))


def read_pages(folder: Path, low: int, high: int) -> pa.Table:
    """What answers of this cycle to URLs of the block say of their domains. REQUIRES: the file was verified."""
    pages = read_table(folder / names.METADATA, METADATA, COLUMNS, is_verified=True)
    return pages.filter(pa.array(in_interval(column(pages, "domain_key"), low, high)))


def decide(parent: Generation, pages: pa.Table) -> Closing:
    """Closes the domains whose new pages lead to too few other domains."""
    domain_key = column(pages, "domain_key")
    is_new = ~find_collected(parent, domain_key, column(pages, "url_key"))
    status = column(pages, "status")
    decides = is_new & ~((status >= REDIRECTS[0]) & (status <= REDIRECTS[1]))
    domains, which = np.unique(domain_key[is_new], return_inverse=True)
    collected = count_collected(parent, domains) + np.bincount(which, minlength=len(domains))
    most = np.full(len(domains), -1, np.int64)
    np.maximum.at(most, which[decides[is_new]], column(pages, "links_other_domains")[decides].astype(np.int64))
    decided = most >= 0
    is_closed = np.zeros(len(domains), bool)
    is_closed[decided] = close_domains(collected[decided], most[decided])
    counts = {
        "domains_deeper": int((decided & ~is_closed).sum()),
        "domains_closed": int(is_closed.sum()),
        "own_domain_links": spread_out(column(pages, "links_own_domain")[~column(pages, "revisit").astype(bool)]),
    }
    return Closing(domains[is_closed], counts)


def find_collected(parent: Generation, domain_key: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Which of these URLs (u64, by domain key and key) the parent has as collected; bool."""
    row, there = Runs(parent.domains.key, parent.domains.first_row, parent.rows["key"]).search(domain_key, key)
    found = np.zeros(len(key), bool)
    if there.any():
        found[there] = parent.rows["state"][row[there]] == COLLECTED_STATE
    return found


def count_collected(parent: Generation, domains: np.ndarray) -> np.ndarray:
    """How many pages of each of these domains (u64, rising, each once) the parent has as collected."""
    number = np.searchsorted(domains, column(parent.servers, "domain_key"))
    number[number == len(domains)] = 0
    here = domains[number] == column(parent.servers, "domain_key") if len(domains) else np.zeros(len(number), bool)
    collected = column(parent.servers, "collected")[here]
    return np.bincount(number[here], collected, minlength=len(domains)).astype(np.int64)


def spread_out(values: np.ndarray) -> dict[str, int]:
    """How many values lie between powers of two: those of 0, 1, 2-3, 4-7, and so on."""
    counts = np.bincount(np.frexp(values.astype(np.float64))[1]).tolist()
    spans = ["0", "1", *(f"{1 << size}-{(2 << size) - 1}" for size in range(1, len(counts)))]
    return {span: count for span, count in zip(spans, counts) if count}
