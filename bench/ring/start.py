"""How long the warm process needs from a request for a stage to the first line of its main()."""

import tempfile
from pathlib import Path
from statistics import median

import trio

from contract import names
from contract.config import Config
from contract.crawl_folder import create, hold_lock
from contract.log import CRAWL
from contract.plan import Plan
from supervise.crawl_state import CrawlState
from supervise.flights import Flight
from supervise.launch import Warm
from supervise.stage_process import Stages


def measure_start(count: int) -> dict:
    """Keys start_ms, the median, and start_max_ms. The first start, which waits for the imports, does not count."""
    with tempfile.TemporaryDirectory(prefix="coletor-start-") as folder:
        taken_ms = trio.run(start_stages, Path(folder) / "crawl", count)
    print(f"start: {len(taken_ms)} stages, from {min(taken_ms):.1f} to {max(taken_ms):.1f} ms", flush=True)
    return {"start_ms": round(median(taken_ms), 1), "start_max_ms": round(max(taken_ms), 1)}


async def start_stages(folder: Path, count: int) -> list[float]:
    """Milliseconds of each start. The stages find no plan of their cycle, and end at once."""
    crawl, config, taken_ms = create(folder, 1), Config(), []
    lock = hold_lock(crawl)
    async with trio.open_nursery() as nursery:
        warm = Warm(crawl.path, lock, nursery, config.supervisor, lambda line: None, lambda code: None)
        stages = Stages(CrawlState(crawl), warm, config.supervisor, lambda cycle: None, lambda *line: None)
        for number in range(count + 1):
            flight = Flight(Plan(number, CRAWL, 0, 1, None, 0, config))
            await stages.run(names.STAGES[number % len(names.STAGES)], flight)
            taken_ms.append(flight.start_ms)
        nursery.cancel_scope.cancel()
    warm.close()
    return taken_ms[1:]
