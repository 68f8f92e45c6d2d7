"""What the stages did when, from the newest lines of the journal: the Gantt chart, their times, the effective time."""

from dataclasses import dataclass, field
from statistics import mean

from contract import names
from contract.journal_tail import Tail
from examine.rates import union

CYCLES_SHOWN = 30  # the newest ones, in the Gantt chart


@dataclass
class StageTimes:
    stage: str
    attempts: int
    failed: int
    total_s: float
    mean_s: float
    longest_s: float
    cpu_s: float
    memory_peak_bytes: int
    share: float  # of the effective time


@dataclass
class Work:
    since_ms: int | None = None
    effective_s: float = 0.0  # in which some stage was at work
    stages: list[StageTimes] = field(default_factory=list)
    bars: list[dict] = field(default_factory=list)


def describe_work(tail: Tail) -> Work:
    effective_s = busy_s(tail.stages)
    work = Work(tail.since_ms, effective_s)
    for stage in names.STAGES:
        lines = [line for line in tail.stages if line["stage"] == stage]
        if lines:
            lengths = [length_s(line) for line in lines]
            work.stages.append(
                StageTimes(
                    stage,
                    len(lines),
                    sum(line["exit_code"] != 0 for line in lines),
                    sum(lengths),
                    mean(lengths),
                    max(lengths),
                    sum(line["cpu_s"] or 0.0 for line in lines),
                    int(max(line["memory_peak_bytes"] or 0 for line in lines)),
                    busy_s(lines) / max(effective_s, 0.001),
                )
            )
    shown = sorted({line["cycle"] for line in tail.stages})[-CYCLES_SHOWN:]
    work.bars = [
        {name: line[name] for name in ("cycle", "block", "stage", "kind", "begin_ms", "end_ms")}
        for line in tail.stages
        if line["cycle"] in shown
    ]
    return work


def length_s(line: dict) -> float:
    return (line["end_ms"] - line["begin_ms"]) / 1000


def busy_s(lines: list[dict]) -> float:
    intervals = union((line["begin_ms"], line["end_ms"]) for line in lines)
    return sum(end - begin for begin, end in intervals) / 1000
