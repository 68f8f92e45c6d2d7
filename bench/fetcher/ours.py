"""The fetcher as it is measured: its own process on a list, with its time, its CPU and the times in its records."""

import json
import shutil
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.processes import Child, Spent, run_child
from contract import names, warc
from contract.errors import TryLater

STARTS = 3  # runs with one URL; their median is what starting and ending takes

SETTINGS = ("fetcher.contact=https://bench.test/", "fetcher.allow_private_addresses=true", "fetcher.cycle_max_s=1800.0")
WITHOUT_PAUSES = ("fetcher.delay_s=0.0", "fetcher.delay_response_factor=0.0")


class Answer(NamedTuple):
    url: str
    began_at_ms: int
    ended_at_ms: int


class Ours:
    """Runs of the fetcher in one scratch folder, each with a fresh output folder."""

    def __init__(self, folder: Path, name_setting: str):
        self.folder = folder
        self.pages = folder / "pages"
        self._name_setting = name_setting
        self.start = Spent(0.0, 0.0)

    def command(
        self, urls: list[str], settings: tuple[str, ...] = WITHOUT_PAUSES, runner: tuple = ("-m", "stages.fetcher")
    ) -> list:
        """The command that bin/fetcher becomes, on a new list and an empty output folder."""
        shutil.rmtree(self.pages, ignore_errors=True)
        listed = self.folder / "urls.txt"
        listed.write_text("".join(f"{url}\n" for url in urls))
        options = [word for setting in (*SETTINGS, self._name_setting, *settings) for word in ("--set", setting)]
        return [sys.executable, "-P", *runner, listed, "--out", self.pages, *options]

    def learn_start(self, url: str) -> None:
        self.run_whole([url])  # the first start of all compiles modules and reads them from disk
        spent = [self.run_whole([url]) for _ in range(STARTS)]
        self.start = Spent(median(one.wall_s for one in spent), median(one.cpu_s for one in spent))

    def run_whole(self, urls: list[str]) -> Spent:
        """Fetches the list; every URL must have been answered."""
        spent = run_child(self.command(urls), self.folder / "fetcher.log")
        counts = json.loads((self.pages / names.MANIFEST).read_text())["counts"]
        if counts["answered"] != len(urls):
            raise TryLater(f"the fetcher got answers for {counts['answered']} of {len(urls)} URLs")
        return spent

    def run(self, urls: list[str]) -> Spent:
        """The same, without what starting and ending takes."""
        spent = self.run_whole(urls)
        return Spent(spent.wall_s - self.start.wall_s, spent.cpu_s - self.start.cpu_s)

    def begin(self, urls: list[str], settings: tuple[str, ...]) -> Child:
        return Child(self.command(urls, settings), self.folder / "fetcher.log")

    def stored_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._files())

    def answers(self) -> list[Answer]:
        """When each answer on record was asked for and was there, robots.txt included."""
        found = []
        for path in self._files():
            for record in warc.PageReader(path).records():
                if record.type in warc.ANSWERS:
                    began_at_ms = warc.parse_date(record.get("WARC-Date"))
                    total_ms = warc.parse_times(record.get(warc.TIMES)).get("total", 0)
                    found.append(Answer(record.url, began_at_ms, began_at_ms + total_ms))
        return found

    def _files(self) -> list[Path]:
        return sorted((self.pages / names.PAGES).glob("*.warc*"))
