"""Manners across fetchers: many hosts per address, in all blocks, judged by the servers' own record."""

import json
import signal
import subprocess
import time
from contextlib import ExitStack

import pytest

from contract import config_file, names
from contract.crawl_folder import create
from supervise.demo import SETTINGS
from supervise.seed import leave
from tests.fetcher_lab import NO_ROBOTS, RawServer, Seen, ok
from tests.pipeline.judge import ROOT, assert_one_at_a_time, collected_urls, run
from tests.pipeline.struck import STAGE, SUPERVISOR, find, strike, wait_for

ADDRESSES, HOSTS_PER_ADDRESS, PAGES = ("127.0.0.1", "127.0.0.2"), 6, 1
BLOCKS, HASH_SEED = 4, 0
SLACK_MS = 10.0  # a fetcher that did not wait would be some 200 ms too early
DELAY_S, DWELL_S = 0.2, 0.2  # the pause, and how long an answer takes: longer than a look at a busy address
KILLS = [(STAGE, "fetcher"), (STAGE, "fetcher"), (SUPERVISOR, ""), (STAGE, "fetcher")]


class SharedAddresses:
    """Servers of two addresses, each with several names whose domains lie in different blocks."""

    def __init__(self, folder, servers: list[RawServer]):
        self.servers, self.path = servers, folder / "crawl"
        self.urls = [
            f"http://www.d{number}-{name}.test:{server.port}/"
            for number, server in enumerate(servers)
            for name in "abcdef"[:HOSTS_PER_ADDRESS]
        ]
        lines = [
            f"{address} {url.split('/')[2].partition(':')[0]}"
            for number, address in enumerate(ADDRESSES)
            for url in self.urls[number * HOSTS_PER_ADDRESS : (number + 1) * HOSTS_PER_ADDRESS]
        ]
        (folder / "hosts").write_text("\n".join(lines) + "\n")
        (folder / "pipeline.toml").write_text(SETTINGS.format(hosts=folder / "hosts"))
        config = config_file.load(
            folder / "pipeline.toml", [f"fetcher.delay_s={DELAY_S}", "supervisor.retry_wait_s=0.01"]
        )
        self.kills_s: list[float] = []
        create(self.path, BLOCKS, HASH_SEED, config=config)
        leave(self.path, self.urls)

    def record(self) -> list[dict]:
        return [
            {
                "host": seen.host,
                "address": seen.address,
                "started_ms": seen.started_s * 1000,
                "ended_ms": self.ended_s(seen) * 1000,
            }
            for server in self.servers
            for seen in server.seen
        ]

    def ended_s(self, seen: Seen) -> float:
        """A request of a fetcher that was killed ended with it; this server notices that only when it answers."""
        kills_s = [moment for moment in self.kills_s if seen.is_left and seen.started_s <= moment]
        return min([seen.ended_s, *kills_s])

    def truth(self) -> set[str]:
        return {f"{url}{page}" for url in self.urls for page in ("", *map(str, range(PAGES)))}


def answer(seen: Seen) -> bytes:
    if seen.target == "/robots.txt":
        return NO_ROBOTS
    return ok("".join(f"<a href=/{number}>{number}</a>" for number in range(PAGES)).encode())


@pytest.fixture
def shared(tmp_path):
    with ExitStack() as stack:
        servers = [stack.enter_context(RawServer(answer, address, dwell_s=DWELL_S)) for address in ADDRESSES]
        yield SharedAddresses(tmp_path, servers)


@pytest.mark.parametrize("scope, kills", [("host and address", []), ("host", KILLS)], ids=["undisturbed", "killed"])
@pytest.mark.long
def test_fetchers_of_several_cycles_never_ask_an_address_at_once(shared, scope, kills):
    """Without the scope "address" too: fetchers know each other's requests by the address only."""
    scoped = ["--set", 'fetcher.delay_scope=["host"]'] if scope == "host" else []
    command = [ROOT / "bin/crawl", "--crawl", shared.path, "--until-done", "--quiet", *scoped]
    code, kills = None, list(kills)
    while code != 0:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        while kills and strike_in_a_request(shared, process, *kills[0]):
            kills.pop(0)
        code = process.wait()
        assert code in (0, 75, -signal.SIGKILL)
    assert not kills
    assert set(collected_urls(shared.path)) == shared.truth()
    assert count_fetchers_at_once(shared) > 1, "the fetchers did not meet"
    assert_one_at_a_time(shared.record(), DELAY_S * 1000, SLACK_MS)
    assert run("check", "--crawl", shared.path).returncode == 0


def strike_in_a_request(shared, process, kind: str, stage: str) -> bool:
    """Kills while both addresses are asked and more than one fetcher runs."""
    found = wait_for(
        process,
        lambda: (
            all(server.busy for server in shared.servers)
            and len(find(process, STAGE, "fetcher")) > 1
            and find(process, kind, stage)
        ),
    )
    shared.kills_s.append(time.monotonic())
    return bool(found) and strike(found[-1])


def count_fetchers_at_once(shared) -> int:
    """The most fetchers that ran at the same time, by the journal."""
    moments = []
    for path in (shared.path / names.JOURNAL).iterdir():
        for line in map(json.loads, path.read_text().splitlines()):
            if line["stage"] == names.FETCHER:
                moments += [(line["begin_ms"], 1), (line["end_ms"], -1)]
    most = running = 0
    for _, change in sorted(moments):
        running += change
        most = max(most, running)
    return most
