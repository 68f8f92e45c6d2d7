"""The visits of one URL: what each of them found, why it was listed then, and when the next one is due.

A visit is an answered request. What it found follows from the tables of its cycle and of those before: a revisit record
(304, or the body as before) and a full answer of the same content show no change.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from contract import names, revisits
from contract.config import Config
from contract.generation import Generation
from contract.plan import read_plan
from contract.policies import rules
from contract.surt_match import find_rules
from contract.tables import ANSWERED, UNKNOWN_DIGEST, URL_LIST
from contract.units import count, duration, moment
from contract.validators import may_send
from storage.errors import Damaged
from storage.publish import is_published
from storage.tables import ROW_GROUP_ROWS, column, read_table

LISTED = ("order", "revisit", "counted", "score", "vrank", "etag", "last_modified", "fetched_at_ms")
VALIDATORS = {"etag": "If-None-Match", "last_modified": "If-Modified-Since"}
EVIDENCE = ("visits", "changes", "unchanged_min", "changed_min", "period_min", "misses")
GONE = (404, 410)
FIRST, CHANGED, SAME, NOT_CHANGED, UNKNOWN = (
    "first visit",
    "changed",
    "the same content again",
    "not changed",
    "not seen to have changed",
)


def judge_visits(events: list[dict[str, Any]]) -> None:
    """Notes under `found` of each event `asked`, in order, what the visit found; `page` is its row of metadata."""
    known, is_first = UNKNOWN_DIGEST, True
    for event in events:
        if event["event"] == "forgotten":
            known, is_first = UNKNOWN_DIGEST, True
        if event["event"] != "asked":
            continue
        page = event.get("page")
        if event["outcome"] != ANSWERED:
            event["found"] = event["outcome"]
            continue
        event["found"] = FIRST if is_first else judge_answer(page, known)
        if event["status"] in GONE:
            event["found"] = f"gone, {event['found']}"
        is_first = False
        if page and not page["revisit"]:
            known = page["content_digest"]


def judge_answer(page: dict[str, Any] | None, known: bytes) -> str:
    if page is None:
        return UNKNOWN
    if page["revisit"]:
        return NOT_CHANGED
    if UNKNOWN_DIGEST in (known, page["content_digest"]):
        return UNKNOWN
    return SAME if page["content_digest"] == known else CHANGED


def find_listed(crawl: Path, cycle: int, key: int) -> dict[str, Any] | None:
    """Why a cycle listed the URL: its row of Lista_de_URLs, and the policies of that cycle; none where it has no list.

    A list has an order of its own, so its column of keys is read whole.
    """
    path = crawl / names.cycle(cycle) / names.SCHEDULER / names.URL_LIST
    if not is_published(path.parent) or not path.exists():
        return None
    rows = np.flatnonzero(column(read_table(path, URL_LIST, ["url_key"]), "url_key") == np.uint64(key))
    if not len(rows):
        return None
    group, row = divmod(int(rows[0]), ROW_GROUP_ROWS)
    listed = read_table(path, URL_LIST, list(LISTED), [group]).slice(row, 1).to_pylist()[0]
    try:
        config = read_plan(crawl, cycle).config
    except Damaged:
        return {**listed, "policy": None, "revisit_policy": None}
    return {**listed, "policy": config.scheduler.policy, "revisit_policy": config.revisit.policy}


def find_next(
    generation: Generation, side_row: int, server: int, line: bytes, lastmod_s: int, config: Config
) -> dict[str, Any] | None:
    """When a collected page is due again by its own columns; none without revisits. `server`: its row of the table.

    The policy `optimal` estimates how often a page changes from its server and block too, so it reads their columns.
    """
    if config.revisit.policy == revisits.NONE:
        return None
    rule = int(find_rules(pa.array([line], pa.large_binary()), config.priority)[0])
    one = read_pages(generation, side_row, side_row + 1, float(rules.intervals_of(config)[rule]))
    trust = revisits.trust_of(*(column(generation.servers, name) for name in ("lastmod_claims", "lastmod_true")))
    claimed = revisits.claim_trust(np.array([lastmod_s]), one.seen_at_ms, np.array([server]), trust)
    one = replace(one, claim_trust=claimed)
    rates = None
    if config.revisit.policy == revisits.OPTIMAL:
        servers = generation.server_index[generation.collected_rows]
        pages = read_pages(generation, 0, len(servers))
        every = revisits.estimate_rates(pages, servers, len(generation.servers), config.revisit)
        rates = every[side_row : side_row + 1]
    due_ms = int(revisits.due_at_ms(config.revisit, one, rates)[0])
    is_dropped = int(one.misses[0]) > config.revisit.misses_max
    is_given_up = bool(column(generation.servers, "given_up")[server])
    server_due_ms = int(column(generation.servers, "due_at_ms")[server])
    return {
        "due_at_ms": None if is_dropped or is_given_up else max(due_ms, server_due_ms),
        "is_dropped": is_dropped,
        "interval_s": float(revisits.intervals_s(config.revisit, one, rates)[0]),
        "wait_s": float(revisits.waits_s(config.revisit, one, rates)[0]),
        "has_claim": bool(claimed[0] > 0 and not one.rule_interval_s[0]),
        "changes_per_day": None if rates is None else float(rates[0]) * 86_400,
    }


def read_pages(generation: Generation, start: int, stop: int, rule_interval_s: float = 0.0) -> revisits.Pages:
    side = generation.side
    moments = (side.read(name, start, stop) for name in ("fetched_at_ms", "visited_at_ms"))
    return revisits.Pages(
        revisits.seen_at_ms(*moments),
        *(side.read(name, start, stop) for name in EVIDENCE),
        rule_interval_s=np.full(stop - start, rule_interval_s),
    )


def find_rule(url: str, config: Config) -> dict[str, Any] | None:
    """The rule of [[priority]] that a URL falls under."""
    number = int(find_rules(pa.array([url.encode() + b"\n"], pa.large_binary()), config.priority)[0])
    return {"number": number, **vars(config.priority[number - 1])} if number else None


def describe_listed(listed: dict[str, Any]) -> Iterator[str]:
    """Why it was listed then, in words."""
    by = f"policy {listed['policy']}" if listed["policy"] else "a policy that is not known"
    what = "listed for a first visit"
    if listed["revisit"]:
        by += f", revisits {listed['revisit_policy']}" if listed["revisit_policy"] else ""
        what = f"listed for a revisit of the page of {moment(listed['fetched_at_ms'])}"
    yield f"{what}, by {by}: score {listed['score']:,}, VRank {listed['vrank']:.3g}, order {listed['order']:,}"
    if listed["revisit"]:
        known = {header: listed[name] for name, header in VALIDATORS.items() if listed[name]}
        sent = [f"{header}: {text}" for header, text in known.items() if may_send(text)]
        why = "those of its last full answer are no texts for a request" if known else "its last full answer had none"
        yield f"sent {', '.join(sent)}" if sent else f"sent no validators: {why}"


def describe_history(collected: dict[str, Any]) -> str:
    """What all visits have shown, in words."""
    text = f"{count(collected['visits'], 'visit')}, {collected['changes']:,} found a change"
    spans = [(collected[f"{word}_min"], word) for word in ("unchanged", "changed")]
    seen = [f"{duration(minutes * 60)} {word}" for minutes, word in spans if minutes]
    text += f"; seen {' and '.join(seen)}" if seen else ""
    return text + (f"; the last {count(collected['misses'], 'visit')} found no page" if collected["misses"] else "")


def describe_next(known: dict[str, Any], config: Config, now_ms: int) -> str:
    """What the policy says of the next visit, in words."""
    found = known["next"]
    if found is None:
        return '[revisit] policy is "none": pages are asked once'
    if found["is_dropped"]:
        return (
            f"never: {count(known['collected']['misses'], 'visit')} in a row found no page, [revisit] misses_max "
            f"allows {config.revisit.misses_max}; it stays collected"
        )
    if found["due_at_ms"] is None:
        return f"never: its server {known['server']['server']} was given up"
    due_ms = found["due_at_ms"]
    when = f"since {moment(due_ms)}" if due_ms <= now_ms else f"not before {moment(due_ms)}"
    rate = found["changes_per_day"]
    estimate = f", for an estimate of a change every {duration(86_400 / rate)}" if rate is not None else ""
    claim = "; its sitemap says that it has changed since the last visit: now after " if found["has_claim"] else ""
    claim += duration(found["wait_s"]) if claim else ""
    return f"due {when}: revisits {config.revisit.policy}, every {duration(found['interval_s'])}{estimate}{claim}"


def describe_lastmod(lastmod_s: int, server: dict[str, Any]) -> str:
    """The newest time that a sitemap has for a page, and how often such times of its server were true."""
    claims, true = server["lastmod_claims"], server["lastmod_true"]
    tested = f"{true:,} of its {count(claims, 'tested lastmod date')} {'was' if claims == 1 else 'were'} true"
    tested = tested if claims else "none of its lastmod dates was tested yet"
    return f"{moment(lastmod_s * 1000)}, by a sitemap; {server['server']}: {tested}"


def describe_rule(rule: dict[str, Any]) -> str:
    what = f"surt {rule['surt']}" if rule["surt"] else f"pattern {rule['pattern']}"
    interval = f", a visit every {duration(rule['interval_s'])}" if rule["interval_s"] else ""
    return f"rule {rule['number']} of [[priority]], {what}: weight {rule['weight']:g}{interval}"
