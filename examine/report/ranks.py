"""A file of ranks, as bin/graph rank writes it: a URL or server, a blank, and its rank on each line."""

import heapq
import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.errors import BadInput
from contract.generation import BLOCK_SERVERS, SERVERS_FILE
from contract.log_summary import read_log
from contract.terminal import make_plain
from contract.url import NotCanonical, canonicalise, server_of
from examine.report.known import TOP
from storage.tables import column, read_table

LINE_MAX_BYTES = 1 << 16


@dataclass
class Ranks:
    best: list[tuple[str, float]] = field(default_factory=list)
    decades: Counter[int] = field(default_factory=Counter)  # n: ranks from 10**n on -> lines
    zeros: int = 0

    def rows(self) -> list[tuple[str, int]]:
        """The distribution, from the smallest ranks on."""
        rows = [("0", self.zeros)] if self.zeros else []
        return rows + [(f"1e{n} \N{EN DASH} 1e{n + 1}", self.decades[n]) for n in sorted(self.decades)]


def read_ranks(path: Path, crawl: CrawlFolder) -> Ranks:
    """BadInput where a line is none of ranks, or where the best ones are of no server that this crawl knows."""
    ranks, best = Ranks(), []
    with open(path, "rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LINE_MAX_BYTES), b""), 1):
            if not line.strip() or line.startswith(b"#"):
                continue
            name, rank = parse(path, number, line)
            if rank:
                ranks.decades[math.floor(math.log10(rank))] += 1
            else:
                ranks.zeros += 1
            if len(best) < TOP:
                heapq.heappush(best, (rank, name))
            elif rank > best[0][0]:
                heapq.heapreplace(best, (rank, name))
    found = sorted(best, key=lambda pair: (-pair[0], pair[1]))
    if found and not any_known([name for _, name in found], crawl):
        raise BadInput(
            f"{path}: expected ranks of this crawl's URLs or servers, found none of its {len(found)} best in "
            f"{crawl.path}: name a file that bin/graph rank made of this crawl"
        )
    ranks.best = [(make_plain(name), rank) for rank, name in found]
    return ranks


def parse(path: Path, number: int, line: bytes) -> tuple[str, float]:
    name, _, rank = line.decode("utf-8", "replace").strip().rpartition(" ")
    try:
        value = float(rank)
        if not name or not 0 <= value < math.inf:
            raise ValueError(rank)
    except ValueError:
        shown = make_plain(line[:100])
        raise BadInput(f"{path}: line {number}: expected a URL, a blank and its rank, found {shown}") from None
    return name, value


def any_known(found: list[str], crawl: CrawlFolder) -> bool:
    """Whether the server of one of these URLs or servers is in a live generation."""
    keys, wanted = crawl.keys(), set()
    for name in found:
        try:
            wanted.add(keys.of(server_of(canonicalise(name))))
        except (NotCanonical, ValueError):
            continue
    log = read_log(crawl)
    for block in range(log.blocks):
        number = log.generation(block)
        if number is None:
            continue
        table = crawl.path / names.generation(block, number) / SERVERS_FILE
        if wanted & set(column(read_table(table, BLOCK_SERVERS, ["server_key"]), "server_key").tolist()):
            return True
    return False
