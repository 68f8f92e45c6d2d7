"""How fast a crawl works, which of its stages keeps it busy, and when it will be done. Pure: the clock is an argument.

The journal has one line per attempt of a stage. The pages of an attempt are spread evenly over its time, so a window
that begins or ends in the middle of an attempt gets its share of them.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from contract import names
from contract.journal_tail import Tail
from contract.units import count, duration, moment
from examine.run_files import Live

WINDOWS_S = {"minute": 60, "hour": 3_600, "day": 86_400}
ESTIMATE_LEAST_S = 60  # a rate over a shorter time is no base for an estimate
ESTIMATE_WINDOWS = ("hour", "day")
NOTHING_WAITS = "nothing is waiting"
NO_RUN = "no estimate: no run is at work, {urls} {wait}"
DUE_LATER = "no estimate: all that waits is due later, the first at {moment}"
AT_THIS_PACE = "about {time} for the {urls} that {wait}, at {rate} pages/s over {over}; new URLs make it longer"
TOO_SHORT = "no estimate: the journal covers less than a minute"
NO_PAGE = "no estimate: no page came in the time that the journal covers"
Interval = tuple[int, int]  # begin and end, ms


class Work(NamedTuple):
    """A span of time in which a stage was at work."""

    stage: str
    begin_ms: int
    end_ms: int
    pages: float = 0
    bytes: float = 0

    def share_in(self, begin_ms: int, end_ms: int) -> float:
        """Which part of it lies in a window."""
        if self.end_ms <= self.begin_ms:
            return 1.0 if begin_ms <= self.begin_ms < end_ms else 0.0
        inside_ms = min(self.end_ms, end_ms) - max(self.begin_ms, begin_ms)
        return max(0, inside_ms) / (self.end_ms - self.begin_ms)


@dataclass(frozen=True)
class Estimate:
    """When nothing will wait any more; `seconds` is none where there is no estimate, and the words say why."""

    seconds: float | None
    form: str  # the sentence, with the names of values; a report has its translation
    values: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.form.format(**self.values)


def list_work(tail: Tail, live: Live | None) -> list[Work]:
    """The work of the journal, and that of a live run's stages in progress.

    A fetcher that resumes counts the pages of earlier attempts too; each page counts once here.
    """
    seen: dict[int, tuple[float, float]] = {}  # cycle -> pages and bytes that earlier attempts had
    work = []
    for line in tail.stages:
        pages, answered = 0.0, 0.0
        if line["stage"] == names.FETCHER:
            pages, answered = count_new(seen, line["cycle"], line["pages"], line["bytes"])
        work.append(Work(line["stage"], line["begin_ms"], line["end_ms"], pages, answered))
    for cycle in live.cycles if live and live.is_alive else ():
        if not cycle["is_running"] or cycle["stage_began_at_ms"] is None:
            continue
        pages, answered = 0.0, 0.0
        if cycle["stage"] == names.FETCHER:
            figures = cycle["figures"]
            pages, answered = count_new(seen, cycle["cycle"], figures.get("pages"), figures.get("bytes"))
        work.append(Work(cycle["stage"], cycle["stage_began_at_ms"], live.written_at_ms, pages, answered))
    return work


def count_new(
    seen: dict[int, tuple[float, float]], cycle: int, pages: float | None, answered: float | None
) -> tuple[float, float]:
    before = seen.get(cycle, (0.0, 0.0))
    now = (max(before[0], pages or 0.0), max(before[1], answered or 0.0))
    seen[cycle] = now
    return now[0] - before[0], now[1] - before[1]


def measure_rates(work: list[Work], since_ms: int | None, live: Live | None, now_ms: int) -> dict[str, dict]:
    """Pages and bytes per second in each window; `covers_s` is shorter than the window where less is known."""
    rates = {}
    for name, length_s in WINDOWS_S.items():
        begin_ms = max(now_ms - length_s * 1000, now_ms if since_ms is None else since_ms)
        covers_s = (now_ms - begin_ms) / 1000
        shares = [(one, one.share_in(begin_ms, now_ms + 1)) for one in work if one.end_ms >= begin_ms]
        pages = sum(one.pages * share for one, share in shares)
        answered = sum(one.bytes * share for one, share in shares)
        if name == "minute" and live and live.is_alive:  # the run has counted them as they came
            covers_s = live.rates["covers_s"]
            pages, answered = (live.rates[rate] * covers_s for rate in ("pages_per_s", "bytes_per_s"))
        rates[name] = {
            "covers_s": round(covers_s, 1),
            "pages": round(pages),
            "bytes": round(answered),
            "pages_per_s": round(pages / covers_s, 3) if covers_s > 0 else None,
            "bytes_per_s": round(answered / covers_s, 1) if covers_s > 0 else None,
        }
    return rates


def share_busy_time(work: list[Work], now_ms: int, window_s: int = WINDOWS_S["hour"]) -> dict[str, float]:
    """The share of each kind of stage in the busy time of all stages in the window, the largest first."""
    busy: Counter[str] = Counter()
    for one in work:
        busy[one.stage] += one.share_in(now_ms - window_s * 1000, now_ms + 1) * (one.end_ms - one.begin_ms)
    total = busy.total()
    return {stage: round(spent / total, 4) for stage, spent in busy.most_common()} if total > 0 else {}


def estimate_end(
    waiting: int, rates: dict[str, dict], *, is_running: bool, due_ms: int | None, now_ms: int
) -> Estimate:
    """`due_ms` is the moment at which the first of what waits is due; none where nothing waits."""
    if not waiting:
        return Estimate(0.0, NOTHING_WAITS)
    urls = {"urls": count(waiting, "URL"), "wait": "waits" if waiting == 1 else "wait"}
    if not is_running:
        return Estimate(None, NO_RUN, urls)
    if due_ms is not None and due_ms > now_ms:
        return Estimate(None, DUE_LATER, {"moment": moment(due_ms)})
    for name in ESTIMATE_WINDOWS:
        rate = rates[name]
        if rate["covers_s"] >= ESTIMATE_LEAST_S and rate["pages_per_s"]:
            seconds = waiting / rate["pages_per_s"]
            over = f"the last {name}" if rate["covers_s"] >= WINDOWS_S[name] else duration(rate["covers_s"])
            pace = {"rate": format_rate(rate["pages_per_s"]), "over": over}
            return Estimate(seconds, AT_THIS_PACE, {"time": duration(max(10, seconds)), **urls, **pace})
    return Estimate(None, TOO_SHORT if rates["hour"]["covers_s"] < ESTIMATE_LEAST_S else NO_PAGE)


def format_rate(per_s: float) -> str:
    """`0.25`, `8.3`, `1,204`: two digits at least, where there are two."""
    return f"{per_s:,.0f}" if per_s >= 100 else f"{per_s:.3g}" if per_s >= 1 else f"{per_s:.2g}"


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time in disjoint intervals, in order."""
    joined: list[Interval] = []
    for begin, end in sorted(intervals):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined
