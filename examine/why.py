"""why: reports, from the files alone, what became of a URL and why it was or was not fetched.

  bin/why [--crawl DIR] URL          a short report
  bin/why [--crawl DIR] URL --json   all that was found, as one JSON object

The URL is folded as links are, by the newest configuration. The report has: when the URL was found and which pages
link to it, its state, every visit (why it was listed then, and what it found), when the next one is due, what
robots.txt says, and where its page is stored. A URL that no table has is judged anew by the rules of [scope]: those of
the cycle whose page links to it, where Ligacoes has that link. Needs no lock and sends no requests (bin/fetcher --trace
does). Of a large crawl it opens one block, the keys of the lists that had the URL, and a few pages of each cycle's
tables.

Example: bin/why --crawl demo/crawl http://s1.test:8080/     (the demonstration prints its port)
"""

import json
import time
from pathlib import Path

from contract import names
from contract.canonical import Canonical
from contract.command import make_parser, run
from contract.config import Config
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import CrawlFolder, open_folder
from contract.lines import say
from contract.log import History, replay
from contract.plan import newest_plan, read_plan
from contract.policies import policy_of
from contract.robots import Rules
from contract.scope.link_sources import LinkSources
from contract.scope.verdict import judge_by_plan
from contract.seeds import parse_lines, read_lines
from contract.tables import ANSWERED, REFUSED, REJECTED, STATES
from contract.terminal import make_plain
from contract.trouble import explain
from contract.units import count, moment, size
from contract.url import server_of
from examine import url_history
from examine.link_sources import NO_SEED
from examine.url_history import Subject
from examine.visits import (
    describe_history,
    describe_lastmod,
    describe_listed,
    describe_next,
    describe_rule,
    find_rule,
    judge_visits,
)
from storage.publish import is_published
from storage.tables import read_table

NAME = "why"


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    facts = gather(open_folder(arguments.crawl), arguments.url, time.time_ns() // 1_000_000)
    if arguments.json:
        print(
            json.dumps(
                facts,
                default=lambda value: value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value),
            )
        )
        return
    for line in describe(facts, arguments.crawl):
        say(make_plain(line), indent=10)


def gather(crawl: CrawlFolder, text: str, now_ms: int) -> dict:
    """All that is known of the URL; `verdict` and `because` say it in words."""
    log = replay(crawl.path, crawl.blocks_first)
    plan = newest_plan(crawl.path)
    newest, config = (plan.cycle, plan.config) if plan else (None, read_crawl_config(crawl.path))
    line = next(parse_lines([(2, text.encode("utf-8", "replace"))]), None)
    if line is None or line.problem:
        return {
            "given": text,
            "url": None,
            "verdict": "no URL for this crawl",
            "because": line.problem if line else "nothing is there",
        }
    subject = url_history.identify(crawl, log, Canonical(config.url).fold(line.url))
    facts = {
        "given": text,
        "url": subject.url,
        "block": subject.block,
        "now_ms": now_ms,
        "known": url_history.find_known(crawl.path, log, subject, config),
        "events": list(url_history.find_events(crawl.path, log, subject)),
        "pending": list(url_history.find_pending(crawl.path, log, subject)),
        "lists": [],
        "links": [],
        "page": None,
        "robots": None,
        "refused": [],
        "rule": find_rule(subject.url, config),
    }
    depth = facts["known"]["depth"] if facts["known"] else NO_SEED
    facts["link_source"] = LinkSources(config.scope).takes(subject.url, depth)
    judge_visits(facts["events"])
    known = facts["known"]
    if known and known["text"] != subject.url:
        return facts | {
            "verdict": "taken for another URL",
            "because": f"its key is that of {known['text']}, which was there first",
        }
    if known and known["collected"]:
        facts["page"] = url_history.find_page(crawl.path, known["collected"])
    elif not known:
        facts["refused"] = list(url_history.find_refusals(crawl.path, log, subject))
    else:
        facts["lists"] = list(url_history.find_lists(crawl.path, log, subject))
    facts["links"] = find_linking(crawl.path, log, subject, facts)
    if known and known["robots"] is not None:
        rules = Rules(known.pop("robots"), config.fetcher.agent, server_of(subject.url))
        facts["robots"] = {"allows": rules.allows(subject.url), "rule": rules.rule_for(subject.url)}
    if known:
        if known["state"] == "refused_by_rule" and newest is not None:
            facts["judged"] = judge_by_plan(read_plan(crawl.path, newest), crawl.keys(), subject.url)._asdict()
        if known["collected"]:
            facts["next_visit"] = describe_next(known, config, now_ms)
        verdict, because = judge_known(facts, config)
    else:
        verdict, because = judge_unknown(crawl, subject, facts, newest, config)
    return facts | {"verdict": verdict, "because": because}


def find_linking(crawl: Path, log: History, subject: Subject, facts: dict) -> list[dict]:
    """Pages that link to it: of the first cycle that found it; where none did, of the last whose Ligacoes has it."""
    found = [event["cycle"] for event in facts["events"] if event["event"] == "found"]
    if found:
        return url_history.find_links(crawl, found[0], subject)
    if facts["known"] or facts["pending"]:
        return []
    for cycle in sorted(log.cycles, reverse=True):
        if links := url_history.find_links(crawl, cycle, subject):
            return links
    return []


def judge_known(facts: dict, config: Config) -> tuple[str, str]:
    known, page, robots = facts["known"], facts["page"], facts["robots"]
    server, state = known["server"], known["state"]
    asked = [event for event in facts["events"] if event["event"] == "asked"]
    last = describe_last(asked[-1]) if asked else ""
    if known["collected"]:
        answer = "its row of metadata was not kept"
        if page:
            answer = f"status {page['status']}, {page['type'] or 'no type'}, {size(page['bytes'])}"
        return "collected", f"in cycle {known['collected']['cycle']}: {answer}"
    if state == "refused_by_robots":
        rule = robots["rule"] if robots else "is not there any more"
        return "refused by robots", f"robots.txt of {server['server']}: {rule}; it waits again when that file changes"
    if state == "refused_by_rule":
        return "refused by rule", explain_refusal(facts, asked, last)
    if state == "given_up" and server["given_up"]:
        return "given up", (
            f"its server {server['server']} failed {count(server['failures'], 'time')} in a row and was given "
            f"up with its URLs; its last failure: {describe_failure(server)}; bin/reconsider takes that back"
        )
    if state == "given_up":
        return "given up", (
            f"{count(known['attempts'], 'failed attempt')}, [verifier] attempts_max allows "
            f"{config.verifier.attempts_max}{last}; bin/reconsider takes that back"
        )
    opened = [found["cycle"] for found in facts["lists"] if found["open"]]
    if opened:
        return "not yet", f"it is in the list of cycle {opened[-1]}, which is open"
    return "not yet", wait_reason(facts, config) + (
        f"; {count(known['attempts'], 'failed attempt')}{last}" if known["attempts"] else ""
    )


def explain_refusal(facts: dict, asked: list[dict], last: str) -> str:
    """Why a known URL is refused by a rule: the fetcher, a domain that is closed, or a scope that has changed."""
    if asked and asked[-1]["outcome"] == REFUSED:
        return f"the fetcher refused it{last}; bin/reconsider takes that back"
    if facts["known"]["server"]["closed"]:
        return (
            "the policy new-domains has closed its registered domain for good: its last page led to too few other "
            "domains"
        )
    if rule := facts.get("judged", {}).get("rule"):
        return f"the scope has changed since it was found, and rejects it now: {rule} (docs/scope.md)"
    return f"the fetcher or the scope refused it{last}; bin/reconsider takes that back"


def describe_last(event: dict) -> str:
    why = f": {event['message']}" if event.get("message") else ""
    return f"; last: {event['outcome']}, {event['reason'] or event['status']}, in cycle {event['cycle']}{why}"


def describe_failure(server: dict) -> str:
    """The last failure of a server, in words."""
    if not server["last_failure_reason"]:
        return "not known"
    message = f": {server['last_failure_message']}" if server["last_failure_message"] else ""
    return f"{server['last_failure_reason']}, {moment(server['last_failure_at_ms'])}{message}"


def wait_reason(facts: dict, config: Config) -> str:
    known, server = facts["known"], facts["known"]["server"]
    if server["due_at_ms"] > facts["now_ms"]:
        cause = "it wants a long pause"
        if server["ready_at_ms"] >= server["due_at_ms"]:
            cause = "it asked for time"
        elif server["failures"]:
            cause = f"{count(server['failures'], 'failure')} in a row, the last: {describe_failure(server)}"
        return f"its server {server['server']} is not due before {moment(server['due_at_ms'])}: {cause}"
    asked = {event["cycle"] for event in facts["events"] if event["event"] == "asked"}
    missed = [found for found in facts["lists"] if found["cycle"] not in asked]
    if missed:
        what = ", which was abandoned or dropped" if missed[-1]["is_dropped"] else " and was not reached"
        return f"it was in the list of cycle {missed[-1]['cycle']}{what}; it may be in the next one"
    chance = "may be in the next list"
    if known["state"] != "prescheduled":
        chance = f"is not yet among the {config.verifier.prescheduled_max} that may be listed"
    of_domain = f"the policy {config.scheduler.policy} takes one URL per registered domain; "
    of_domain = of_domain if policy_of(config).is_gated else ""
    return (
        f"it {chance}; {of_domain}{count(server['waiting'], 'URL')} of {server['server']} to fetch, "
        f"a list takes {config.scheduler.server_max_urls} of them at most"
    )


def judge_unknown(
    crawl: CrawlFolder, subject: Subject, facts: dict, newest: int | None, config: Config
) -> tuple[str, str]:
    if facts["pending"]:
        cycle = facts["pending"][0]["cycle"]
        return "not yet", f"cycle {cycle} brought it; it waits in AUX for the next turn of block {subject.block}"
    if name := find_in_inbox(crawl.path, subject.url, config):
        return "not yet", f"it is a seed in inbox/{name}, which the next turn of the ring takes in"
    forgotten = [event["cycle"] for event in facts["events"] if event["event"] == "forgotten"]
    if forgotten and not any(later["cycle"] > forgotten[-1] for later in facts["refused"]):
        return "forgotten", (
            f"by cycle {forgotten[-1]}: no page had linked to it for so long ([revisit] forget_after_days); "
            "a page that links to it brings it back"
        )
    if facts["refused"]:
        last = facts["refused"][-1]
        return "refused by rule", (
            f"in cycle {last['cycle']} by {last['rule']}, a rule about its whole server (docs/scope.md); "
            "it is judged anew whenever a page that leads to it is read"
        )
    if any(event["event"] != "missing" for event in facts["events"]):
        return "lost", "a committed cycle has it and its block does not: run bin/check"
    if newest is None:
        return "never seen", "this crawl has had no cycle yet"
    link = next((link for link in facts["links"] if link["page"]), None)
    cycle = link["cycle"] if link else newest
    more = ()
    if link:
        depth = url_history.find_depth(crawl.path, cycle, link["page"])
        more = (link["page"], depth, link["kinds"])
    judged = judge_by_plan(read_plan(crawl.path, cycle), crawl.keys(), subject.url, *more)
    facts["judged"] = {"cycle": cycle, **judged._asdict()}
    facts["rejected_of_server"] = count_rejected(crawl.path, server_of(subject.url))
    if judged.rule:
        kind = "a trap" if judged.is_trap else "out of scope"
        return "rejected", f"by the rules of cycle {cycle} it is {kind}: {judged.rule} (docs/scope.md)"
    if facts["links"]:
        extractor = read_plan(crawl.path, cycle).config.extractor
        follow = extractor.follow + extractor.requisites
        nofollow = all(link["nofollow"] for link in facts["links"])
        kinds = sorted({kind for link in facts["links"] for kind in link["kinds"]})
        cause = (
            "its links are nofollow"
            if nofollow
            else f"links of kind {', '.join(kinds)} are not followed"
            if not set(kinds) & set(follow)
            else "no rule says why"
        )
        return "not followed", f"{cause} ([extractor] obey_nofollow, follow, requisites)"
    return (
        "never seen",
        f"no page that was read leads to it by links that are kept; the rules of cycle {cycle} would take it",
    )


def find_in_inbox(crawl: Path, url: str, config: Config) -> str:
    canonical = Canonical(config.url)
    for path in names.visible_files(crawl / names.INBOX):
        with open(path, "rb") as stream:
            if any(line.url and canonical.fold(line.url) == url for line in parse_lines(read_lines(stream))):
                return path.name
    return ""


def count_rejected(crawl: Path, server: str) -> dict[str, int]:
    """Links to the server that all cycles rejected, by rule."""
    counts: dict[str, int] = {}
    for cycle in names.numbered(crawl / names.CYCLES):
        folder = crawl / names.cycle(cycle) / names.EXTRACTOR
        if is_published(folder) and (folder / names.REJECTED).exists():
            for row in read_table(folder / names.REJECTED, REJECTED, ["server", "rule", "links"]).to_pylist():
                if row["server"] == server:
                    counts[row["rule"]] = counts.get(row["rule"], 0) + row["links"]
    return counts


def describe(facts: dict, crawl: Path) -> list[str]:
    """The report for people, line by line."""
    lines = [facts["url"] or facts["given"]]
    if facts["url"] and facts["url"] != facts["given"]:
        lines[0] += f"  (given as {facts['given']})"
    lines.append(f"{facts['verdict']}: {facts['because']}")
    if facts.get("link_source"):
        lines.append("scope     a link source: crawled for its links, no part of the collection (docs/scope.md)")
    for link in facts.get("links", ()):
        marks = ["nofollow"] * link["nofollow"] + ["not followed"] * (not link["followed"])
        how = ", ".join([*link["kinds"], *marks])
        lines.append(
            f"linked    by {link['page'] or 'robots.txt of a server'} in cycle {link['cycle']} ({how})"
            + (f": {link['anchor']}" if link["anchor"] else "")
        )
    events = facts.get("events", [])
    for event in [event for event in events if event["event"] in ("seeded", "found")][:1]:
        lines.append(
            f"found     first by cycle {event['cycle']} (commit {event['commit']}), "
            + ("as a seed" if event["event"] == "seeded" else f"{count(event['depth'], 'hop')} from a seed")
        )
    for event in [event for event in events if event["event"] in ("asked", "forgotten")]:
        if event["event"] == "forgotten":
            was = STATES[event["state"]].replace("_", " ")
            lines.append(f"forgotten in cycle {event['cycle']} (commit {event['commit']}); it was {was}")
            continue
        what, at_ms = event["reason"] or event["status"], event.get("failed_at_ms", event["fetched_at_ms"])
        asked_of = f" of {event['address']}" if event.get("address") else ""
        outcome = f"in cycle {event['cycle']}, {moment(at_ms)}: {event['outcome']} {what}"
        if event["attempts"]:
            lines.append(f"asked     {outcome}, {count(event['attempts'], 'request')}{asked_of}")
        else:
            lines.append(f"listed    {outcome}, without a request")
        if event.get("found") and event["outcome"] == ANSWERED:
            lines[-1] += f"; {event['found']}"
        lines += [f"          {event['message']}"] if event.get("message") else []
        lines += [f"          {line}" for line in describe_listed(event["listed"])] if event.get("listed") else []
    if known := facts.get("known"):
        server = known["server"]
        lines.append(
            f"state     {known['state'].replace('_', ' ')}, depth {known['depth']}, "
            f"{count(known['links_in'], 'link')} in; block {facts['block']}, generation {known['generation']}"
        )
        if known["collected"]:
            lines.append(f"visits    {describe_history(known['collected'])}")
            lines.append(f"next      {facts['next_visit']}")
        if known["lastmod_s"]:
            lines.append(f"lastmod   {describe_lastmod(known['lastmod_s'], server)}")
        if facts.get("rule"):
            lines.append(f"rule      {describe_rule(facts['rule'])}")
        lines.append(
            f"server    {server['server']}: {count(server['known'], 'URL')} known, {server['collected']:,} collected, "
            f"{server['waiting']:,} to fetch, {count(server['failures'], 'failure')} in a row"
        )
        if server["last_failure_reason"]:
            lines.append(f"          {'given up; ' * server['given_up']}last failure: {describe_failure(server)}")
    if robots := facts.get("robots"):
        lines.append(f"robots    {'allows it' if robots['allows'] else 'forbids it'}: {robots['rule']}")
    if page := facts.get("page"):
        file = f"{names.cycle(facts['known']['collected']['cycle'])}/{names.FETCHER}/{page['file']}"
        if page["trouble"]:
            lines.append(f"trouble   {explain(page['trouble'])} ({page['trouble']})")
        lines.append(
            f"page      {file} at byte {page['offset']}: bin/show --crawl {crawl} {file} --at {page['offset']}"
        )
    if facts.get("rejected_of_server"):
        lines.append(
            "rejected  links to its server, by rule: "
            + ", ".join(f"{rule} {number:,}" for rule, number in facts["rejected_of_server"].items())
        )
    missing = [event["file"] for event in events if event["event"] == "missing"]
    if missing:
        lines.append(
            f"note      {count(len(missing), 'table')} not kept, and so not in this report; the first: {missing[0]}"
        )
    return lines


if __name__ == "__main__":
    run(main, NAME)
