"""What is wrong with a crawl, and what to do about it: decisions from the figures of bin/status alone."""

import shlex
from collections import Counter
from collections.abc import Iterator

from contract import names
from contract.errors import EX_TEMPFAIL
from contract.units import count, duration, moment, size

HELD, DAMAGE = "held", "damage"  # kinds of problems
SILENT_S = 30  # a run that is alive writes live.json every 2 s
DEATHS_WINDOW_S = 3_600
DEATHS_LEAST = 3  # of one kind of stage within the window: it keeps dying
FREE_LEAST_BYTES, FREE_LEAST_SHARE = 1 << 30, 0.05
FULL_WITHIN_S = 2 * 86_400


def find_problems(status: dict, stages: list[dict]) -> list[dict]:
    """Each with its kind, what is wrong and what to do. `stages` are lines of the journal, oldest first."""
    notes = [{"what": note, "do": "nothing: no other file depends on it"} for note in status["notes"]]
    by_kind = {
        "run": of_run(status),
        "stage": of_deaths(status, stages),
        HELD: of_held(status),
        DAMAGE: of_damage(status),
        "ranks": of_ranks(status),
        "disk": of_disk(status),
        "note": notes,
    }
    return [{"kind": kind, **problem} for kind, problems in by_kind.items() for problem in problems]


def of_run(status: dict) -> Iterator[dict]:
    live, crawl = status["live"], shlex.quote(status["crawl"])
    if live is None:
        return
    if live["is_alive"]:
        silent_s = (status["now_ms"] - live["written_at_ms"]) / 1000
        if silent_s > SILENT_S:
            yield {
                "what": f"the run of process {live['process_id']} has been silent for {duration(silent_s)}",
                "do": "look whether it is stopped (ps), or waits for a slow disk",
            }
    elif live["ended_at_ms"] is None and not status["running"]:
        yield {
            "what": f"the run of {describe_death(live)}; nothing is lost",
            "do": advise_resume(live["command"], crawl),
        }
    if status["inbox"] and not status["running"]:
        yield {
            "what": f"{count(status['inbox'], 'file')} of seeds or decisions in {names.INBOX}/, and no run is at work",
            "do": f"bin/run-cycle --crawl {crawl}",
        }


def advise_resume(command: str, crawl: str) -> str:
    if command == names.DEMO_COMMAND:  # which starts its web again, too
        return f"bin/{command} resumes it (with its --config, if it had one); run it in the folder that has demo/"
    return f"bin/{command} --crawl {crawl} resumes it"


def describe_death(live: dict) -> str:
    return f"bin/{live['command']} (process {live['process_id']}) died at about {moment(live['written_at_ms'])}"


def of_deaths(status: dict, stages: list[dict]) -> Iterator[dict]:
    since_ms = status["now_ms"] - DEATHS_WINDOW_S * 1000
    dead = [line for line in stages if line["end_ms"] >= since_ms and line["exit_code"] not in (0, EX_TEMPFAIL)]
    for stage, deaths in Counter(line["stage"] for line in dead).items():
        if deaths >= DEATHS_LEAST:
            last = next(line for line in reversed(dead) if line["stage"] == stage)
            code = last["exit_code"]
            by = f"signal {-code}" if code < 0 else f"exit code {code}"
            yield {
                "what": f"the {stage} ended {deaths} times by an error in the last hour, last by {by} in cycle "
                f"{last['cycle']} (block {last['block']}) at {moment(last['end_ms'])}",
                "do": f"look at {names.MESSAGES} and at memory (dmesg)",
            }


def of_held(status: dict) -> Iterator[dict]:
    crawl = shlex.quote(status["crawl"])
    for cycle in status["open"]:
        if cycle["held"]:
            yield {
                "what": f"cycle {cycle['cycle']} of block {cycle['block']} is held: {cycle['held']}",
                "do": f"bin/run-cycle --crawl {crawl} tries it again; with --drop-open {cycle['cycle']} gives it up",
            }


def of_damage(status: dict) -> Iterator[dict]:
    crawl = shlex.quote(status["crawl"])
    for cycle in status["without_plan"]:
        yield {"what": f"cycle {cycle} has no {names.PLAN} that can be read", "do": "the next run sets it aside"}
    for note in status["damage"]:
        yield {
            "what": f"{note['path']}: {note['reason']}",
            "do": note["run"] or "nothing: the crawl goes on without it",
        }
    if status["configuration"]:
        yield {"what": status["configuration"], "do": f"bin/run-cycle --crawl {crawl} --config FILE stores it again"}
    for cycle in status["uncounted"]:
        yield {
            "what": f"{names.cycle(cycle)}/{names.FETCHER}/{names.MANIFEST} cannot be read: its pages are not counted",
            "do": "put it back from a copy; the crawl goes on without it",
        }


def of_ranks(status: dict) -> Iterator[dict]:
    """A file of ranks that fits no URL orders nothing, and no stage would fail of it."""
    if status["ranked"] == 0 and status["known"]:
        yield {
            "what": f"[scheduler] ranks_file has no rank of any of the {count(status['known'], 'known URL')}: "
            f"the policy {status['policy']} orders nothing by it",
            "do": f"bin/run-cycle --crawl {shlex.quote(status['crawl'])} --config FILE, where FILE names ranks of "
            "these URLs or their servers (docs/ordering.md says how to make them)",
        }


def of_disk(status: dict) -> Iterator[dict]:
    disk = status["disk"]
    free, growth = disk["free_bytes"], disk["growth_bytes_per_day"]
    is_short = free < min(FREE_LEAST_BYTES, FREE_LEAST_SHARE * disk["total_bytes"])
    full_s = free / growth * 86_400 if growth else None
    is_soon = status["running"] and full_s is not None and full_s < FULL_WITHIN_S
    soon = f"full in about {duration(full_s)} at the present pace" if full_s is not None and is_soon else ""
    if is_short:
        what = f"the disk is nearly full: {size(free)} free" + (f", {soon}" if soon else "")
    elif soon:
        what = f"the disk will be {soon}: {size(free)} free"
    else:
        return
    yield {"what": what, "do": "make room; a full disk stops the crawl, and loses nothing"}
