"""Judges a finished crawl of a synthetic web by the web's own truth and its servers' own record."""

import json
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

from contract import names
from contract.config import Config
from contract.crawl_folder import open_folder
from contract.log import CRAWL, replay
from contract.tables import ANSWERED, COLLECTED
from storage.tables import read_table
from synthweb import Rules, Web

ROOT = Path(__file__).resolve().parent.parent.parent
RULES = Rules(excluded_extensions=Config().scope.reject_extensions)
OVERLAP_MS = 1.0  # two clocks readings of one process


def run(*command) -> subprocess.CompletedProcess:
    """Runs a command of bin/ to its end."""
    return subprocess.run(
        [ROOT / "bin" / command[0], *map(str, command[1:])], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def committed_cycles(crawl: Path) -> list[int]:
    log = replay(crawl, open_folder(crawl).blocks_first)
    return [entry.cycle for entry in log.entries if entry is not None and entry.kind == CRAWL]


def collected_urls(crawl: Path) -> list[str]:
    """URLs with an answer, once for each time that a table says so."""
    urls = []
    for cycle in committed_cycles(crawl):
        table = read_table(crawl / names.cycle(cycle) / names.EXTRACTOR / names.COLLECTED, COLLECTED)
        urls += [row["url"] for row in table.select(["url", "outcome"]).to_pylist() if row["outcome"] == ANSWERED]
    return urls


def access_record(state: Path, port: int) -> list[dict]:
    lines = [json.loads(line) for line in (state / "access.jsonl").read_text().splitlines()]
    for line in lines:
        line["url"] = f"http://{line['host'].split(':')[0]}:{port}{line['target']}"
    return lines


def assert_truth(crawl: Path, web: Web) -> None:
    urls = collected_urls(crawl)
    truth = web.truth(RULES)
    found = set(urls)
    assert found == truth, f"missing {sorted(truth - found)[:5]}, extra {sorted(found - truth)[:5]}"
    assert len(urls) == len(found), "a URL is collected twice in the tables"


def assert_obedient(record: list[dict], web: Web) -> None:
    """No page that robots.txt forbids, and robots.txt before anything else of a server."""
    forbidden = web.forbidden(RULES)
    assert not [line["url"] for line in record if line["url"] in forbidden]
    first = {}
    for line in record:
        first.setdefault(line["host"], line["target"])
    assert set(first.values()) == {"/robots.txt"}


def asked_twice(record: list[dict]) -> Counter:
    """URLs asked more than once although an earlier answer was final, with how often."""
    answers = Counter(
        line["url"]
        for line in record
        if not line["target"].endswith("/robots.txt")
        and line["status"]
        and line["status"] < 500
        and line["status"] != 429
    )
    return Counter({url: number for url, number in answers.items() if number > 1})


def assert_one_at_a_time(record: list[dict], delay_ms: float, slack_ms: float = OVERLAP_MS) -> None:
    """Per host and per address, each request begins at least the delay after the one before it ended.

    The web notes an end after it has sent the answer; on a busy machine it may come to that some milliseconds later.
    """
    for name in ("host", "address"):
        groups = defaultdict(list)
        for line in record:
            groups[line[name]].append((line["started_ms"], line["ended_ms"]))
        for group, spans in groups.items():
            spans.sort()
            for (_, ended), (started, _) in zip(spans, spans[1:]):
                assert started - ended >= delay_ms - slack_ms, f"{name} {group}: {started - ended:.1f} ms apart"
