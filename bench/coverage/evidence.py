"""What the crawl's own tables have of URLs: the links that lead there, and what became of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contract import names
from contract.config import LINK_KINDS
from contract.crawl_folder import open_folder
from contract.tables import COLLECTED, LINKS, METADATA
from storage.tables import column, read_table


@dataclass
class Evidence:
    """Of one URL. Kinds are those of the links that lead there, whether they are followed or not."""

    kinds: set[str] = field(default_factory=set)
    readers: set[str] = field(default_factory=set)  # what the pages with links that are followed were read as
    is_followed: bool = False
    is_nofollow: bool = False  # all links there say so
    outcome: str = ""  # in UrlsColetadas, with its reason
    reason: str = ""


class Books:
    """The tables of all cycles of a crawl."""

    def __init__(self, crawl: Path):
        self._keys = open_folder(crawl).keys()
        self._folders = [
            path
            for path in sorted((crawl / names.CYCLES).glob(f"*/{names.EXTRACTOR}"))
            if (path / names.MANIFEST).exists()
        ]
        self.collected: dict[str, tuple[str, str]] = {}
        self._readers: dict[int, str] = {}
        for folder in self._folders:
            table = read_table(folder / names.COLLECTED, COLLECTED, columns=["url", "outcome", "reason"]).to_pylist()
            self.collected |= {row["url"]: (row["outcome"], row["reason"]) for row in table}
            table = read_table(folder / names.METADATA, METADATA, columns=["url_key", "reader"])
            self._readers |= dict(zip(table.column("url_key").to_pylist(), table.column("reader").to_pylist()))

    @property
    def cycles(self) -> int:
        return len(self._folders)

    def of(self, urls: Iterable[str]) -> dict[str, Evidence]:
        """What is known of each; for those that no link leads to, nothing."""
        by_key = {self._keys.of(url): url for url in urls}
        found = {url: Evidence() for url in by_key.values()}
        wanted = np.fromiter(by_key, np.uint64, len(by_key))
        for folder in self._folders:
            table = read_table(folder / names.LINKS, LINKS)
            rows = table.filter(np.isin(column(table, "to_key"), wanted)).to_pylist()
            for row in rows:
                evidence = found[by_key[row["to_key"]]]
                evidence.is_nofollow = row["nofollow"] and (evidence.is_nofollow or not evidence.kinds)
                evidence.kinds |= {kind for bit, kind in enumerate(LINK_KINDS) if row["kinds"] >> bit & 1}
                if row["followed"]:
                    evidence.is_followed = True
                    evidence.readers.add(self._readers.get(row["from_key"], ""))
        for url, evidence in found.items():
            evidence.outcome, evidence.reason = self.collected.get(url, ("", ""))
        return found
