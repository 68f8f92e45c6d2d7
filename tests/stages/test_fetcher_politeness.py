"""When a server may be asked: the decision alone, the table of addresses, and what servers see of it."""

import struct
import time
from ipaddress import ip_address
from itertools import pairwise

import pytest

from contract.config import Fetcher
from contract.errors import BadConfiguration
from contract.pause import rested_at_ms
from stages.fetcher.addresses import Gate, is_global
from stages.fetcher.hosts_file import read_hosts_file
from stages.fetcher.politeness import BUSY_ELSEWHERE_MS, Host, Politeness
from stages.fetcher.resolver import Resolver
from stages.fetcher.server_queues import Known
from stages.fetcher.slots import ASKED, FILE_BYTES, SLOTS, FileSlots, MemorySlots, clamp, network_of, slot_of
from tests.fetcher_lab import NO_ROBOTS, RawServer, fetch, ok

DELAY_MS = 1000
ADDRESSES = [network_of(ip_address(f"192.0.2.{number}")) for number in range(10)]


def polite(slots=None, **settings) -> Politeness:
    return Politeness(
        slots or MemorySlots(), Fetcher(**{"delay_s": DELAY_MS / 1000, "delay_response_factor": 0.0, **settings})
    )


def host_with_delay(name: str, pause_ms: int) -> Host:
    host = Host(name)
    host.rest_at_least(pause_ms)
    return host


def test_one_request_at_a_time_and_a_pause_after_each():
    politeness = polite()
    host = Host("a")
    politeness.admit(host, ADDRESSES[1], "d", 0)
    assert politeness.take(0) is host and politeness.take(10**9) is None and politeness.next_at() is None
    politeness.end(host, 500, 0, has_more=True)
    assert politeness.next_at() == 500 + DELAY_MS + 1
    assert politeness.take(500 + DELAY_MS) is None and politeness.take(501 + DELAY_MS) is host


def test_an_address_that_a_killed_process_was_asking_rests_from_the_moment_that_this_is_found(tmp_path):
    """Its request may have ended only then. While that process lives, its lock decides."""
    dying, others = FileSlots(tmp_path / "slots"), [polite(FileSlots(tmp_path / "slots")) for _ in range(2)]
    killed = polite(dying)
    killed.admit(Host("a"), ADDRESSES[3], "d", 0)
    for politeness in others:
        politeness.admit(Host("b"), ADDRESSES[3], "e", 0)
    assert killed.take(0) and others[0].take(0) is None
    assert others[0].next_at() == BUSY_ELSEWHERE_MS
    dying.close()
    assert others[0].take(400) is None and others[0].next_at() == 400 + DELAY_MS + 1
    assert others[1].take(500) is None and others[1].next_at() == 400 + DELAY_MS + 1, "found once for all"
    assert others[0].take(401 + DELAY_MS)


def test_two_fetchers_never_ask_a_host_at_once_that_has_several_addresses(tmp_path):
    """A redirect of robots.txt may lead a fetcher to a host of another one's block."""
    owner, guest = (polite(FileSlots(tmp_path / "slots")) for _ in range(2))
    host, errand = Host("b.test"), Host("b.test")
    owner.admit(host, ADDRESSES[3], "d", 0)
    guest.admit(errand, ADDRESSES[4], "d", 0)
    assert owner.take(0) is host and guest.take(0) is None
    neighbour = Host("c.test")
    guest.admit(neighbour, ADDRESSES[4], "e", 0)
    assert guest.take(0) is neighbour, "the address of the host that is not free was let go"
    guest.end(neighbour, 0, 0, has_more=False)
    owner.end(host, 400, 0, has_more=True)
    assert guest.take(400 + DELAY_MS) is None and guest.take(401 + DELAY_MS) is errand
    assert owner.take(401 + DELAY_MS) is None, "the guest asks it"
    guest.end(errand, 500 + DELAY_MS, 0, has_more=False)
    assert owner.take(500 + 2 * DELAY_MS) is None and owner.take(600 + 2 * DELAY_MS) is host


def test_a_request_that_was_not_made_leaves_the_address_as_it_was(tmp_path):
    first, second = (polite(FileSlots(tmp_path / "slots")) for _ in range(2))
    host = Host("a")
    first.admit(host, ADDRESSES[3], "d", 0)
    first.leave(first.take(0), 0, has_more=False)
    second.admit(Host("b"), ADDRESSES[3], "e", 0)
    assert second.take(0)


def test_hosts_of_one_address_share_its_pause_and_take_turns():
    politeness = polite()
    hosts = [Host(name) for name in "abc"]
    for host in hosts:
        politeness.admit(host, ADDRESSES[7], "d", 0)
    order, now_ms = [], 0
    for _ in range(6):
        host = politeness.take(now_ms)
        assert politeness.take(now_ms) is None
        order.append(host.name)
        politeness.end(host, now_ms, 0, has_more=True)
        now_ms = politeness.next_at()
    assert order == list("abcabc") and now_ms == 6 * (DELAY_MS + 1)


def test_a_slow_host_holds_up_neither_its_neighbours_nor_others():
    politeness = polite()
    slow, neighbour, other = host_with_delay("slow", 60_000), Host("neighbour"), Host("other")
    politeness.admit(slow, ADDRESSES[1], "d", 0)
    politeness.admit(neighbour, ADDRESSES[1], "d", 0)
    politeness.admit(other, ADDRESSES[2], "d", 0)
    assert politeness.take(0) is slow and politeness.take(0) is other
    politeness.end(slow, 0, 0, has_more=True)
    assert politeness.take(DELAY_MS + 1) is neighbour
    politeness.end(neighbour, 2000, 0, has_more=False)
    assert politeness.next_at() == rested_at_ms(0, 60_000)


def test_a_host_that_was_not_asked_does_not_rest():
    politeness = polite()
    first, second = Host("first"), Host("second")
    politeness.admit(first, ADDRESSES[1], "d", 0)
    politeness.admit(second, ADDRESSES[1], "d", 0)
    assert politeness.take(0) is first
    politeness.leave(first, 0, has_more=False)
    assert politeness.take(0) is second


def test_an_address_that_somebody_else_used_meanwhile_is_put_back():
    slots = MemorySlots()
    politeness = polite(slots)
    politeness.admit(Host("a"), ADDRESSES[1], "d", 0)
    slots.release(slot_of(ADDRESSES[1]), 700)
    assert politeness.take(0) is None and politeness.next_at() == 700


def test_a_moment_too_far_off_is_clamped():
    assert clamp(10**15, 1000, 50) == 1050 and clamp(1020, 1000, 50) == 1020
    slots = MemorySlots()
    slots.release(slot_of(ADDRESSES[1]), ASKED - 1)
    politeness = polite(slots)
    politeness.admit(Host("a"), ADDRESSES[1], "d", 10_000)
    assert politeness.next_at() == 10_000 + DELAY_MS + 1
    without_delay = polite(slots, delay_s=0.0)
    without_delay.admit(Host("a"), ADDRESSES[1], "d", 10_000)
    assert without_delay.take(10_000) is not None


def test_slots_outlive_the_process_in_a_file_that_mends_itself(tmp_path):
    path = tmp_path / "slots"
    slots = FileSlots(path)
    slots.release(SLOTS - 1, 1_800_000_000_123)
    slots.close()
    content = path.read_bytes()
    assert len(content) == FILE_BYTES == 8_388_608 and content[-8:] == struct.pack("<Q", 1_800_000_000_123)
    path.write_bytes(content[:100])
    slots = FileSlots(path)
    assert slots[SLOTS - 1] == 0
    slots.release(0, 5)
    assert FileSlots(path)[0] == 5


def test_ipv6_addresses_share_a_slot_by_network():
    def network(text: str) -> bytes:
        return network_of(ip_address(text))

    assert network("2001:db8::1") == network("2001:db8::ffff:2") != network("2001:db8:0:1::1")
    assert slot_of(network("192.0.2.1")) != slot_of(network("192.0.2.2"))


def test_addresses_that_share_a_slot_do_not_wait_for_each_other():
    first, slots = ADDRESSES[0], MemorySlots()
    second = next(
        packed
        for packed in (n.to_bytes(4, "big") for n in range(1 << 20))
        if slot_of(packed) == slot_of(first) and packed != first
    )
    politeness = polite(slots)
    politeness.admit(Host("silent"), first, "d", 0)
    politeness.admit(Host("other"), second, "d", 0)
    assert politeness.take(0).name == "silent" and (other := politeness.take(0)).name == "other"
    politeness.end(other, 100, 0, has_more=True)
    assert politeness.next_at() == rested_at_ms(100, DELAY_MS)


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "100.64.0.1",
        "240.0.0.1",
        "198.18.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "fec0::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "2001:db8::1",
        "100::1",
    ],
)
def test_addresses_that_are_not_of_the_internet(text):
    assert not is_global(ip_address(text))


@pytest.mark.parametrize("text", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_addresses_of_the_internet(text):
    assert is_global(ip_address(text))


def test_the_allowed_addresses_are_taken_in_their_order(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("10.0.0.1 mixed inner\n8.8.8.8 mixed\n::ffff:8.8.8.8 mapped\n")
    private, public = ip_address("10.0.0.1"), ip_address("8.8.8.8")

    def find(name: str, allow_private: bool) -> tuple:
        found = Resolver(Fetcher(hosts_file=str(path)), Gate(allow_private)).look_up(name, 0)
        return found.addresses, found.reason

    assert find("mixed", False) == ([public], "") and find("mixed", True) == ([private, public], "")
    assert find("inner", False) == ([], "forbidden_address") and find("mapped", False) == ([public], "")
    assert find("nobody", True) == ([], "dns")


def test_a_hosts_file_is_read_as_the_system_reads_it(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("# web\n127.0.0.2\tA.test b.test. # two names\n\n::1 b.test\n")
    one, six = ip_address("127.0.0.2"), ip_address("::1")
    assert read_hosts_file(path) == {"a.test": [one], "b.test": [one, six]}
    path.write_text("a.test 127.0.0.1\n")
    with pytest.raises(BadConfiguration, match="line 1: expected an address, found 'a.test'"):
        read_hosts_file(path)
    with pytest.raises(BadConfiguration):
        read_hosts_file(tmp_path / "none")


def least_gap_s(seen: list) -> float:
    """Between the end of an answer and the start of the next request, as the server saw them."""
    ordered = sorted(seen, key=lambda one: one.started_s)
    return min(after.started_s - before.ended_s for before, after in pairwise(ordered))


def test_servers_see_one_request_at_a_time_and_the_pause_between(tmp_path):
    """Three hosts, two of them on one address, of which one wishes a longer pause."""

    def answer(seen):
        if seen.target == "/robots.txt":
            return ok(b"User-agent: *\nCrawl-delay: 0.5\n") if seen.host == "slow.test" else NO_ROBOTS
        return ok()

    with RawServer(answer, dwell_s=0.01) as shared, RawServer(answer, "127.0.0.2", dwell_s=0.01) as alone:
        hosts = {"quick.test": "127.0.0.1", "slow.test": "127.0.0.1", "alone.test": "127.0.0.2"}
        urls = [f"http://{name}:{shared.port}/{n}" for n in range(3) for name in ("quick.test", "slow.test")]
        urls += [f"http://alone.test:{alone.port}/{n}" for n in range(8)]
        result = fetch(tmp_path / "out", urls, hosts, delay_s=0.1)
        assert result.counts["answered"] == len(urls) and shared.busy_most == alone.busy_most == 1
        assert least_gap_s(shared.seen) >= 0.1 and least_gap_s(alone.seen) >= 0.1
        assert least_gap_s([seen for seen in shared.seen if seen.host == "slow.test"]) >= 0.5
        assert alone.seen[-1].started_s < shared.seen[-1].started_s, "the slow one holds up nobody else"


def test_two_ports_of_one_host_are_one_host(tmp_path):
    with RawServer(lambda seen: ok()) as first, RawServer(lambda seen: ok()) as second:
        urls = [f"http://one.test:{server.port}/{n}" for n in range(2) for server in (first, second)]
        fetch(tmp_path / "out", urls, {"one.test": "127.0.0.1"}, delay_s=0.1)
        assert len(first.seen) == len(second.seen) == 3 and least_gap_s(first.seen + second.seen) >= 0.1


def test_a_server_that_cannot_be_asked_in_time_does_not_keep_the_cycle_open(tmp_path):
    def answer(seen):
        return ok(b"User-agent: *\nCrawl-delay: 3600\n") if seen.target == "/robots.txt" else ok()

    with RawServer(answer) as server:
        result = fetch(tmp_path / "out", [f"http://one.test:{server.port}/"], {"one.test": "127.0.0.1"})
        assert result.counts["not_reached"] == 1 and server.targets == ["/robots.txt"]


def test_the_last_request_of_an_earlier_cycle_counts(tmp_path):
    with RawServer(lambda seen: ok()) as server:
        origin = f"http://one.test:{server.port}"
        now_ms = time.time_ns() // 1_000_000
        known = {origin: Known(robots_text=b"", delay_ms=400, last_request_at_ms=now_ms)}
        before_s = time.monotonic()
        fetch(tmp_path / "out", [f"{origin}/"], {"one.test": "127.0.0.1"}, known=known)
        assert server.seen[0].started_s - before_s >= 0.35
        known = {origin: Known(robots_text=b"", last_request_at_ms=now_ms + 10**9)}
        fetch(tmp_path / "future", [f"{origin}/"], {"one.test": "127.0.0.1"}, known=known)
        assert len(server.seen) == 2


def test_no_more_transfers_than_allowed(tmp_path):
    with RawServer(lambda seen: ok(), "0.0.0.0", dwell_s=0.005) as server:
        hosts = {f"h{n}.test": f"127.0.0.{n + 1}" for n in range(20)}
        fetch(tmp_path / "out", [f"http://{name}:{server.port}/" for name in hosts], hosts, transfers_max=2)
        assert server.busy_most == 2 and len(server.seen) == 40
