"""A web with failing servers: Falhas by DuckDB, bin/status and bin/why tell why each URL and server was not had."""

import json

import duckdb
import pytest

from contract import names
from contract.crawl_folder import create
from contract.tables import FAILURES
from supervise.demo import SETTINGS
from supervise.seed import leave
from synthweb import Web
from tests.fetcher_lab import RawServer, ok
from tests.pipeline.judge import committed_cycles, run

WEB_SEED, WEB_SERVERS = 8, 14
RULES = b"User-agent: *\nDisallow: /private\n"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
GIVE_UP = ("verifier.server_backoffs_max=0", "verifier.attempts_max=1", "fetcher.server_failures_max=1")


def settings_of(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--set", text)]


@pytest.fixture
def crawl(synthetic_web, tmp_path):
    """The first cycles of a web whose servers are given up when they fail once, with four that are sure to."""
    state, port = synthetic_web(WEB_SEED, WEB_SERVERS)
    crawl, settings, hosts = tmp_path / "crawl", tmp_path / "pipeline.toml", tmp_path / "hosts"
    hosts.write_text((state / "hosts").read_text() + "127.0.0.1 closed.test strict.test busy.test\n")
    settings.write_text(SETTINGS.format(hosts=hosts))
    create(crawl, 2, hash_seed=17)
    with RawServer(lambda seen: BUSY if seen.host == "busy.test" else ok(RULES)) as server:
        leave(
            crawl,
            [
                *Web(WEB_SEED, WEB_SERVERS, port).seeds(),
                "http://nameless.test/",
                "http://closed.test:1/",
                f"http://strict.test:{server.port}/private",
                f"http://busy.test:{server.port}/",
            ],
        )
        done = run("crawl", "--crawl", crawl, "--config", settings, *settings_of(*GIVE_UP), "--quiet", "--cycles", "4")
    assert done.returncode == 0, done.stderr
    return crawl


def test_every_reason_is_told(crawl):
    tables = f"{crawl}/cycles/*/extractor"
    assert duckdb.sql(f"select * from '{tables}/{names.FAILURES}'").columns == FAILURES.names
    failures, by_reason = f"from '{tables}/{names.FAILURES}'", "group by 1 order by 1"
    pages = duckdb.sql(f"select reason, count(*) {failures} where not is_robots {by_reason}").fetchall()
    collected = f"from '{tables}/{names.COLLECTED}' where outcome <> 'answered'"
    assert pages == duckdb.sql(f"select reason, count(*) {collected} {by_reason}").fetchall()
    assert duckdb.sql(f"select url {failures} where message = '' or failed_at_ms <= 0").fetchall() == []
    robots = dict(duckdb.sql(f"select server, reason {failures} where is_robots").fetchall())
    assert (robots["http://nameless.test"], robots["http://closed.test:1"]) == ("dns", "connection_refused")

    status = json.loads(run("status", "--crawl", crawl, "--json").stdout)
    assert status["reasons"] == dict(pages)
    assert sum(row["failing"] for row in status["server_failures"]) == status["servers_failing"]
    assert sum(row["given_up"] for row in status["server_failures"]) == status["servers_given_up"] > 0
    shown = run("status", "--crawl", crawl).stdout
    for row in status["server_failures"]:
        assert f"{row['reason']}: " in shown and f"such as {row['example']}: {row['message']}" in shown
        assert row["message"]

    ((message,),) = duckdb.sql(f"select message {failures} where server = 'http://nameless.test'").fetchall()
    told = run("why", "--crawl", crawl, "http://nameless.test/").stdout
    assert "given up" in told and "last failure: dns, " in told and message in told
    ((strict,),) = duckdb.sql(f"select url {failures} where server like 'http://strict.test:%'").fetchall()
    told = run("why", "--crawl", crawl, strict).stdout
    assert "refused by robots" in told and told.count("Disallow: /private (line 2, for user-agent *)") == 3
    ((busy,),) = duckdb.sql(f"select server {failures} where server like 'http://busy.test:%'").fetchall()
    told = run("why", "--crawl", crawl, f"{busy}/").stdout
    assert "given up" in told and "last failure: http_5xx, " in told and ": 503 Busy" in told
    checked = run("check", "--crawl", crawl)
    assert checked.returncode == 0 and "Falhas = failed + refused, each with its reason" in checked.stdout

    again = run("extractor", "--crawl", crawl, "--cycle", committed_cycles(crawl)[0], "--out", crawl.parent / "again")
    first = crawl / names.cycle(committed_cycles(crawl)[0]) / names.EXTRACTOR
    assert again.returncode == 0, again.stderr
    assert (crawl.parent / "again" / names.FAILURES).read_bytes() == (first / names.FAILURES).read_bytes()


def test_a_private_address_names_the_setting(tmp_path):
    """A crawl of one's own machine without the setting: status and why say what to set."""
    crawl, hosts = tmp_path / "crawl", tmp_path / "hosts"
    hosts.write_text("127.0.0.1 own.test\n")
    create(crawl, 1, hash_seed=17)
    leave(crawl, ["http://own.test/"])
    settings = settings_of("fetcher.contact=https://example.org/bot", f"fetcher.hosts_file={hosts}")
    done = run("run-cycle", "--crawl", crawl, *settings, "--quiet")
    assert done.returncode == 0, done.stderr
    assert "forbidden_address (fetcher.allow_private_addresses): 1 time" in run("status", "--crawl", crawl).stdout
    told = run("why", "--crawl", crawl, "http://own.test/").stdout
    assert "refused by rule" in told
    assert "127.0.0.1 (loopback) is refused: set fetcher.allow_private_addresses = true to ask it" in told
