"""pagerank: the largest rank first, by a file of URLs or servers and their ranks; what it does not name comes last.

L. Page, S. Brin, R. Motwani and T. Winograd, "The PageRank citation ranking: bringing order to the Web", 1999. Ranks
may come from an earlier crawl or from a graph of servers; contract/rank_files.py says what the file looks like.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from contract.config import Config
from contract.policies.policy import Column, Feature, Policy, PolicyFile, Urls, largest_first
from contract.rank_files import convert, read_ranks

FILE_KEY = "scheduler.ranks_file"


def ranks_of(urls: Urls, file_key: str) -> Column:
    """The crawl's own copy of a file of ranks, read once per turn."""
    if file_key not in urls.memory:
        urls.memory[file_key] = read_ranks(urls.files[file_key])
    ranks: Column = urls.memory[file_key]
    return ranks


def find_ranks(urls: Urls, ranks: Column) -> tuple[Column, npt.NDArray[np.bool_]]:
    """The rank of each URL itself, or else that of its server, or 0, f32; and whether there is one."""
    found, is_known = np.zeros(len(urls.key), np.float32), np.zeros(len(urls.key), bool)
    for keys in (urls.server_key, urls.key):
        at = np.searchsorted(ranks["key"], keys)
        there = at < len(ranks)
        there[there] = ranks["key"][at[there]] == keys[there]
        found[there] = ranks["rank"][at[there]]
        is_known |= there
    return found, is_known


def look_up(urls: Urls) -> Column:
    return largest_first(find_ranks(urls, ranks_of(urls, FILE_KEY))[0])


def identify(config: Config, files: Mapping[str, Path]) -> str:
    return files[FILE_KEY].name


def check(config: Config) -> str:
    return "" if config.scheduler.ranks_file else f"{FILE_KEY}: expected a file of ranks for the policy pagerank"


RANK = Feature("rank", "u4", look_up, identify, is_rank=lambda config: True)
RANKS_FILE = PolicyFile(FILE_KEY, convert)
POLICY = Policy(lambda of: of.rows["rank"], features=(RANK,), check=check, files=(RANKS_FILE,))
