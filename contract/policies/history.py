"""history: the largest rank of an earlier crawl first; a rule says what rank a URL has that it does not know.

J. Cho, H. Garcia-Molina and L. Page, "Efficient crawling through URL ordering", WWW 1998, show what an order by known
ranks is worth. The ITMO thesis takes those of an earlier crawl, and compares four rules for URLs that this one did not
know, which [scheduler] unknown_rank names:
- parent: the ranks of the pages that link to it, each divided by that page's number of targets. The parents keep their
  ranks (accumulator `inherited`). The default: the only rule by which what this crawl finds out puts new URLs in order.
- zero: they come last.
- drawn: a rank that is drawn from all known ones, by the URL's key and [scheduler] seed.
- oracle: the true rank, from [scheduler] oracle_file. Nobody has that before a crawl: it is for simulations and
  experiments, which show what the other rules lose.
The feature `past_rank` has the rank as a float of 32 bits, in units of which the largest known rank has 2^32, so that
parents can divide it as an integer. A known rank is at least one unit; 0 stands for unknown.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from contract.config import Config
from contract.policies.pagerank import FILE_KEY, RANKS_FILE, find_ranks, ranks_of
from contract.policies.policy import Candidates, Column, Feature, Policy, PolicyFile, Scores, Urls, largest_first
from contract.policies.random_order import RANK_OF_UNKNOWN, draw
from contract.rank_files import LARGEST, convert

ORACLE_KEY = "scheduler.oracle_file"
LARGEST_UNITS = 2.0**32
PARENT, ZERO, DRAWN, ORACLE = "parent", "zero", "drawn", "oracle"


def look_up(urls: Urls) -> Column:
    """Bits of the rank in units; 0 where neither the file nor the rule has one."""
    ranks, rule = ranks_of(urls, FILE_KEY), urls.config.scheduler.unknown_rank
    found, is_known = find_ranks(urls, ranks)
    unknown = np.flatnonzero(~is_known)
    if rule == DRAWN and len(ranks):
        drawn = draw(urls.key[unknown], urls.config.scheduler.seed, RANK_OF_UNKNOWN)
        found[unknown], is_known[unknown] = ranks["rank"][drawn % np.uint64(len(ranks))], True
    elif rule == ORACLE:
        true, is_true = find_ranks(urls, ranks_of(urls, ORACLE_KEY))
        found[unknown], is_known[unknown] = true[unknown], is_true[unknown]
    largest = float(ranks["rank"].max(initial=0)) or 1.0
    units = np.clip(found.astype(np.float64) / largest * LARGEST_UNITS, 1, LARGEST)  # true ranks may be far larger
    return np.where(is_known, largest_first(units), np.uint32(0))


def identify(config: Config, files: Mapping[str, Path]) -> str:
    settings = config.scheduler
    more = {DRAWN: str(settings.seed), ORACLE: files[ORACLE_KEY].name if ORACLE_KEY in files else ""}
    return " ".join((files[FILE_KEY].name, settings.unknown_rank, more.get(settings.unknown_rank, "")))


def tells_unknown(config: Config) -> bool:
    """Whether the feature tells URLs that the file knows from others; the other rules give those a rank as well."""
    return config.scheduler.unknown_rank in (PARENT, ZERO)


def inherits(of: Candidates) -> bool:
    return of.config.scheduler.unknown_rank == PARENT


def score(of: Candidates) -> Scores:
    known: Scores = of.rows["past_rank"]
    return np.where(known > 0, known, largest_first(of.rows["inherited"])) if inherits(of) else known


def hand_on(of: Candidates) -> npt.NDArray[np.uint64]:
    """A page's known rank, or else what it inherited."""
    if not inherits(of):
        return np.zeros(len(of), np.uint64)
    known = of.rows["past_rank"]
    return np.where(known > 0, known.view(np.float32).astype(np.uint64), of.rows["inherited"])


def check(config: Config) -> str:
    settings = config.scheduler
    if not settings.ranks_file:
        return f"{FILE_KEY}: expected a file of ranks of an earlier crawl for the policy history"
    if settings.unknown_rank == ORACLE and not settings.oracle_file:
        return f"{ORACLE_KEY}: expected a file of true ranks for scheduler.unknown_rank = {ORACLE!r}"
    if settings.unknown_rank != ORACLE and settings.oracle_file:
        return f"scheduler.unknown_rank: expected {ORACLE!r} beside {ORACLE_KEY}, found {settings.unknown_rank!r}"
    return ""


PAST_RANK = Feature("past_rank", "u4", look_up, identify, is_rank=tells_unknown)
POLICY = Policy(
    score,
    columns=("inherited",),
    features=(PAST_RANK,),
    varies=True,  # with the rule parent
    hands_on={"inherited": hand_on},
    check=check,
    files=(RANKS_FILE, PolicyFile(ORACLE_KEY, convert)),
)
