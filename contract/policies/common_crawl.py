"""common-crawl: page score + days since the last visit - days since a page last linked to it - penalty.

So Common Crawl makes its fetch lists, as S. Nagel described it in the group common-crawl, September 2022 ("Questions
about using Common Crawl for another Hugging Face project"): take the page score, add a small value for every day since
the last fetch (more for a URL that was never seen), subtract one for every day since the URL was last seen as a link,
subtract a penalty for a 404 and its like. He also says that each domain has a limit of its own, by its rank in harmonic
centrality. The numbers are not published. Ours, in days:
- page score: 30 for each doubling of 1 + links_in. A URL without links has 0, and so no other penalty for that.
- since the last visit: as they are; a URL that was never visited counts as not seen for a year.
- since a page last linked to it (`linked_day`): as they are; none for a URL that no page links to, as a seed.
- penalty: 60 for each attempt that failed, 5 for each path segment. Pages that are gone or do not change are the
  business of [revisit], which asks them less often.
Left out: the least score of a list (ours takes the best that wait), and the chance in which new URLs are taken in.

Budget: the domain at position p of [scheduler] centralities_file keeps centrality_urls_max / sqrt(p) URLs, at least
centrality_urls_min, which is also the budget of domains that the file does not name. Without a file there is none.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from contract.accumulators import DAY_MS
from contract.centrality_files import SUFFIX, convert, read_positions
from contract.config import Config
from contract.policies.policy import LARGEST, Candidates, Policy, PolicyFile, Scores
from contract.policies.shortest_path import LEVELS

FILE_KEY = "scheduler.centralities_file"
DOUBLING_DAYS, NEVER_SEEN_DAYS, ATTEMPT_DAYS, LEVEL_DAYS = 30, 365, 60, 5
DAY_S = DAY_MS // 1000
ZERO_DAYS = 1 << 16  # what is added so that no score is below 0
UNITS_PER_DAY = 1 << 15  # 2^17 days fit into 32 bits


def score(of: Candidates) -> Scores:
    rows, today = of.rows, of.now_ms // DAY_MS
    linked_day = rows["linked_day"].astype(np.int64)
    days = DOUBLING_DAYS * np.log2(1 + rows["links_in"].astype(np.float64))
    days += np.where(of.seen_s > 0, np.maximum(of.now_ms / 1000 - of.seen_s, 0) / DAY_S, NEVER_SEEN_DAYS)
    days -= np.where(linked_day > 0, np.maximum(today - linked_day, 0), 0)
    days -= ATTEMPT_DAYS * rows["attempts"].astype(np.int64) + LEVEL_DAYS * rows["levels"].astype(np.int64)
    scores: Scores = np.clip(np.rint((days + ZERO_DAYS) * UNITS_PER_DAY), 0, LARGEST).astype(np.uint32)
    return scores


def limit_domains(
    config: Config, files: Mapping[str, Path], domain_keys: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64] | None:
    """Maximum URLs of each of these domains, i64; None without a file."""
    if FILE_KEY not in files:
        return None
    least, most = config.scheduler.centrality_urls_min, config.scheduler.centrality_urls_max
    positions = read_positions(files[FILE_KEY])
    urls = np.full(len(domain_keys), least, np.int64)
    at = np.searchsorted(positions["key"], domain_keys)
    there = at < len(positions)
    there[there] = positions["key"][at[there]] == domain_keys[there]
    position = positions["position"][at[there]].astype(np.float64)
    urls[there] = np.maximum(most / np.sqrt(position), least).astype(np.int64)
    return urls


POLICY = Policy(
    score,
    columns=("links_in", "linked_day", "attempts"),
    features=(LEVELS,),
    varies=True,
    domain_urls=limit_domains,
    files=(PolicyFile(FILE_KEY, convert, SUFFIX),),
)
