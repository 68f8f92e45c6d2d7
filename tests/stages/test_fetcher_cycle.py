"""The command on a cycle of a crawl folder: its inputs, its lock, its output, its supervisor."""

import json
import os
import struct
import time
from dataclasses import replace
from ipaddress import ip_address

import pyarrow as pa
import pytest

from contract import names, warc
from contract.config import Config
from contract.crawl_folder import create, hold_lock
from contract.plan import Plan, write_plan
from contract.stage import ALIVE_VARIABLE, PROGRESS_VARIABLE
from contract.tables import CYCLE_SERVERS, URL_LIST
from contract.url import server_of
from stages.fetcher.repository import mark_name
from stages.fetcher.server_queues import Known
from stages.fetcher.slots import network_of, slot_of
from stages.fetcher.url_list import read_known_servers
from storage.publish import FORMAT, encode_json, publishing
from storage.tables import write_table
from tests.fetcher_lab import (
    NO_REVISIT,
    NO_ROBOTS,
    PATIENCE_S,
    RawServer,
    finals_in,
    ok,
    outcome_of,
    records_in,
    run_here,
    settings_for,
    start_fetcher,
)

CYCLE = 42


class SmallCycle:
    """A crawl folder with one planned and scheduled cycle."""

    def __init__(
        self, tmp_path, urls: list[str], servers: dict[str, dict] | None = None, kind: str = "crawl", **settings
    ):
        self.crawl = create(tmp_path / "crawl", 1)
        self.folder = self.crawl.path / names.cycle(CYCLE)
        self.out = self.folder / names.FETCHER
        hosts = {"one.test": "127.0.0.1", "two.test": "127.0.0.2"}
        self.config = replace(Config(), fetcher=settings_for(tmp_path / "crawl", hosts, **settings))
        self.now_ms = time.time_ns() // 1_000_000
        write_plan(self.crawl.path, Plan(CYCLE, kind, 0, 1, None, self.now_ms, self.config))
        keys = {"domain_key": 1, "url_key": 2, "server_key": 3}
        rows = [
            {"order": len(urls) - n, "url": url, **keys, "depth": 0, **NO_REVISIT}
            for n, url in enumerate(reversed(urls), 1)
        ]
        with publishing(self.folder / names.SCHEDULER) as manifest:
            write_table(self.folder / names.SCHEDULER / names.URL_LIST, pa.Table.from_pylist(rows, URL_LIST))
            write_table(
                self.folder / names.SCHEDULER / names.SERVERS,
                pa.Table.from_pylist(
                    [
                        {
                            "server": name,
                            "server_key": 3,
                            "domain_key": 1,
                            "robots": None,
                            "robots_expires_at_ms": 0,
                            "delay_ms": 0,
                            "last_request_at_ms": 0,
                            "ready_at_ms": 0,
                            "address": "",
                            "requests": 0,
                            "mean_ms": 0,
                            "failures": 0,
                            "last_failure_reason": "",
                            "last_failure_message": "",
                            "last_failure_at_ms": 0,
                            "sitemaps": [],
                            **(servers or {}).get(name, {}),
                        }
                        for name in dict.fromkeys(map(server_of, urls))
                    ],
                    CYCLE_SERVERS,
                ),
            )
            manifest["stage"] = names.SCHEDULER

    def run(self, *arguments):
        return run_here("--crawl", self.crawl.path, "--cycle", CYCLE, *arguments)

    @property
    def manifest(self) -> dict:
        return json.loads((self.out / names.MANIFEST).read_text())


def test_a_cycle_is_fetched_in_the_list_s_order_and_published_once(tmp_path):
    with RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else ok()) as server:
        urls = [f"http://one.test:{server.port}/{n}" for n in range(4)]
        cycle = SmallCycle(tmp_path, urls, delay_s=0.01)
        done, again = cycle.run(), cycle.run()
        assert server.targets == ["/robots.txt", "/0", "/1", "/2", "/3"]
    assert done.returncode == 0 and not done.stdout, done.stderr
    assert again.returncode == 0 and "is fetched already" in again.stderr
    manifest = cycle.manifest
    assert (manifest["stage"], manifest["cycle"]) == ("fetcher", CYCLE)
    assert manifest["config_digest"] == cycle.config.digest()
    assert list(manifest["inputs"]) == [f"{names.cycle(CYCLE)}/scheduler/manifest.json"]
    assert manifest["counts"] == {
        "listed": 4,
        "answered": 4,
        "failed": 0,
        "refused": 0,
        "not_reached": 0,
        "requests": 5,
        "robots_requests": 1,
        "bytes": len(NO_ROBOTS) + 4 * len(ok()),
    }
    info = records_in(cycle.out)[0]
    assert f"isPartOf: {cycle.crawl.crawl_id}/{CYCLE:08d}\r\n".encode() in info.block
    slots = (cycle.crawl.path / names.SLOTS).read_bytes()
    (ready_at_ms,) = struct.unpack_from("<Q", slots, 8 * slot_of(network_of(ip_address("127.0.0.1"))))
    assert cycle.now_ms < ready_at_ms < cycle.now_ms + PATIENCE_S * 1000


def test_what_earlier_cycles_know_of_servers_is_used(tmp_path):
    with RawServer(lambda seen: ok(b"User-agent: *\nDisallow: /new\n"), "0.0.0.0") as server:
        fresh, stale = f"http://one.test:{server.port}", f"http://two.test:{server.port}"
        in_a_day_ms = time.time_ns() // 1_000_000 + 86_400_000
        old = b"User-agent: *\nDisallow: /old\n"
        cycle = SmallCycle(
            tmp_path,
            [f"{origin}/{page}" for origin in (fresh, stale) for page in ("old", "new")],
            {
                fresh: {"robots": old, "robots_expires_at_ms": in_a_day_ms},
                stale: {"robots": old, "robots_expires_at_ms": 1},
            },
        )
        assert cycle.run().returncode == 0
        assert sorted((seen.host, seen.target) for seen in server.seen) == [
            ("one.test", "/new"),
            ("two.test", "/old"),
            ("two.test", "/robots.txt"),
        ]
    finals = finals_in(cycle.out)
    assert outcome_of(finals[f"{fresh}/old"]) == outcome_of(finals[f"{stale}/new"]) == ("refused", "robots")


def test_what_is_known_of_servers_is_read_from_its_own_columns(tmp_path):
    now_ms = time.time_ns() // 1_000_000
    one, two = "http://one.test", "http://two.test"
    cycle = SmallCycle(
        tmp_path,
        [one + "/", two + "/"],
        {
            one: {
                "robots": b"x",
                "robots_expires_at_ms": now_ms + 10**9,
                "delay_ms": 1,
                "last_request_at_ms": 2,
                "ready_at_ms": 3,
                "failures": 4,
            },
            two: {"ready_at_ms": 1 << 62},
        },
    )
    assert read_known_servers(cycle.folder / names.SCHEDULER, now_ms) == {
        one: Known(robots_text=b"x", delay_ms=1, last_request_at_ms=2, ready_at_ms=3, failures=4),
        two: Known(ready_at_ms=now_ms + 86_400_000),
    }


def test_a_server_is_not_asked_before_it_is_ready(tmp_path):
    with RawServer(lambda seen: ok(b""), "0.0.0.0") as server:
        soon, late = f"http://one.test:{server.port}", f"http://two.test:{server.port}"
        began_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
        cycle = SmallCycle(
            tmp_path,
            [soon + "/", late + "/"],
            {soon: {"ready_at_ms": now_ms + 1500}, late: {"ready_at_ms": now_ms + 3_600_000}},
        )
        assert cycle.run().returncode == 0
        assert {seen.host for seen in server.seen} == {"one.test"} and server.seen[0].started_s - began_s >= 1.4
    assert cycle.manifest["counts"]["not_reached"] == 1


def test_out_writes_elsewhere_and_leaves_the_crawl_alone(tmp_path):
    with RawServer(lambda seen: ok(b"")) as server:
        cycle = SmallCycle(tmp_path, [f"http://one.test:{server.port}/"])
        other = tmp_path / "other"
        assert cycle.run("--out", other).returncode == 0
        assert not cycle.out.exists() and len(finals_in(other)) == 1
        assert cycle.run("--out", other).returncode == 64


def test_damage_and_mistakes_have_their_exit_codes(tmp_path):
    with RawServer(lambda seen: ok(b"")) as server:
        cycle = SmallCycle(tmp_path, [f"http://one.test:{server.port}/"])
        lock = hold_lock(cycle.crawl)
        locked = cycle.run()
        os.close(lock)
        assert locked.returncode == 75 and "another run works here" in locked.stderr
        assert run_here("--crawl", cycle.crawl.path, "--cycle", 7).returncode == 64
        pages = cycle.out / names.PAGES
        pages.mkdir(parents=True)
        (pages / "00000.warc.zst").write_bytes(b"damaged bytes")
        (cycle.out / mark_name(0)).write_bytes(encode_json({"format": FORMAT, "files": {"00000": 13}}))
        damaged = cycle.run()
        assert damaged.returncode == 65 and "set aside as" in damaged.stderr and not (pages / "00000.warc.zst").exists()
        assert cycle.run().returncode == 0 and len(finals_in(cycle.out)) == 1

        table = cycle.folder / names.SCHEDULER / names.URL_LIST
        (cycle.out / names.MANIFEST).unlink()
        table.write_bytes(table.read_bytes()[:-1] + b"x")
        assert cycle.run().returncode == 65 and not table.exists()


def test_only_a_crawl_cycle_fetches(tmp_path):
    done = SmallCycle(tmp_path, ["http://one.test/"], kind="absorb").run()
    assert done.returncode == 64 and "kind absorb" in done.stderr


def test_a_list_with_a_url_that_could_end_a_header_is_refused(tmp_path):
    done = SmallCycle(tmp_path, ["http://one.test/\r\nX: y"]).run()
    assert done.returncode == 65 and "expected a canonical URL" in done.stderr


@pytest.mark.parametrize("orphaned", [False, True])
@pytest.mark.sampled(1)
def test_progress_goes_to_the_supervisor_whose_end_is_ours(tmp_path, orphaned):
    progress, tell = os.pipe()
    alive, hold = os.pipe()
    for descriptor in (tell, alive):
        os.set_inheritable(descriptor, True)

    def answer(seen):
        return (lambda connection: connection.recv(1)) if orphaned and seen.target == "/2" else ok(b"")

    with RawServer(answer) as server:
        cycle = SmallCycle(tmp_path, [f"http://one.test:{server.port}/{n}" for n in range(4)])
        environment = {PROGRESS_VARIABLE: str(tell), ALIVE_VARIABLE: str(alive)}
        process = start_fetcher("--crawl", cycle.crawl.path, "--cycle", CYCLE, pass_fds=(tell, alive), **environment)
        os.close(tell)
        if orphaned:
            server.wait_for(4)
            os.close(hold)
        assert process.communicate(timeout=PATIENCE_S) and process.returncode == (75 if orphaned else 0)
    with open(progress) as lines:
        last = json.loads(lines.readlines()[-1])
    assert last["stage"] == "fetcher" and last["listed"] == 4 and last["pages"] == (2 if orphaned else 4)
    assert set(last) == {
        *("stage", "listed", "pages", "failed", "refused", "waiting", "bytes", "transfers", "lookups", "hosts"),
        *("next_ms", "left_s", "errors", "outage_s"),
    }
    assert last["waiting"] == (2 if orphaned else 0) and last["failed"] == last["refused"] == 0
    assert (cycle.out / names.MANIFEST).exists() is not orphaned
    if orphaned:
        assert sum(record.get(warc.FINAL) == warc.YES for record in records_in(cycle.out)) == 2
    os.close(alive)
