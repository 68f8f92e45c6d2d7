"""new-domains: as many registered domains as possible, by few pages of each.

E. Valle, UFMG (a seed crawler for the Brazilian Web). Domains with the most mentions come first: links to them from
pages of other domains. Of each the best URL is taken, by its length, its path segments, and the patterns of
[scheduler] bonus_patterns and penalty_patterns. A domain gives one page at a time. With i of its pages visited and N
links to other registered domains on page i, the crawl goes on there while 2^i <= N; then the domain is closed for good.
So after the first page N must be at least 2. `close_domains` decides that when a page was read.
"""

import numpy as np

from contract.config import Config
from contract.patterns import find_any
from contract.policies.policy import Candidates, Column, Feature, Policy, Scores, Urls, largest_first
from contract.url_paths import path_levels
from storage.text_segments import data_of

BEST, LENGTH_MAX, PER_LEVEL, BONUS, PENALTY = 2_000, 500, 50, 400, 200
PROMISE_SHIFT = np.uint32(4)  # the largest promise has 12 bits: those below it are room for weights of [[priority]]
PAGES_MAX = 62  # 2^i has to fit into 64 bits


def judge_text(urls: Urls) -> Column:
    """How promising each URL looks: 1 to 2,400, larger is better."""
    length = np.minimum(np.diff(data_of(urls.lines)[0]) - 1, LENGTH_MAX)
    score = BEST - length - PER_LEVEL * path_levels(urls.lines).astype(np.int64)
    settings = urls.config.scheduler
    for patterns, points in ((settings.bonus_patterns, BONUS), (settings.penalty_patterns, -PENALTY)):
        if patterns:
            score += points * find_any(urls.lines, patterns)
    return np.clip(score, 1, BEST + BONUS).astype(np.uint16)


def identify(config: Config, files: object) -> str:
    return repr((config.scheduler.bonus_patterns, config.scheduler.penalty_patterns))


def score(of: Candidates) -> Scores:
    """Mentions of the domain in the upper half, the text's score in the lower."""
    mentions = largest_first(of.domain("mentions")) >> np.uint32(16)
    return mentions << np.uint32(16) | of.rows["promise"].astype(np.uint32) << PROMISE_SHIFT


def close_domains(visited: Column, links_other_domains: Column) -> Column:
    """Which domains are closed: given how many pages of each were visited, and N of the last one."""
    return np.uint64(1) << np.minimum(visited, PAGES_MAX).astype(np.uint64) > links_other_domains.astype(np.uint64)


PROMISE = Feature("promise", "u2", judge_text, identify)
POLICY = Policy(score, features=(PROMISE,), is_gated=True)
