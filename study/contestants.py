"""The orders that a study compares: any policy or mix, and `omniscient`, which knows the true ranks.

Policies that read a file of ranks get those of an earlier crawl: it fetched a share of the pages, breadth-first from
the same seeds, and knows the PageRank in that part of the graph. `omniscient` is the policy `pagerank` with true ranks,
which history with `unknown_rank = "oracle"` gets too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from contract.config import Config, in_words, lookup
from contract.errors import BadConfiguration
from contract.policies import POLICIES, parts_of, policy_of
from contract.policies.history import FILE_KEY as RANKS_KEY
from contract.policies.history import ORACLE, ORACLE_KEY
from contract.policies.mix import BadMix
from contract.policies.policy import PolicyFile
from contract.rank_files import RANKS
from contract.url import Keys
from study.collection import Collection, Values
from study.graphs import Rows, breadth_first
from study.pagerank import pagerank

OMNISCIENT, RANDOM = "omniscient", "random"
EARLIER = 0.5  # the share of the pages that the earlier crawl fetched
# What these order by is in URLs or in servers, which a graph without URLs does not have.
NEEDS_URLS = frozenset(
    in_words("shortest-path server-size response-time new-domains spread neural neural-graph common-crawl focused")
)
# focused orders by a topic, not by rank; pagerank with the ranks of an earlier crawl is the first half of history.
LEFT_OUT = ("focused", "pagerank")


@dataclass(frozen=True)
class Contestant:
    name: str
    config: Config
    files: Mapping[str, Path]


def check_names(names: list[str], config: Config) -> None:
    """BadConfiguration for a name that is neither a policy nor a mix nor omniscient."""
    for name in names:
        try:
            if name != OMNISCIENT:
                parts_of(with_policy(config, name))
        except BadMix as error:
            raise BadConfiguration(f"--policies: {error}, or {OMNISCIENT}") from None


def default_names() -> list[str]:
    return [OMNISCIENT, *(name for name in POLICIES if name not in LEFT_OUT)]


def parts_named(names: list[str], config: Config) -> set[str]:
    """The policies of which these orders consist."""
    return {part.name for name in names for part in parts_of(with_policy(config, name))}


def with_policy(config: Config, name: str) -> Config:
    return replace(config, scheduler=replace(config.scheduler, policy="pagerank" if name == OMNISCIENT else name))


def enter(
    name: str, collection: Collection, config: Config, folder: Path, seed: int, earlier: float = EARLIER
) -> Contestant | None:
    """With its files, made in the folder; None where it needs URLs and there are none."""
    config = with_policy(config, name)
    if not collection.has_urls and any(part.name in NEEDS_URLS for part in parts_of(config)):
        return None
    files = {}
    for file in policy_of(config).files:
        if path := provide(file, name, collection, config, folder, earlier):
            files[file.key] = path
    for key, path in files.items():
        section, _, field = key.partition(".")
        config = replace(config, **{section: replace(getattr(config, section), **{field: str(path)})})
    config = replace(config, scheduler=replace(config.scheduler, seed=seed))
    if problem := policy_of(config).check(config):
        raise BadConfiguration(f"--policies: {name}: {problem}; give it with --set, or name other policies")
    return Contestant(name, config, files)


def provide(
    file: PolicyFile, name: str, collection: Collection, config: Config, folder: Path, earlier: float
) -> Path | None:
    """The copy of a file that a policy reads: of what the configuration names, else of ranks, else of its default."""
    given = lookup(config, file.key)
    if given or file.key not in (RANKS_KEY, ORACLE_KEY):
        path = Path(given) if given else file.default
        return convert(file, path, collection.keys or Keys(0), folder) if path else None
    if file.key == ORACLE_KEY and config.scheduler.unknown_rank != ORACLE:
        return None
    part = 1.0 if file.key == ORACLE_KEY or name == OMNISCIENT else earlier
    return write_ranks(collection, *known_ranks(collection, part), folder)


def known_ranks(collection: Collection, part: float) -> tuple[Rows, Values]:
    """The rows that a crawl of this part of the pages fetched, and their ranks there; of all pages the true ranks."""
    if part == 1:
        return np.arange(len(collection)), collection.ranks
    rows = np.sort(breadth_first(collection.graph, collection.graph.seeds, round(part * len(collection))))
    return rows, pagerank(collection.graph.take(rows))


def write_ranks(collection: Collection, rows: Rows, ranks: Values, folder: Path) -> Path:
    """The copy of a file of ranks, as contract/rank_files.py makes it of a text: the rank of each of these pages."""
    copy = np.empty(len(rows), RANKS)
    copy["key"], copy["rank"] = collection.key[rows], ranks * len(rows)
    copy.sort(order="key")
    path = folder / f"{blake2b(copy.tobytes(), digest_size=16).hexdigest()}.npy"
    np.save(path, copy)
    return path


def convert(file: PolicyFile, path: Path, keys: Keys, folder: Path) -> Path:
    try:
        content = file.convert(path, path.read_bytes(), keys)
    except OSError as error:
        raise BadConfiguration(f"{file.key}: expected a file, found {path} ({error.strerror})") from None
    copy = folder / f"{blake2b(content, digest_size=16).hexdigest()}{file.suffix}"
    copy.write_bytes(content)
    return copy
