"""neural: the largest rank that a network gives to the URL's text, then the fewest links from a seed.

The order of the crawler of the ITMO thesis, which ranks a page before it is fetched (contract/qrank/). That a URL alone
says much about its page was shown by M.-Y. Kan and H. O. Nguyen Thi, "Fast webpage classification using URL features",
CIKM 2005.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from contract.config import Config
from contract.policies.policy import Candidates, Column, Feature, Policy, PolicyFile, Scores, Urls, smallest_first
from contract.qrank.network import LEVEL_MAX
from contract.qrank.weights import SHIPPED, SUFFIX, convert, read_weights

FILE_KEY = "scheduler.weights_file"


def compute_levels(urls: Urls) -> Column:
    return read_weights(urls.files[FILE_KEY]).levels(urls.lines)


def identify(config: Config, files: Mapping[str, Path]) -> str:
    return files[FILE_KEY].name


def score(of: Candidates) -> Scores:
    return smallest_first((LEVEL_MAX - of.rows["qrank"].astype(np.uint32)) << 8 | of.rows["depth"], 16)


QRANK = Feature("qrank", "u1", compute_levels, identify)
WEIGHTS_FILE = PolicyFile(FILE_KEY, convert, SUFFIX, SHIPPED)
POLICY = Policy(score, columns=("depth",), features=(QRANK,), files=(WEIGHTS_FILE,))
