"""Our crawl as it is measured: bin/crawl --until-done in a fresh folder, as a process of its own."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.processes import Spent, run_child
from bench.ring.web import Web
from contract import names
from contract.crawl_folder import open_folder
from contract.log import KINDS, replay
from storage.publish import read_manifest

LIMIT_S = 900.0
COLD = ("env", "COLETOR_COLD=1")  # each stage is a new process, not a fork of the warm one
WITHOUT_PAUSES = ("fetcher.delay_s=0.0", "fetcher.delay_response_factor=0.0")
SEQUENTIAL = ("supervisor.cycles_in_flight=1",)
TUNED = ("fetcher.sync_every_pages=1000",)


class Crawled(NamedTuple):
    """What the crawl's own files say."""

    cycles: int
    answered: int


@dataclass(frozen=True)
class Ours:
    """One way to run our crawl; the folder of its last run stays, for its journal."""

    folder: Path
    settings: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()

    @property
    def crawl(self) -> Path:
        return self.folder / "crawl"

    def run(self, web: Web, settings: tuple[str, ...] = WITHOUT_PAUSES) -> Spent:
        """Seeds are left in the inbox before; taking them in is part of the crawl."""
        self.seed(web.seeds, web.hosts_file, settings)
        return run_child(self.command("--until-done"), self.folder / "crawl.log", limit_s=LIMIT_S)

    def seed(self, urls: list[str], hosts_file: Path, settings: tuple[str, ...]) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        seeds = self.folder / "seeds"
        seeds.write_text("".join(f"{url}\n" for url in urls))
        chosen = (
            "fetcher.contact=https://bench.test/",
            "fetcher.allow_private_addresses=true",
            f"fetcher.hosts_file={hosts_file}",
            'scope.accept_suffixes=["test"]',
            *settings,
            *self.settings,
        )
        options = [word for setting in chosen for word in ("--set", setting)]
        command = [sys.executable, "-P", "-m", "supervise.seed", "--file", seeds, "--crawl", self.crawl, *options]
        run_child(command, self.folder / "seed.log")

    def command(self, *options: str) -> list:
        return [*self.prefix, sys.executable, "-P", "-m", "supervise.crawl", *options, "--crawl", self.crawl]

    def crawled(self) -> Crawled:
        log = replay(self.crawl, open_folder(self.crawl).blocks_first)
        cycles = [entry.cycle for entry in log.entries if entry and KINDS[entry.kind].fetches]
        answered = sum(
            read_manifest(self.crawl / names.cycle(cycle) / names.FETCHER)["counts"]["answered"] for cycle in cycles
        )
        return Crawled(len(cycles), answered)
