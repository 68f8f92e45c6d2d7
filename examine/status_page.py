"""The page of bin/status for people: one screen, the same labels in the same order."""

from collections.abc import Iterator

from contract import names
from contract.log import describe_commits
from contract.terminal import make_plain
from contract.units import count, duration, moment, size
from examine.link_sources import KEY, is_any, left_to_fetch
from examine.problems import DAMAGE, HELD, describe_death
from examine.rates import WINDOWS_S, format_rate

LABEL_WIDTH = 10
CUT = "..."  # in every encoding of a terminal
ERRORS_SHOWN = 10
CYCLES_SHOWN = 16
SLACK_S = 3  # live.json is that old at most
HINTS = {"forbidden_address": " (fetcher.allow_private_addresses)"}  # the setting that a reason is about
STATES_OF_SERVERS = (("servers_failing", "failing"), ("servers_given_up", "given up"))


def make_page(status: dict, *, with_blocks: bool = False, width: int | None = None) -> list[str]:
    """The lines of the page, each harmless on a terminal; examples of errors are cut at its width."""
    lines = [
        *describe_crawl(status),
        *describe_now(status),
        *describe_fetched(status),
        *describe_known(status),
        *describe_policy(status),
        *(cut(make_plain(line), width) for line in describe_errors(status)),
        *describe_machine(status),
        *describe_blocks(status),
        *describe_damage(status),
        *describe_problems(status),
        *(tabulate_blocks(status) if with_blocks else ()),
    ]
    return [make_plain(line) for line in lines]


def cut(line: str, width: int | None) -> str:
    return line if width is None or len(line) <= width else line[: width - len(CUT)] + CUT


def labelled(label: str, text: str) -> str:
    return f"{label:<{LABEL_WIDTH}}{text}"


def describe_crawl(status: dict) -> Iterator[str]:
    yield (
        f"{status['crawl']}: {'running now' if status['running'] else 'not running'}; "
        f"began {moment(status['began_at_ms'])}, {describe_commits(status['commits'], status['entries'])}"
    )


def describe_now(status: dict) -> Iterator[str]:
    """What each cycle in flight is doing; without a live run, what the open cycles have done."""
    live = status["live"]
    if live and live["is_alive"]:
        worked = duration(max(0, status["now_ms"] - live["began_at_ms"]) // 1000)
        cycles = live["cycles"]
        doing = f"{count(len(cycles), 'cycle')} in flight" if cycles else "no cycle in flight"
        if live["sleeps_until_ms"] is not None and not cycles:
            until = moment(live["sleeps_until_ms"]) if live["sleeps_until_ms"] else "seeds arrive"
            doing = f"nothing is due until {until}"
        yield labelled("now", f"bin/{live['command']} for {worked}: {doing}")
        for cycle in cycles[:CYCLES_SHOWN]:
            yield labelled("", f"cycle {cycle['cycle']}  block {cycle['block']}/{cycle['blocks']}  {cycle['text']}")
        if len(cycles) > CYCLES_SHOWN:
            yield labelled("", f"and {len(cycles) - CYCLES_SHOWN} more")
        flying = {cycle["cycle"] for cycle in cycles}
    else:
        if live and live["ended_at_ms"] is not None:
            why = live["why"].strip().partition("\n")[0]  # what a run ends with may have many lines
            ended = f"nothing; bin/{live['command']} ended at {moment(live['ended_at_ms'])}"
            yield labelled("now", f"{ended}: {why}" if why else ended)
        elif live and not status["running"]:
            yield labelled("now", f"nothing; {describe_death(live)}")
        flying = set()
    for cycle in status["open"]:
        if cycle["cycle"] not in flying:
            yield labelled(
                "open",
                f"cycle {cycle['cycle']} ({cycle['kind']}, block {cycle['block']}), "
                f"done: {', '.join(cycle['stages_done']) or 'nothing yet'}",
            )


def describe_fetched(status: dict) -> Iterator[str]:
    fetched, live = status["fetched"], status["live"]
    yield labelled(
        "fetched",
        f"{count(fetched['answered'], 'page')}, {size(fetched['bytes'])}; "
        f"{fetched['failed']:,} failed, {fetched['refused']:,} refused",
    )
    if live and live["is_alive"]:
        flying = {name: live["counts"][name] - live["counts_committed"][name] for name in ("answered", "bytes")}
        if flying["answered"] > 0:
            yield labelled("", f"and {count(flying['answered'], 'page')}, {size(flying['bytes'])} of cycles in flight")
    yield labelled("rates", describe_rates(status))


def describe_rates(status: dict) -> str:
    """While a run is at work its rates now, else those until its last stage ended."""
    parts = []
    rates = status["rates_at_end"] or status["rates"]
    end = f"; the last stage ended at {moment(status['work_ended_at_ms'])}" if status["rates_at_end"] else ""
    counted_s, known_s = rates["minute"]["covers_s"], rates["hour"]["covers_s"]  # by the run, and by the journal
    knows_more = counted_s > known_s + SLACK_S  # the run: somebody deleted the journal
    for name, length_s in WINDOWS_S.items():
        rate = rates[name]
        # The hour of a young journal says the same as the minute.
        is_left_out = not knows_more and known_s <= length_s if name == "minute" else knows_more
        if rate["pages_per_s"] is None or is_left_out:
            continue
        is_whole = rate["covers_s"] >= length_s - SLACK_S
        over = f"the last {name}" if is_whole else f"{duration(max(1, round(rate['covers_s'])))}"
        parts.append(f"{format_rate(rate['pages_per_s'])} pages/s, {size(rate['bytes_per_s'])}/s over {over}")
        if not is_whole and name != "minute":  # longer windows know no more
            is_young = status["journal_since_ms"] - status["began_at_ms"] < SLACK_S * 1000
            return "; ".join(parts) + (", since the crawl began" if is_young else ", since the journal begins") + end
    return "; ".join(parts) + end if parts else "not known: there is no journal"


def describe_known(status: dict) -> Iterator[str]:
    states = ", ".join(f"{number:,} {state.replace('_', ' ')}" for state, number in status["states"].items())
    yield labelled("known", count(status["known"], "URL") + (f": {states}" if states else ""))
    if is_any(status[KEY]):
        yield labelled("besides", describe_link_sources(status[KEY]))
    yield labelled("estimate", status["estimate"]["text"])
    yield labelled(
        "servers",
        f"{status['servers']:,} known, {status['servers_failing']:,} failing, {status['servers_given_up']:,} given up",
    )


def describe_link_sources(theirs: dict) -> str:
    fetched = theirs["fetched"]
    return (
        f"{count(theirs['known'], 'link source')} that the collection leaves out: {theirs['collected']:,} collected, "
        f"{theirs['waiting']:,} to fetch; {count(fetched['answered'], 'page')}, {size(fetched['bytes'])} fetched"
    )


def describe_policy(status: dict) -> Iterator[str]:
    """What decides about the next list, and what visits of collected pages have shown."""
    if status["policy"] is None:  # the configuration is damaged, which stands below
        return
    revisits = "no revisits" if status["revisit_policy"] == "none" else f"revisits {status['revisit_policy']}"
    unprepared = ""
    if status["unprepared"]:
        unprepared = f"; {count(status['unprepared'], 'block')} not prepared for that yet: a turn for it comes first"
    yield labelled("policy", f"{status['policy']}, {revisits}{unprepared}")
    if status["ranked"] is not None:
        yield labelled("ranks", f"{status['ranked']:,} of {count(status['known'], 'known URL')} have one in ranks_file")
    if status["domains_closed"] is not None:
        yield labelled("domains", f"{status['domains']:,} known, {status['domains_closed']:,} closed")
    if status["visits"] is not None and (status["revisit_policy"] != "none" or status["changes"]):
        yield labelled("visits", describe_visits(status))


def describe_visits(status: dict) -> str:
    pages = status["collected"] + status[KEY]["collected"]  # visits are those of link sources too
    text = f"{status['visits']:,} of {count(pages, 'page')}, {status['changes'] or 0:,} found a change"
    if status["revisit_policy"] == "none":
        return text
    text += f"; {status['revisitable'] or 0:,} may be due again"
    due_ms = status["revisit_due_ms"]
    if due_ms is not None:
        text += ", the first are due now" if due_ms <= status["now_ms"] else f", the first at {moment(due_ms)}"
    return text


def describe_errors(status: dict) -> Iterator[str]:
    """One line per kind, with an example."""
    for number, row in enumerate(status["errors"][:ERRORS_SHOWN]):
        numbers = [count(row["urls"], "time")] if row["urls"] else []  # a URL counts once per cycle that listed it
        numbers += [f"{count(row[name], 'server')} {word}" for name, word in STATES_OF_SERVERS if row[name]]
        message = f": {row['message']}" if row["message"] else ""
        such = f", such as {row['example']}{message}" if row["example"] else ""
        hint = HINTS.get(row["reason"], "")
        yield labelled("" if number else "errors", f"{row['reason']}{hint}: {', '.join(numbers)}{such}")
    if len(status["errors"]) > ERRORS_SHOWN:
        yield labelled("", f"and {len(status['errors']) - ERRORS_SHOWN} more kinds (--json has all)")


def describe_machine(status: dict) -> Iterator[str]:
    if status["stages"]:
        shares = ", ".join(f"{stage} {share:.0%}" for stage, share in status["stages"].items())
        yield labelled("stages", f"{shares} of the busy time of the last hour")
    disk = status["disk"]
    growth = disk["growth_bytes_per_day"]
    grows = ""
    if growth:
        grows = f"; the crawl added {size(growth)} in the last day"
    if growth and status["running"]:
        grows = f"; the crawl adds {size(growth)} per day, room for {duration(disk['free_bytes'] / growth * 86_400)}"
    yield labelled("disk", f"{size(disk['used_bytes'])} used, {size(disk['free_bytes'])} free{grows}")
    if status["inbox"]:
        yield labelled("inbox", f"{count(status['inbox'], 'file')} of seeds or decisions for the next turn")


def describe_blocks(status: dict) -> Iterator[str]:
    moments = [due_at_ms(block, status) for block in status["by_block"]]
    waiting = [due_ms for due_ms in moments if due_ms is not None]
    due = [due_ms for due_ms in waiting if due_ms <= status["now_ms"]]
    damaged = [block for block in status["by_block"] if block.get("damaged")]
    parts = [f"{len(due):,} due now", f"{len(waiting) - len(due):,} due later"]
    if damaged:
        parts.append(f"{len(damaged):,} damaged")
    parts.append(f"{status['blocks'] - len(waiting) - len(damaged):,} with nothing to fetch")
    yield labelled("blocks", f"{status['blocks']:,}: {', '.join(parts)} (--blocks lists them)")


def due_at_ms(block: dict, status: dict) -> int | None:
    """When a block is due, for URLs that wait or for revisits; none where there is nothing to fetch."""
    moments = [block["earliest_due_ms"] or 0] if left_to_fetch(block) else []
    if status["revisit_policy"] not in (None, "none") and block.get("revisit_due_ms") is not None:
        moments.append(block["revisit_due_ms"])
    return min(moments, default=None)


def describe_damage(status: dict) -> Iterator[str]:
    """What a run does about by itself, and what an operator must run."""
    for cycle in status["open"]:
        if cycle["held"]:
            text = f"cycle {cycle['cycle']} waits for the next run of bin/crawl or bin/run-cycle: {cycle['held']}"
            yield labelled("held", text)
    for cycle in status["uncounted"]:
        path = f"{names.cycle(cycle)}/{names.FETCHER}/{names.MANIFEST}"
        yield labelled("damage", f"{path} cannot be read: its pages are not counted above, the crawl goes on")
    for cycle in status["without_plan"]:
        yield labelled(
            "damage",
            f"cycle {cycle} has no {names.PLAN} that can be read: the next run sets what it made aside in "
            f"{names.CORRUPT}/ and goes on without it",
        )
    if status["configuration"]:
        yield labelled("damage", status["configuration"])
    for note in status["damage"]:
        yield labelled("damage", f"{note['path']}: {note['reason']}")
        yield labelled("", f"run: {note['run']}" if note["run"] else "the crawl goes on without it")


def describe_problems(status: dict) -> Iterator[str]:
    """What else is wrong."""
    shown = [problem for problem in status["problems"] if problem["kind"] not in (HELD, DAMAGE)]
    for problem in shown:
        yield labelled("wrong", problem["what"])
        yield labelled("", f"what to do: {problem['do']}")
    if not status["problems"]:
        yield labelled("wrong", "nothing")


def describe_due(due_ms: int | None, now_ms: int) -> str:
    return "-" if due_ms is None else "now" if due_ms <= now_ms else moment(due_ms)


def tabulate_blocks(status: dict) -> Iterator[str]:
    rows = [["block", "generation", "known", "collected", "to fetch", "servers", "revisits due", "due"]]
    for block in status["by_block"]:
        due = block.get("earliest_due_ms")
        figures = (f"{block.get(name, 0):,}" for name in ("known", "collected", "waiting", "servers"))
        rows.append(
            [
                str(block["block"]),
                "-" if block["generation"] is None else str(block["generation"]),
                *figures,
                describe_due(block.get("revisit_due_ms"), status["now_ms"]),
                "damaged" if block.get("damaged") else describe_due(due, status["now_ms"]),
            ]
        )
    widths = [max(map(len, column)) for column in list(zip(*rows))[:-1]]
    for row in rows:
        yield "  ".join([*(f"{cell:>{width}}" for cell, width in zip(row, widths)), row[-1]])
