"""What a cycle in flight is doing, for people: how far its stage is, in words, and when it will end.

Figures are those that the running stage reported (contract/stage.py), so that counters belong to the stage that they
stand beside. The display and `live.json` share these views. Pure: moments are arguments.
"""

from dataclasses import dataclass, replace

from contract import names
from contract.units import count, duration
from supervise.flights import Flight, Flights
from supervise.pace import Pace
from supervise.run_counts import RunCounts

VERBS = {
    names.SCHEDULER: "scheduling",
    names.FETCHER: "fetching",
    names.EXTRACTOR: "extracting",
    names.VERIFIER: "verifying",
}
POLITENESS_FROM_MS = 500  # shorter waits for politeness are not worth a word
ETA_WINDOW_S = 30.0
PACE_LEAST_S = 1.0  # a pace over a shorter time says nothing


@dataclass(frozen=True)
class FlightView:
    """One row: a stage at work has a share of its work done, a waiting cycle has none."""

    cycle: int
    block: str  # of how many, as in 2/8
    verb: str  # what is being done; empty while the cycle waits
    text: str  # figures, or what the cycle waits for
    share: float | None = None  # of the stage's work that is done, 0 to 1; none where it is not known
    is_wait: bool = False  # nothing is being done now
    eta_s: float | None = None  # until the stage ends, at its present pace

    def describe(self) -> str:
        """The row as one text, without cycle and block."""
        eta = f", ends in about {duration(round_s(self.eta_s))}" if self.eta_s is not None else ""
        return f"{self.verb}: {self.text}{eta}" if self.verb and self.text else self.verb + self.text + eta


class Views:
    """Views of all cycles in flight; remembers how fast each stage is."""

    def __init__(self) -> None:
        self._paces: dict[tuple[int, str, int], Pace] = {}  # of (cycle, stage, attempt)

    def look(self, flights: Flights, now_s: float) -> list[FlightView]:
        """`now_s` is a moment of time.monotonic()."""
        seen = list(flights.flights.values())  # a copy: the ring changes it while the display's thread looks
        keys = {(flight.plan.cycle, flight.stage, flight.attempt) for flight in seen}
        self._paces = {key: pace for key, pace in self._paces.items() if key in keys}
        return [self._view(flight, now_s) for flight in seen]

    def _view(self, flight: Flight, now_s: float) -> FlightView:
        view = FlightView(flight.plan.cycle, f"{flight.plan.block}/{flight.plan.blocks}", "", "")
        if not flight.is_running:
            return replace(view, text=describe_wait(flight, now_s), is_wait=True)
        view = replace(view, verb=VERBS.get(flight.stage, flight.stage))
        if flight.stage == names.FETCHER and (wait := describe_fetcher_wait(flight.figures)):
            return replace(view, text=wait, share=share_of(*work_of(flight)), is_wait=True)
        done, total = work_of(flight)
        if not total:
            return view
        pace = self._paces.setdefault((flight.plan.cycle, flight.stage, flight.attempt), Pace(ETA_WINDOW_S, 0.5))
        pace.note(now_s, done)
        (per_s,) = pace.per_s()
        is_known = pace.covers_s >= PACE_LEAST_S
        eta_s = (total - done) / per_s if per_s > 0 and is_known else None
        if "left_s" in flight.figures and eta_s is not None:
            eta_s = min(eta_s, figure(flight.figures, "left_s"))  # [fetcher] cycle_max_s ends it
        text = describe_work(flight, done, total, per_s if is_known else None)
        return replace(view, text=text, share=share_of(done, total), eta_s=eta_s)


def describe_wait(flight: Flight, now_s: float) -> str:
    if not flight.stage:
        return "waits for its first stage"
    so_far = f" ({duration(round_s(max(0.0, now_s - flight.stage_began)))} so far)" if flight.stage_began else ""
    if flight.attempt:
        return f"waits before attempt {flight.attempt + 1} of the {flight.stage}{so_far}"
    return f"waits for the {flight.stage}{so_far}"


def describe_fetcher_wait(figures: dict) -> str:
    """Why a fetcher that is at work sends no request now; empty where it does."""
    if outage_s := figure(figures, "outage_s"):
        return f"our network has been down for {duration(outage_s)}: no URL is charged"
    next_ms = figure(figures, "next_ms")
    if figure(figures, "transfers") == 0 and figure(figures, "lookups") == 0 and next_ms >= POLITENESS_FROM_MS:
        hosts = figure(figures, "hosts")
        rest = f"{count(hosts, 'host')} rest{'s' if hosts == 1 else ''}"
        return f"waits for politeness: {rest}, the next in {duration(round_s(next_ms / 1000))}"
    return ""


def work_of(flight: Flight) -> tuple[int, int]:
    """How much of its work the running stage has done, and how much there is; (0, 0) where it is not known."""
    figures = flight.figures
    if flight.stage == names.FETCHER and "listed" in figures:
        return figure(figures, "listed") - figure(figures, "waiting"), figure(figures, "listed")
    if flight.stage == names.EXTRACTOR and "fetched" in figures:
        return min(figure(figures, "pages"), figure(figures, "fetched")), figure(figures, "fetched")
    if flight.stage == names.VERIFIER and "pieces" in figures:
        return figure(figures, "pieces_done"), figure(figures, "pieces")
    return 0, 0


def describe_work(flight: Flight, done: int, total: int, per_s: float | None) -> str:
    if flight.stage == names.VERIFIER:
        return f"{done:,} of {count(total, 'piece')}"
    noun = "page" if flight.stage == names.EXTRACTOR else "URL"
    parts = [f"{done:,} of {count(total, noun)}"]
    if per_s is not None:
        parts.append(f"{per_s:,.0f}/s")
    if failed := figure(flight.figures, "failed"):
        parts.append(f"{failed:,} failed")
    if transfers := figure(flight.figures, "transfers"):
        parts.append(f"{transfers:,} in flight")
    return ", ".join(parts)


def count_all(flights: Flights) -> RunCounts:
    """What the run has done, with the cycles in flight."""
    total = replace(flights.counts)
    for flight in list(flights.flights.values()):
        fetched = flight.counts.get(names.FETCHER)
        if not fetched and flight.stage == names.FETCHER:
            figures = flight.figures
            fetched = {
                "answered": figure(figures, "pages"),
                **{name: figure(figures, name) for name in ("failed", "refused", "bytes")},
            }
        for name in ("answered", "failed", "refused", "bytes") if fetched else ():
            setattr(total, name, getattr(total, name) + figure(fetched, name))
    return total


def share_of(done: int, total: int) -> float | None:
    return min(1.0, max(0.0, done / total)) if total > 0 else None


def figure(figures: dict, name: str) -> int:
    """A number that a stage reported; 0 where it did not."""
    value = figures.get(name)
    return value if type(value) is int else 0


def round_s(seconds: float) -> float:
    """Whole seconds: a display that counts in tenths is not readable."""
    return float(max(1, round(seconds))) if seconds > 0 else 0.0
