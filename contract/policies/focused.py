"""focused: URLs that have terms of a topic, and those that pages on the topic link to, first.

S. Chakrabarti, M. van den Berg and B. Dom, "Focused crawling: a new approach to topic-specific Web resource discovery",
1999: a link is worth following as far as the page that has it is on the topic ("soft focus"); and M. Hersovici et al.,
"The shark-search algorithm. An application: tailored Web site mapping", 1998, who judge text near the link too. Their
judges were trained or compared vectors of words. Ours counts how many different terms of [scheduler] terms_file a text
has: in the URL itself, and in the text of the pages that link to it (accumulator `relevance`, a sum, so the mean is
taken over `links_in`). A term in the URL counts as much as 8 in the pages. Without either the fewest links from a seed
come first.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from contract.config import Config
from contract.policies.policy import (
    DEPTHS,
    Candidates,
    Column,
    Feature,
    Policy,
    PolicyFile,
    Scores,
    Urls,
    largest_first,
)
from contract.terms import TermCounter, convert, read_terms
from contract.url_terms import TermTable

FILE_KEY = "scheduler.terms_file"
URL_TERM_WORTH = 8.0


def count_terms(urls: Urls) -> Column:
    if FILE_KEY not in urls.memory:
        urls.memory[FILE_KEY] = TermTable(read_terms(urls.files[FILE_KEY]))
    counts: Column = urls.memory[FILE_KEY].count(urls.lines)
    return counts


def identify(config: Config, files: Mapping[str, Path]) -> str:
    return files[FILE_KEY].name


def judge_text(files: Mapping[str, Path]) -> TermCounter:
    return TermCounter(read_terms(files[FILE_KEY]))


def score(of: Candidates) -> Scores:
    mean = of.rows["relevance"] / np.maximum(of.rows["links_in"], 1)
    return largest_first(URL_TERM_WORTH * of.rows["terms"] + mean) & ~DEPTHS | DEPTHS - of.rows["depth"]


def check(config: Config) -> str:
    return "" if config.scheduler.terms_file else f"{FILE_KEY}: expected a file of terms for the policy focused"


TERMS = Feature("terms", "u1", count_terms, identify)
POLICY = Policy(
    score,
    columns=("relevance", "links_in", "depth"),
    features=(TERMS,),
    varies=True,
    judge_text=judge_text,
    check=check,
    files=(PolicyFile(FILE_KEY, convert, ".txt"),),
)
