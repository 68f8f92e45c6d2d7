"""An outage of one's own network: recognised by local evidence only, waited out, and charged to nobody.

The tests that need a network to be down run in a thread with a network namespace of its own, that has only loopback.
"""

import ctypes
import os
import subprocess
import threading
from collections import Counter
from functools import partial

import pytest

from contract import names
from stages.fetcher.outage import DOMAINS_LEAST, LOOK_LEAST_S, NAMES, ROUTE, Held, Outage, has_route
from synthweb.name_answers import fail, stay_silent
from synthweb.names import NameServer
from tests.fetcher_lab import (
    NO_ROBOTS,
    PATIENCE_S,
    RawServer,
    fetch,
    finals_in,
    ok,
    outcome_of,
    override,
    records_in,
    run_fetcher,
    start_fetcher,
)

CLONE_NEWNET = 0x40000000  # unshare(2); the module os has it from Python 3.12 on
PAGES = 4  # per host
HOSTS = 12  # enough for each of two processes to have three


def in_own_network(work) -> None:
    """Calls `work` in a thread whose network, and that of every process it starts, has only loopback; needs root."""
    failures: list[BaseException] = []

    def enter() -> None:
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
                reason = os.strerror(ctypes.get_errno())
                give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
                give_up(f"cannot make a network namespace: {reason}")
            run_ip("link", "set", "lo", "up")
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    for error in failures:
        raise error


def run_ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


class Record:
    """Failures that are held back, and what became of them."""

    def __init__(self):
        self.failed, self.asked_again = [], []
        self.outage = Outage()

    def hold(self, kind: str, *domains: str) -> None:
        for domain in domains:
            fail, ask_again = partial(self.failed.append, domain), partial(self.asked_again.append, domain)
            self.outage.hold(Held(kind, domain, fail, ask_again))


def test_three_domains_without_a_success_in_between_are_a_doubt():
    record = Record()
    outage = record.outage
    record.hold(ROUTE, "a.test", "a.test", "b.test")
    record.hold(NAMES, "c.test", "d.test")
    assert not outage.is_doubted and DOMAINS_LEAST == 3
    outage.note_success(ROUTE, 1)
    assert record.failed == ["a.test", "a.test", "b.test"] and not record.asked_again
    record.hold(ROUTE, "e.test", "f.test")
    assert not outage.is_doubted
    record.hold(NAMES, "g.test")
    assert outage.is_doubted and outage.doubted_kinds() == [NAMES] and not outage.is_down
    outage.note_success(NAMES, 2)
    assert not outage.is_doubted and record.failed[3:] == ["c.test", "d.test", "g.test"]
    assert outage.fail() and record.failed[6:] == ["e.test", "f.test"] and not outage.fail()


def test_when_nothing_else_is_left_one_domain_without_a_name_is_a_doubt():
    record = Record()
    assert not record.outage.doubt_names()
    record.hold(ROUTE, "a.test", "b.test")
    assert not record.outage.doubt_names(), "an intranet may have no route to the world"
    record.hold(NAMES, "c.test")
    assert record.outage.doubt_names() and record.outage.doubted_kinds() == [NAMES] and not record.failed


def test_an_outage_stops_the_clock_and_what_was_held_back_is_asked_again():
    record = Record()
    outage = record.outage
    record.hold(ROUTE, "a.test", "b.test", "c.test")
    outage.begin(1000)
    record.hold(NAMES, "d.test")
    assert outage.is_down and outage.lasted_ms(1500) == outage.present_ms(1500) == 500
    outage.end(3000)
    assert record.asked_again == ["a.test", "b.test", "c.test", "d.test"] and not record.failed
    assert not outage.is_doubted
    assert outage.lasted_ms(9000) == 2000 and outage.present_ms(9000) == 0
    record.hold(ROUTE, "a.test", "b.test", "c.test")
    outage.begin(10_000)
    outage.note_success(NAMES, 11_000)
    assert outage.is_down, "that names are told does not show that there is a route"
    outage.note_success(ROUTE, 12_000)
    assert not outage.is_down and outage.lasted_ms(20_000) == 4000


class Web:
    """A list of pages of several domains, all at addresses that no route leads to until connect() is called."""

    def __init__(self, tmp_path, **settings):
        self.out = tmp_path / "out"
        self.server = RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else ok(), "0.0.0.0")
        hosts = tmp_path / "hosts"
        lines = [f"198.51.100.{number + 1} www.d{number}.test" for number in range(HOSTS)]
        hosts.write_text("\n".join([*lines, "127.0.0.1 here.test"]))
        self.urls = [
            f"http://www.d{number}.test:{self.server.port}/{page}" for page in range(PAGES) for number in range(HOSTS)
        ]
        self.list = tmp_path / "urls.txt"
        self.list.write_text("\n".join(self.urls))
        self.command = [
            self.list,
            "--out",
            self.out,
            *override(
                **{
                    "delay_s": 0,
                    "delay_response_factor": 0,
                    "hosts_file": hosts,
                    "allow_private_addresses": True,
                    "server_failures_max": 1,
                    "outage_max_s": PATIENCE_S,
                    **settings,
                }
            ),
        ]

    def connect(self) -> None:
        run_ip("address", "add", "198.51.100.1/24", "dev", "lo")

    def outcomes(self) -> Counter:
        return Counter(outcome_of(record) for record in finals_in(self.out).values())


def read_until(process: subprocess.Popen, words: str, times: int = 1) -> str:
    """What a program says up to the line that holds the words, or holds them for the last of so many times."""
    said = ""
    for line in process.stderr:
        said += line
        if said.count(words) >= times:  # two processes may write into one line
            return said
    raise AssertionError(f"expected {words!r}, found {said!r}")


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.sampled(1)
def test_an_outage_is_waited_out_and_charged_to_nobody(tmp_path, needs, processes):
    needs("ip")

    def work():
        web = Web(tmp_path, processes=processes)
        with web.server:
            assert not has_route(["198.51.100.1", "192.0.2.1", "2001:db8::1"])
            assert has_route(["198.51.100.1", "127.0.0.1"])
            process = start_fetcher(*web.command)
            said = read_until(process, "the network is down here (no route to any address", processes)
            assert f"waiting for up to {PATIENCE_S:g} s" in said and not web.server.seen
            web.connect()
            out, rest = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0 and rest.count("the network is back after") == processes, rest
        assert web.outcomes() == {("answered", ""): len(web.urls)}
        assert {record.type for record in records_in(web.out)} == {"warcinfo", "request", "response"}

    in_own_network(work)


@pytest.mark.long
def test_the_clock_of_a_cycle_stops_in_an_outage(tmp_path, needs):
    needs("ip")

    def work():
        web = Web(tmp_path, cycle_max_s=3 * LOOK_LEAST_S - 0.1)
        with web.server:
            process = start_fetcher(*web.command)
            read_until(process, "the network is down here")
            threading.Event().wait(
                LOOK_LEAST_S + 0.5
            )  # longer than to the first look; the second is after 3 * LOOK_LEAST_S
            web.connect()
            process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0 and set(web.outcomes()) == {("answered", "")}

    in_own_network(work)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.sampled(1)
def test_an_outage_that_lasts_leaves_the_cycle_open(tmp_path, needs, processes):
    needs("ip")

    def work():
        web = Web(tmp_path, processes=processes, outage_max_s=0.2)
        with web.server:
            done = run_fetcher(*web.command)
            assert done.returncode == 75 and "the network is down here" in done.stderr, done.stderr
            assert not (web.out / names.MANIFEST).exists()
            assert {record.type for record in records_in(web.out)} == {"warcinfo"}
            if processes == 1:
                assert "the network has been down here for 0.2 s (no route to any address): run it again" in done.stderr
            web.connect()
            assert run_fetcher(*web.command).returncode == 0 and web.outcomes() == {("answered", ""): len(web.urls)}

    in_own_network(work)


def test_two_domains_without_a_route_are_no_outage(tmp_path, needs):
    needs("ip")

    def work():
        web = Web(tmp_path, server_failures_max=10)
        web.list.write_text("\n".join(url for url in web.urls if ".d0." in url or ".d1." in url))
        with web.server:
            done = run_fetcher(*web.command)
        assert done.returncode == 0 and "network" not in done.stderr, done.stderr
        robots = [record for record in records_in(web.out) if record.type == "metadata"]
        assert [outcome_of(record) for record in robots] == [("failed", "unreachable")] * 2

    in_own_network(work)


def test_a_dead_prefix_is_no_outage_while_another_answers(tmp_path, needs):
    needs("ip")

    def work():
        web = Web(tmp_path)
        here = [f"http://here.test:{web.server.port}/{page}" for page in range(PAGES)]
        web.list.write_text("\n".join([*here, *web.urls]))
        run_ip("address", "add", "192.0.2.1/32", "dev", "lo")  # as a machine that has a route to the world
        with web.server:
            done = run_fetcher(*web.command)
        assert done.returncode == 0 and "network" not in done.stderr, done.stderr
        assert web.outcomes() == {("answered", ""): PAGES}
        assert sum(outcome_of(record) == ("failed", "unreachable") for record in records_in(web.out)) == HOSTS

    in_own_network(work)


def test_dead_servers_are_no_outage(tmp_path):
    """Refused connections, and one that takes none: nothing of it tells about this machine."""
    with RawServer(lambda seen: ok()) as server:
        port = server.port
    hosts = {f"www.d{number}.test": f"127.0.0.{number + 1}" for number in range(HOSTS)}
    result = fetch(tmp_path / "out", [f"http://{name}:{port}/" for name in hosts], hosts)
    assert result.errors == {"connection_refused": HOSTS} and result.counts["not_reached"] == HOSTS


@pytest.mark.long
@pytest.mark.parametrize("count, named", [(HOSTS, "d0.test, d1.test, d10.test"), (1, "d0.test")])
def test_where_no_name_server_answers_it_is_waited_for(tmp_path, count, named):
    hosts = {f"www.d{number}.test": ["127.0.0.1"] for number in range(count)}
    with RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else ok()) as server:
        urls = [f"http://{name}:{server.port}/" for name in hosts]
        (tmp_path / "urls.txt").write_text("\n".join(urls))
        with NameServer() as gone:
            port = gone.port
        process = start_fetcher(
            tmp_path / "urls.txt",
            "--out",
            tmp_path / "out",
            *override(
                dns_servers=f'["127.0.0.1:{port}"]',
                dns_timeout_s=0.5,
                delay_s=0,
                delay_response_factor=0,
                allow_private_addresses=True,
                outage_max_s=PATIENCE_S,
            ),
        )
        read_until(process, f"the network is down here (no name server answers: {named})")
        with NameServer(hosts, port=port):
            _, rest = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0 and "the network is back after" in rest
    assert Counter(outcome_of(record) for record in finals_in(tmp_path / "out").values()) == {("answered", ""): count}


@pytest.mark.parametrize("count", [1, HOSTS])
@pytest.mark.parametrize("script", [stay_silent, fail()])
def test_names_that_nobody_tells_are_no_outage_while_the_name_server_answers(tmp_path, script, count):
    hosts = [f"www.d{number}.test" for number in range(count)]
    with NameServer(scripts=dict.fromkeys(hosts, script)) as server:
        result = fetch(
            tmp_path / "out",
            [f"http://{name}/" for name in hosts],
            {},
            hosts_file="",
            dns_timeout_s=0.3 if script is stay_silent else 60.0,
            dns_servers=(f"127.0.0.1:{server.port}",),
        )
    assert result.errors == {"dns_timeout": count} and result.counts["not_reached"] == count
    # It is asked about the root only where it says nothing else.
    assert any(name == "" for name, _ in server.asked) == (script is stay_silent)
