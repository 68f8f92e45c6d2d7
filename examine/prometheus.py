"""The figures of bin/status in the text format of Prometheus, for the textfile collector of node_exporter.

Names begin with coletor_, have their unit at the end, and counters end in _total, as
https://prometheus.io/docs/practices/naming/ asks. Every sample has the label `crawl`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from contract.crawl_folder import expect_outside
from contract.errors import Usage
from examine.link_sources import KEY, is_any
from storage.unsynced_files import is_other_thing, replace_file

FILE_MODE = 0o644  # node_exporter runs as another user
GAUGE, COUNTER = "gauge", "counter"
Samples = Iterable[tuple[dict[str, str], float | int | None]]  # labels and value; a value of none is left out


class Metric(NamedTuple):
    name: str
    kind: str
    help: str
    samples: Samples


def write_metrics(path: Path, status: dict) -> None:
    """Replaces the file by rename: the collector never reads half of it."""
    expect_target(path)
    replace_file(path, encode_metrics(status).encode(), FILE_MODE)


def expect_target(path: Path) -> None:
    """Usage where the folder is missing or in a crawl, or the name is that of a folder, a device, a pipe or a link."""
    if not path.parent.is_dir():
        raise Usage(f"--prometheus {path}: expected a folder that exists, found none at {path.parent}")
    if is_other_thing(path):
        raise Usage(f"--prometheus {path}: expected a regular file or a new name, found something else; it stays")
    expect_outside(path)


def encode_metrics(status: dict) -> str:
    lines: list[str] = []
    for metric in list_metrics(status):
        samples = [(labels, value) for labels, value in metric.samples if value is not None]
        if not samples:
            continue
        lines.append(f"# HELP {metric.name} {metric.help}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for labels, value in samples:
            pairs = ",".join(f'{name}="{escape(text)}"' for name, text in {"crawl": status["crawl"], **labels}.items())
            lines.append(f"{metric.name}{{{pairs}}} {float(value):.17g}")
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """As the text format wants label values. What is not UTF-8, such as in names of files, becomes escapes."""
    plain = text.encode("utf-8", "backslashreplace").decode()
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def list_metrics(status: dict) -> Iterator[Metric]:
    fetched, disk, live = status["fetched"], status["disk"], status["live"]
    is_alive = bool(live and live["is_alive"])
    yield Metric("coletor_running", GAUGE, "1 while a run holds the lock of the crawl.", one(int(status["running"])))
    yield Metric("coletor_pages_total", COUNTER, "Pages fetched in committed cycles.", one(fetched["answered"]))
    yield Metric("coletor_bytes_total", COUNTER, "Bytes of answers in committed cycles.", one(fetched["bytes"]))
    yield Metric(
        "coletor_urls_not_answered_total",
        COUNTER,
        "Listed URLs that failed or were refused, one per committed cycle that listed them.",
        [({"outcome": outcome}, fetched[outcome]) for outcome in ("failed", "refused")],
    )
    yield Metric(
        "coletor_errors_total",
        COUNTER,
        "Listed URLs that were not answered, by reason, one per committed cycle that listed them.",
        [({"reason": reason}, number) for reason, number in status["reasons"].items()],
    )
    yield Metric(
        "coletor_commits_total",
        COUNTER,
        "Entries of the log, by kind.",
        [({"kind": kind}, number) for kind, number in status["entries"].items()],
    )
    yield Metric(
        "coletor_urls", GAUGE, "Known URLs, by state.", [({"state": s}, n) for s, n in status["states"].items()]
    )
    if is_any(status[KEY]):
        yield from list_link_sources(status[KEY])
    yield Metric("coletor_visits_total", COUNTER, "Answered requests of collected pages.", one(status["visits"]))
    yield Metric("coletor_changes_total", COUNTER, "Visits that found a page changed.", one(status["changes"]))
    yield Metric(
        "coletor_pages_revisitable", GAUGE, "Collected pages that may be due again.", one(status["revisitable"])
    )
    yield Metric(
        "coletor_revisit_due_timestamp_seconds",
        GAUGE,
        "When revisits are worth a cycle of the first block.",
        one(None if status["revisit_due_ms"] is None else status["revisit_due_ms"] / 1000),
    )
    yield Metric(
        "coletor_domains_closed", GAUGE, "Registered domains that are closed for good.", one(status["domains_closed"])
    )
    yield Metric(
        "coletor_blocks_unprepared",
        GAUGE,
        "Blocks that get a turn for the present policy before they are listed.",
        one(status["unprepared"]),
    )
    yield Metric("coletor_blocks", GAUGE, "Blocks of the crawl.", one(status["blocks"]))
    yield Metric("coletor_servers", GAUGE, "Known servers.", one(status["servers"]))
    yield Metric("coletor_servers_failing", GAUGE, "Servers that wait after failures.", one(status["servers_failing"]))
    yield Metric("coletor_servers_given_up", GAUGE, "Servers that were given up.", one(status["servers_given_up"]))
    yield Metric("coletor_cycles_open", GAUGE, "Cycles with a plan and without a commit.", one(len(status["open"])))
    yield Metric(
        "coletor_cycles_in_flight",
        GAUGE,
        "Cycles that the live run works on, by the stage that they are at.",
        count_stages(live) if is_alive else [],
    )
    yield Metric(
        "coletor_problems", GAUGE, "Things that are wrong, by kind; bin/status says what to do.", count_problems(status)
    )
    yield Metric(
        "coletor_pages_per_second",
        GAUGE,
        "Pages per second over a window.",
        [({"window": window}, rate["pages_per_s"]) for window, rate in status["rates"].items()],
    )
    yield Metric(
        "coletor_bytes_per_second",
        GAUGE,
        "Bytes of answers per second over a window.",
        [({"window": window}, rate["bytes_per_s"]) for window, rate in status["rates"].items()],
    )
    yield Metric(
        "coletor_stage_busy_ratio",
        GAUGE,
        "Share of each stage in the busy time of the last hour.",
        [({"stage": stage}, share) for stage, share in status["stages"].items()],
    )
    yield Metric("coletor_disk_free_bytes", GAUGE, "Free space where the crawl lies.", one(disk["free_bytes"]))
    yield Metric("coletor_disk_used_bytes", GAUGE, "Used space where the crawl lies.", one(disk["used_bytes"]))
    yield Metric(
        "coletor_estimate_seconds", GAUGE, "Estimated time until nothing waits.", one(status["estimate"]["seconds"])
    )
    yield Metric(
        "coletor_live_timestamp_seconds",
        GAUGE,
        "When the last run wrote live.json.",
        one(live["written_at_ms"] / 1000 if live else None),
    )


def list_link_sources(theirs: dict) -> Iterator[Metric]:
    """No other metric of URLs or pages counts them, except those about the work of runs."""
    states = [({"state": state}, number) for state, number in theirs["states"].items()]
    yield Metric("coletor_link_source_urls", GAUGE, "Known link sources, by state.", states)
    pages = one(theirs["fetched"]["answered"])
    yield Metric("coletor_link_source_pages_total", COUNTER, "Pages of link sources in committed cycles.", pages)


def one(value: float | None) -> Samples:
    return [({}, value)]


def count_stages(live: dict) -> Samples:
    stages = [cycle["stage"] or "none" for cycle in live["cycles"]]
    return [({"stage": stage}, stages.count(stage)) for stage in sorted(set(stages))]


def count_problems(status: dict) -> Samples:
    kinds = [problem["kind"] for problem in status["problems"]]
    return [({"kind": kind}, kinds.count(kind)) for kind in KINDS]


KINDS = ("run", "stage", "held", "damage", "disk", "note")  # of examine.problems: 0 is a sample too
