"""Failures in a row: fetcher and extractor count the same records alike, also where a robots.txt was redirected."""

from dataclasses import replace

import pytest

from contract.config import Config
from contract.tables import ANSWERED, FAILED, REFUSED
from contract.warc import PageReader
from stages.extractor.observed_servers import Servers
from stages.extractor.recorded_exchange import read_exchange
from stages.fetcher.resume import to_past
from stages.fetcher.server_queues import Known, Server, note_past
from tests.extractor_lab import KEYS, WarcFile, http, server_table

SITE, OTHER = "http://example.com", "http://other.org"
CONFIG = replace(Config().fetcher, server_failures_max=1_000)
BEFORE = 3  # failures of each server


def redirect(file: WarcFile) -> WarcFile:
    return file.robots(SITE, b"", 301, headers=(f"Location: {OTHER}/robots.txt",))


def redirected(status: int, outcome: str, reason: str = "") -> WarcFile:
    """SITE's robots.txt, asked for at OTHER."""
    block = http(b"", status, "text/plain")
    return redirect(WarcFile()).answer(f"{OTHER}/robots.txt", block, outcome, reason, final=False, robots=SITE)


def unanswered(outcome: str, reason: str, **options: str) -> WarcFile:
    return redirect(WarcFile()).no_answer(f"{OTHER}/robots.txt", outcome, reason, robots=SITE, **options)


@pytest.mark.parametrize(
    "file, of_site, of_other",
    [
        (WarcFile(), BEFORE, BEFORE),
        (redirect(WarcFile()), 0, BEFORE),
        (redirected(200, ANSWERED), 0, BEFORE),
        (redirected(404, ANSWERED), 0, BEFORE),
        (redirected(503, FAILED, "http_5xx"), 1, BEFORE),
        (unanswered(FAILED, "timeout_connect", address="192.0.2.1"), 1, BEFORE),
        (unanswered(FAILED, "dns"), 1, BEFORE),
        (unanswered(FAILED, "forbidden_address"), 1, BEFORE),
        (redirected(503, FAILED, "http_5xx").answer(OTHER + "/", http()), 1, 0),
        (redirected(200, ANSWERED).answer(OTHER + "/", http(b"", 503), FAILED, "http_5xx"), 0, BEFORE + 1),
        (WarcFile().robots(SITE, b"", 503, outcome=FAILED, reason="http_5xx"), BEFORE + 1, BEFORE),
        (WarcFile().no_answer(SITE + "/", REFUSED, "robots"), BEFORE, BEFORE),
        (WarcFile().no_answer(SITE + "/", FAILED, "dns_timeout"), BEFORE + 1, BEFORE),
    ],
)
def test_fetcher_and_extractor_count_alike(tmp_path, file, of_site, of_other):
    (tmp_path / "pages.warc.zst").write_bytes(file.data())
    records = list(PageReader(tmp_path / "pages.warc.zst").records())[1:]
    known = {server: {"failures": BEFORE} for server in (SITE, OTHER)}

    observed = Servers(server_table(dict.fromkeys((SITE + "/", OTHER + "/"), 0), known), KEYS, CONFIG)
    for record in records:
        if (exchange := read_exchange(record, is_plain_final=False)) is not None:
            observed.note(exchange)
    by_extractor = {row["server"]: row["failures"] for row in observed.table().to_pylist()}

    servers = {server: Server(server, Known(failures=BEFORE), CONFIG) for server in known}
    note_past(servers, [to_past(record) for record in records if record.type != "request"])
    by_fetcher = {name: server.failures for name, server in servers.items()}

    assert by_extractor == by_fetcher == {SITE: of_site, OTHER: of_other}


def test_the_server_without_rules_has_the_failure_on_record(tmp_path):
    (tmp_path / "pages.warc.zst").write_bytes(unanswered(FAILED, "dns", message="no such name").data())
    observed = Servers(None, KEYS, CONFIG)
    for record in PageReader(tmp_path / "pages.warc.zst").records():
        if (exchange := read_exchange(record, is_plain_final=False)) is not None:
            observed.note(exchange)
    last = {
        row["server"]: (row["last_failure_reason"], row["last_failure_message"]) for row in observed.table().to_pylist()
    }
    assert last == {SITE: ("dns", "no such name"), OTHER: ("", "")}
