"""What a crawl leaves behind when only servers that are not due are left: how many URLs of which servers, and why."""

import numpy as np

from contract import names
from contract.generation import BLOCK_SERVERS, SERVERS_FILE
from contract.terminal import make_plain
from contract.units import count, moment
from storage.tables import column, read_table
from supervise.crawl_state import CrawlState

SERVERS_SHOWN = 10


def describe_left(crawl_state: CrawlState) -> str:
    """A line in all, and one per server, those with most URLs first."""
    rows: list[tuple[int, str, int, str, str]] = []
    for block in range(crawl_state.log.blocks):
        generation = crawl_state.log.generation(block)
        if generation is not None:
            rows += read_left(crawl_state.path / names.generation(block, generation) / SERVERS_FILE)
    rows.sort(key=lambda row: (-row[0], row[1]))
    urls = sum(row[0] for row in rows)
    lines = [f"left: {count(urls, 'URL')} of {count(len(rows), 'server')}"]
    for number, server, due_at_ms, reason, message in rows[:SERVERS_SHOWN]:
        why = f"{reason}: {message}" if message and message != reason else reason or "it asked for time"
        lines.append(make_plain(f"  {server}: {count(number, 'URL')}, due {moment(due_at_ms)}; {why}"))
    if len(rows) > SERVERS_SHOWN:
        lines.append(f"  and {count(len(rows) - SERVERS_SHOWN, 'more server')}")
    return "\n".join(lines)


def read_left(path) -> list[tuple[int, str, int, str, str]]:
    """Waiting URLs, server, due moment, and its last failure, of each server of a generation that has something left.

    `waiting` counts prescheduled URLs too.
    """
    wanted = ["server", "waiting", "due_at_ms", "given_up", "last_failure_reason", "last_failure_message"]
    table = read_table(path, BLOCK_SERVERS, columns=wanted)
    rows = np.flatnonzero((column(table, "waiting") > 0) & ~column(table, "given_up").astype(bool))
    columns = [column(table, name)[rows].tolist() for name in wanted if name != "given_up"]
    return [(waiting, server, due, reason, message) for server, waiting, due, reason, message in zip(*columns)]
