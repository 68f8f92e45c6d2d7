"""The peers: wrk, which only asks, and Scrapy with the setting that is best for it."""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from bench.processes import Spent, run_child
from contract.errors import TryLater

WRK_CONNECTIONS = 200

WRK_SCRIPT = """\
local requests, turn = {{}}, 0
function init(arguments)
    for path in io.lines("{paths}") do requests[#requests + 1] = wrk.format("GET", path) end
end
function request()
    turn = turn % #requests + 1
    return requests[turn]
end
"""


def run_wrk(url: str, paths: list[str], duration_s: int, folder: Path) -> float:
    """Pages per second that nginx gives to wrk, one thread, the pages in turn."""
    (folder / "paths").write_text("".join(f"{path}\n" for path in paths))
    (folder / "wrk.lua").write_text(WRK_SCRIPT.format(paths=folder / "paths"))
    output = folder / "wrk.out"
    command = ["wrk", "-t", 1, "-c", WRK_CONNECTIONS, "-d", f"{duration_s}s", "-s", folder / "wrk.lua", url]
    run_child(command, folder / "wrk.log", output, limit_s=duration_s + 60)
    return read_wrk(output.read_text())


def read_wrk(text: str) -> float:
    """The rate in what wrk prints; answers other than 200 are not a measurement."""
    rate = re.search(r"^Requests/sec:\s+([\d.]+)$", text, re.M)
    if not rate or "Non-2xx" in text:
        raise TryLater(f"wrk: expected a rate and only answers of 200, found: {' '.join(text.split())[-200:]}")
    return float(rate[1])


class Setting(NamedTuple):
    reactor: str  # asyncio or epoll
    concurrency: int


class Scrapy:
    """Scrapy on parts of one list; what it takes to start, with one URL, is left out of its times."""

    def __init__(self, urls: list[str], folder: Path, build: str = "lean", setting: Setting = Setting("asyncio", 16)):
        self._urls = urls
        self._folder = folder
        self._build = build
        self.setting = setting
        self.start = Spent(0.0, 0.0)

    def tune(self, pages: int, concurrencies: tuple[int, ...]) -> dict[Setting, float]:
        """Chooses the setting with the highest rate; the rates of all."""
        settings = [Setting(reactor, concurrency) for reactor in ("asyncio", "epoll") for concurrency in concurrencies]
        rates = {}
        self._run(1)  # the first start of all compiles modules and reads them from disk
        for self.setting in settings:
            start = self._run(1)
            spent = self._run(pages)
            rates[self.setting] = pages / max(0.001, spent.wall_s - start.wall_s)
        self.setting = max(rates, key=rates.get)
        self.learn_start()
        return rates

    def learn_start(self) -> None:
        self.start = self._run(1)

    def run(self, pages: int) -> Spent:
        spent = self._run(pages)
        return Spent(spent.wall_s - self.start.wall_s, spent.cpu_s - self.start.cpu_s)

    def _run(self, pages: int) -> Spent:
        listed, bodies, printed = (self._folder / name for name in ("scrapy.urls", "scrapy.bodies", "scrapy.out"))
        bodies.unlink(missing_ok=True)
        listed.write_text("".join(f"{url}\n" for url in self._urls[:pages]))
        command = [sys.executable, "-P", "-m", "bench.fetcher.scrapy_peer", listed, bodies, *self.setting, self._build]
        spent = run_child(command, self._folder / "scrapy.log", printed, limit_s=600)
        if (stored := int(printed.read_text() or 0)) != pages:
            raise TryLater(f"Scrapy stored {stored} pages of {pages}")
        bodies.unlink()
        return spent
