"""A file of ranks, as bin/graph rank writes it: a URL or server, a blank, and its rank on each line."""

import heapq
import math
import shlex
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.errors import BadInput
from contract.generation import BLOCK_SERVERS, SERVERS_FILE
from contract.log_summary import read_log
from contract.rank_files import crawl_of
from contract.terminal import make_plain
from contract.url import NotCanonical, canonicalise, server_of
from examine.report.known import TOP
from storage.tables import column, read_table

LINE_MAX_BYTES = 1 << 16
HEAD_MAX, HEAD_LINE_MAX = 4, 200  # lines, and characters of each
IDENTITY_MAX = 60  # characters of what a file says that it is of


@dataclass
class Ranks:
    best: list[tuple[str, float]] = field(default_factory=list)
    decades: Counter[int] = field(default_factory=Counter)  # n: ranks from 10**n on -> lines
    zeros: int = 0
    head: list[str] = field(default_factory=list)  # what the file says of itself, also whether it is partial

    def rows(self) -> list[tuple[str, int]]:
        """The distribution, from the smallest ranks on."""
        rows = [("0", self.zeros)] if self.zeros else []
        return rows + [(f"1e{n} \N{EN DASH} 1e{n + 1}", self.decades[n]) for n in sorted(self.decades)]


def read_ranks(path: Path, crawl: CrawlFolder) -> Ranks:
    """BadInput where a line is none of ranks, names another crawl, or where no server of the best ones is known."""
    ranks, best = Ranks(), []
    with open(path, "rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LINE_MAX_BYTES), b""), 1):
            if not line.strip() or line.startswith(b"#"):
                expect_own(path, crawl_of(line), crawl)
                if len(ranks.head) < HEAD_MAX and line.strip() and not ranks.decades:
                    ranks.head.append(make_plain(line[1:].decode("utf-8", "replace").strip()[:HEAD_LINE_MAX]))
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
            f"{crawl.path}; {advise(crawl)}"
        )
    ranks.best = [(make_plain(name), rank) for rank, name in found]
    return ranks


def expect_own(path: Path, crawl_id: str | None, crawl: CrawlFolder) -> None:
    if crawl_id not in (None, crawl.crawl_id):
        found = f"those of crawl {make_plain(crawl_id)[:IDENTITY_MAX]}"
        raise BadInput(f"{path}: expected ranks of crawl {crawl.crawl_id}, found {found}; {advise(crawl)}")


def advise(crawl: CrawlFolder) -> str:
    folder = shlex.quote(str(crawl.path))
    return f"make ranks of this crawl: bin/graph build --crawl {folder}, bin/graph rank --crawl {folder}"


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
