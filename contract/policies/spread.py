"""spread: f(url) = 100 m[h(domain)] + components, the smallest first; so domains take turns, short paths first.

A. Silva et al., UFMG (CoBWeb: "A crawler for the Brazilian Web", SPIRE 1999, and the work on it). m[h] counts the URLs
that were added so far under one of 257 hash values of the registered domain, and f stays as it was when the URL came.

m needs no file of its own: the URLs that a block knows, by the hash of their domain, are m. It is counted from the
table of servers at the beginning of a turn, and lives and dies with the generation. After a split each half has its
own m. When the policy is chosen for a crawl that has URLs, these count as added in the order of their keys.
"""

import numpy as np

from contract.policies.policy import Column, Feature, Policy, Urls, smallest_first
from contract.url_paths import path_levels
from storage.arrays import rank_in_run

HASHES = 257
STEP = 100
KNOWN = "known_of_domains"  # in Urls.memory: (domain keys, known URLs of each) at the beginning of the turn


def freeze(urls: Urls) -> Column:
    counts = urls.memory.setdefault("spread", count_known(*urls.memory.get(KNOWN, ((), ()))))
    hashed = hash_domain(urls.domain_key)
    order = np.argsort(hashed, kind="stable")
    before = np.empty(len(hashed), np.int64)
    before[order] = rank_in_run(hashed[order])
    f = STEP * (counts[hashed] + before) + path_levels(urls.lines)
    counts += np.bincount(hashed, minlength=HASHES)
    frozen: Column = np.minimum(f, np.iinfo(np.uint32).max).astype(np.uint32)
    return frozen


def count_known(domain_keys: Column, known: Column) -> Column:
    hashed = hash_domain(np.asarray(domain_keys, np.uint64))
    counts: Column = np.bincount(hashed, np.asarray(known, np.float64), minlength=HASHES).astype(np.int64)
    return counts


def hash_domain(domain_key: Column) -> Column:
    return (domain_key % np.uint64(HASHES)).astype(np.int64)


SPREAD = Feature("spread", "u4", freeze)
POLICY = Policy(lambda of: smallest_first(of.rows["spread"], 32), features=(SPREAD,))
