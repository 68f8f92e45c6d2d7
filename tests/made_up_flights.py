"""Cycles in flight for tests of what people see: made up, with a clock that stands still."""

from contract.config import Config
from contract.log import CRAWL
from contract.plan import Plan
from supervise.flights import Flight, Flights

NOW_S = 1_000.0
NOW_MS = 1_800_000_000_000


def make_plan(cycle: int, block: int = 0, blocks: int = 8, kind: str = CRAWL, config: Config = Config()) -> Plan:
    return Plan(cycle, kind, block, blocks, 1, 0, config)


def make_flight(cycle: int, stage: str, *, block: int = 0, waits: bool = False, attempt: int = 1, **figures) -> Flight:
    """A cycle whose stage has been at work, or that has waited, for 8 seconds."""
    process_id = 40_000 + cycle
    plan = make_plan(cycle, block)
    return Flight(plan, stage, not waits, attempt, NOW_S - 8, process_id, figures=figures)


def make_flights(*flights: Flight) -> Flights:
    return Flights(NOW_S - 60, NOW_MS - 60_000, {flight.plan.cycle: flight for flight in flights})


def every_kind() -> Flights:
    """One cycle per thing that a cycle can be doing."""
    return make_flights(
        make_flight(
            117, "fetcher", block=2, listed=2_000, waiting=1_200, pages=780, bytes=10_000_000, failed=12, refused=8,
            transfers=96, hosts=130, lookups=0, next_ms=0, left_s=500, outage_s=0,
        ),
        make_flight(118, "extractor", block=3, pages=750, fetched=1_000, bytes=5_000_000),
        make_flight(119, "verifier", block=0, pieces=5, pieces_done=2, known=1_000_000),
        make_flight(120, "scheduler", block=1),
        make_flight(
            121, "fetcher", block=5, listed=100, waiting=10, pages=90, bytes=1_000, failed=0, refused=0, transfers=0,
            hosts=12, lookups=0, next_ms=3_000, left_s=400, outage_s=0,
        ),
        make_flight(122, "extractor", block=6, waits=True, attempt=0),
        make_flight(123, "fetcher", block=7, waits=True, attempt=2),
        make_flight(124, "", block=4, waits=True, attempt=0),
    )  # fmt: skip
