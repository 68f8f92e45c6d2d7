"""pagerank: the largest rank first, by a file of URLs or servers and their ranks; what it does not name comes last.

L. Page, S. Brin, R. Motwani and T. Winograd, "The PageRank citation ranking: bringing order to the Web", 1999. Ranks
may come from an earlier crawl or from a graph of servers; contract/rank_files.py says what the file looks like.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from contract.config import Config
from contract.policies.policy import Column, Feature, Policy, PolicyFile, Urls, largest_first
from contract.rank_files import convert, read_ranks

FILE_KEY = "scheduler.ranks_file"


def look_up(urls: Urls) -> Column:
    """The rank of the URL itself, or else that of its server, or 0."""
    ranks = urls.memory.get(FILE_KEY)
    if ranks is None:
        ranks = urls.memory[FILE_KEY] = read_ranks(urls.files[FILE_KEY])
    found = np.zeros(len(urls.key), np.float32)
    for keys in (urls.server_key, urls.key):
        at = np.searchsorted(ranks["key"], keys)
        there = at < len(ranks)
        there[there] = ranks["key"][at[there]] == keys[there]
        found[there] = ranks["rank"][at[there]]
    return largest_first(found)


def identify(config: Config, files: Mapping[str, Path]) -> str:
    return files[FILE_KEY].name


def check(config: Config) -> str:
    return "" if config.scheduler.ranks_file else f"{FILE_KEY}: expected a file of ranks for the policy pagerank"


RANK = Feature("rank", "u4", look_up, identify)
RANKS_FILE = PolicyFile(FILE_KEY, convert)
POLICY = Policy(lambda of: of.rows["rank"], features=(RANK,), check=check, files=(RANKS_FILE,))
