"""The parts of the dashboard's page as HTML. Every text goes through tell(), which makes it plain and escapes it."""

from html import escape

from contract import names
from contract.terminal import make_plain
from contract.units import count, duration, moment, size
from examine.dashboard.watch import Pictures
from examine.link_sources import KEY, is_any, left_to_fetch
from examine.rates import WINDOWS_S, format_rate
from examine.report.page import NUMBER, mark_long, show_section
from examine.report.sections import Part
from examine.report.words import Words

WINDOWS = ("minute", "hour", "day")
SLACK_S = 3  # live.json is that old at most
ERRORS_SHOWN, BLOCKS_SHOWN = 12, 64
IDLE = '<p class="idle">idle</p>'


def tell(value: object) -> str:
    return escape(make_plain(str(value)))


def show_now(status: dict, limit_bytes_per_s: int) -> str:
    """What changes from second to second."""
    parts = (
        show_run(status),
        show_ring(status),
        show_rates(status, limit_bytes_per_s),
        show_problems(status),
        show_errors(status),
        show_blocks(status),
    )
    return "".join(parts)


def show_run(status: dict) -> str:
    live = status["live"]
    if live and live["is_alive"]:
        worked = duration(max(0, status["now_ms"] - live["began_at_ms"]) // 1000)
        state = f"bin/{live['command']} has been at work for {worked}"
        if live["sleeps_until_ms"]:
            state = f"bin/{live['command']} waits: nothing is due until {moment(live['sleeps_until_ms'])}"
    else:
        state = "a run is at work" if status["running"] else "no run is at work"
    known, fetched = status["known"], status["fetched"]
    facts = (
        ("collected pages", f"{status['collected']:,}"),
        ("waiting URLs", f"{status['waiting']:,}"),
        ("known URLs", f"{known:,}"),
        ("answers", f"{fetched['answered']:,}"),
        ("failed", f"{fetched['failed']:,}"),
        ("refused", f"{fetched['refused']:,}"),
        *((("link sources besides", f"{status[KEY]['known']:,}"),) if is_any(status[KEY]) else ()),
        ("servers", f"{status['servers']:,}"),
        ("estimate", status["estimate"]["text"]),
    )
    rows = "".join(f"<div><dt>{tell(name)}</dt><dd>{tell(value)}</dd></div>" for name, value in facts)
    return f'<p class="state"><strong>{tell(state)}</strong> · {tell(moment(status["now_ms"]))}</p><dl>{rows}</dl>'


def show_ring(status: dict) -> str:
    """The four stages, with the cycles in flight at the stage where each is."""
    live = status["live"]
    cycles = live["cycles"] if live and live["is_alive"] else []
    stages = []
    for stage in names.STAGES:
        here = "".join(show_flight(cycle) for cycle in cycles if cycle["stage"] == stage)
        stages.append(f"<li><h3>{stage}</h3>{here or IDLE}</li>")
    opened = ""
    if not cycles and status["open"]:
        rows = "".join(
            f"<li>cycle {cycle['cycle']} of block {tell(cycle['block'])}, done: "
            f"{tell(', '.join(cycle['stages_done']) or 'nothing yet')}</li>"
            for cycle in status["open"]
        )
        opened = f"<p>Open cycles, which the next run resumes:</p><ul>{rows}</ul>"
    return f'<h2>The ring</h2><ol class="ring">{"".join(stages)}</ol>{opened}'


def show_flight(cycle: dict) -> str:
    share = cycle["share"]
    bar = "" if share is None else f'<progress max="1" value="{min(1.0, max(0.0, share)):.3f}"></progress>'
    state = "" if cycle["is_running"] else " <em>waits</em>"
    head = f"cycle {cycle['cycle']} ({tell(cycle['kind'])}), block {cycle['block']}/{cycle['blocks']}{state}"
    return f'<div class="flight"><strong>{head}</strong>{bar}<p>{tell(cycle["text"])}</p></div>'


def show_rates(status: dict, limit_bytes_per_s: int) -> str:
    rates, rows = status["rates_at_end"] or status["rates"], []
    for name in WINDOWS:
        rate = rates[name]
        if rate["pages_per_s"] is None:
            continue
        is_short = rate["covers_s"] < WINDOWS_S[name] - SLACK_S
        over = f"last {duration(round(rate['covers_s']))}, all that is known" if is_short else f"last {name}"
        share = f" ({rate['bytes_per_s'] / limit_bytes_per_s:.0%} of the limit)" if limit_bytes_per_s else ""
        rows.append((over, format_rate(rate["pages_per_s"]), f"{size(rate['bytes_per_s'])}/s{share}"))
        if is_short:  # longer windows know no more
            break
    limit = f"{size(limit_bytes_per_s)}/s" if limit_bytes_per_s else "none is set"
    disk = status["disk"]
    told = f"Bandwidth limit: {limit}. Disk: {size(disk['used_bytes'])} used, {size(disk['free_bytes'])} free"
    if disk["growth_bytes_per_day"]:
        growth = size(disk["growth_bytes_per_day"])
        told += f", {growth} added per day" if status["running"] else f", {growth} added in the last day"
    busy = ", ".join(f"{stage} {share:.0%}" for stage, share in status["stages"].items())
    told += f". Busy time of the last hour: {busy}." if busy else "."
    if status["rates_at_end"]:
        told = f"No run is at work; the rates are those until {moment(status['work_ended_at_ms'])}. {told}"
    return f"<h2>Rates and limits</h2>{table(('window', 'pages/s', 'bandwidth'), rows)}<p>{tell(told)}</p>"


def show_problems(status: dict) -> str:
    rows = [(problem["what"], problem["do"]) for problem in status["problems"]]
    return "<h2>Problems</h2>" + (table(("what is wrong", "what to do"), rows) if rows else "<p>None.</p>")


def show_errors(status: dict) -> str:
    shown = status["errors"][:ERRORS_SHOWN]
    rows = [
        (row["reason"], row["urls"], row["servers_failing"], row["servers_given_up"], row["example"], row["message"])
        for row in shown
    ]
    headers = ("reason", "URLs", "servers failing", "servers given up", "example", "message")
    more = len(status["errors"]) - len(shown)
    note = f"<p>And {count(more, 'more kind')}.</p>" if more else ""
    return f"<h2>Errors</h2>{table(headers, rows)}{note}"


def show_blocks(status: dict) -> str:
    def due(block: dict) -> str:
        if block.get("damaged"):
            return "damaged"
        if not left_to_fetch(block):
            return "-"
        due_ms = block.get("earliest_due_ms") or 0
        return "now" if due_ms <= status["now_ms"] else moment(due_ms)

    figures = ("known", "collected", "waiting", "servers")
    shown = status["by_block"][:BLOCKS_SHOWN]
    rows = [(block["block"], *(block.get(name, 0) for name in figures), due(block)) for block in shown]
    more = len(status["by_block"]) - len(shown)
    note = f"<p>And {count(more, 'more block')}: bin/status --blocks lists all.</p>" if more else ""
    return f"<h2>Blocks</h2>{table(('block', *figures, 'due'), rows)}{note}"


def table(headers: tuple, rows: list) -> str:
    if not rows:
        return "<p>None yet.</p>"
    numeric = [all(isinstance(row[at], int) for row in rows) for at in range(len(headers))]
    heads = "".join(
        f'<th scope="col"{NUMBER if is_right else ""}>{tell(header)}</th>' for header, is_right in zip(headers, numeric)
    )
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def cell(value: object) -> str:
    if isinstance(value, int):
        return f"<td{NUMBER}>{value:,}</td>"
    return f"<td{mark_long(str(value))}>{tell(value)}</td>"


def show_pictures(pictures: Pictures) -> str:
    if not pictures.version:
        return "<p>The pictures are being made.</p>"

    def draw(part: Part) -> str:
        return f'<img src="/picture/{part.name}.svg?v={pictures.version}" alt="{tell(part.caption)}">'

    notes = "".join(f"<li>{tell(note)}</li>" for note in pictures.notes)
    gaps = f'<div class="partial"><p>These pictures are partial. Not read:</p><ul>{notes}</ul></div>' if notes else ""
    body = "".join(show_section(section, Words(), draw) for section in pictures.sections)
    return f'{gaps}<p class="note">Pictures as of {tell(pictures.as_of)}.</p>{body}'


def make_page(title: str, main: str, question: str = "") -> str:
    """A whole page: the box for a URL on top, then `main`."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{tell(title)}</title>\n<link rel="icon" href="data:,">\n'
        '<link rel="stylesheet" href="/style.css">\n</head>\n<body>\n'
        f'<header><h1><a href="/">{tell(title)}</a></h1>\n<form action="/url" method="get">'
        f'<label>URL <input name="u" type="text" size="60" value="{tell(question)}" required></label> '
        f"<button>What became of it?</button></form></header>\n<main>{main}</main>\n</body>\n</html>\n"
    )
