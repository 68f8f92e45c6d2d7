"""What kills the fetcher: asked last and alone, charged only as the cause, and never for a fault of the machine."""

import signal
import struct
from collections import Counter

import psutil
import pytest

from contract import names
from contract.config import Fetcher
from contract.stage import OTHERS_PASS_VARIABLE
from stages.fetcher.server_queues import HostWork, Known, Server
from stages.fetcher.suspects import FRUITLESS_MAX, IN_FLIGHT, Run, forget_runs, judge, key_of, read_suspects, withhold
from tests.fetcher_lab import NO_ROBOTS, PATIENCE_S, RawServer, finals_in, ok, outcome_of, override, start_fetcher

ATTEMPTS = 4  # that the supervisor grants
CHARGED = ("failed", "killed_fetcher")
DEADLY = {f"/{number}" for number in (3, 17, 29, 30, 41, 44)}
A, B, C, POISON = (key_of(name) for name in ("a", "b", "c", "poison"))


def runs(*left: tuple[int, int, set[int]]) -> list[Run]:
    """Of (attempt, pages that passed, keys in flight), in their order."""
    return [Run(attempt, number, passed, frozenset(keys)) for number, (attempt, passed, keys) in enumerate(left)]


@pytest.mark.parametrize(
    "left, charged",
    [
        ([], set()),
        ([(1, 9, {A, POISON})], set()),
        ([(1, 9, {A, POISON}), (2, 9, {POISON})], set()),
        ([(1, 9, {A, POISON}), (2, 9, {POISON}), (2, 0, {POISON})], {POISON}),
        ([(1, 9, {A, POISON}), (2, 9, set()), (2, 0, {POISON}), (2, 0, {POISON})], {POISON}),
        ([(1, 9, {POISON}), (2, 0, {POISON})], {POISON}),
        ([(1, 9, {A, POISON}), (2, 0, {POISON}), (2, 0, {POISON})], set()),  # nothing else passed in attempt 2
        ([(1, 9, {A, POISON}), (2, 9, {POISON}), (2, 1, {A})], set()),  # each was alone only once
        ([(1, 9, {A}), (2, 9, {B}), (3, 9, {C})], set()),  # killed at any moment
        ([(1, 9, set()), (2, 0, set())], set()),  # ended in order
    ],
)
def test_who_is_charged(left, charged):
    found = judge(reversed(runs(*left)))
    assert found.charged == charged and found.attempt == max([0, *(run[0] for run in left)]) + 1 and found.next_run == 0
    assert found.keys == {key for _, _, in_flight in left for key in in_flight}
    assert found.deaths == sum(bool(run[2]) for run in left)
    assert found.are_asked and not found.is_hopeless, "a new attempt asks them"


def test_pages_of_other_blocks_that_pass_in_the_same_run_count_too():
    left = runs((1, 0, {POISON}), (2, 0, {POISON}))
    assert judge(left).charged == set() and judge(left, others_pass=True).charged == {POISON}
    assert judge(runs((1, 0, {A, POISON}), (2, 0, {POISON})), others_pass=True).charged == set(), "alone only once"


@pytest.mark.parametrize(
    "left, are_asked, is_hopeless",
    [
        ([(2, 9, {A}), (2, 0, {B})], True, False),
        ([(2, 9, {A}), *[(2, 0, {B})] * (FRUITLESS_MAX - 1)], False, False),
        ([(2, 9, {A}), *[(2, 0, {B})] * FRUITLESS_MAX], False, True),
        ([(2, 9, {A}), *[(2, 0, {B})] * (FRUITLESS_MAX - 1), (2, 1, {C}), (2, 0, {POISON})], True, False),
        ([(2, 0, {A})] * FRUITLESS_MAX, False, True),  # nothing passed at all
    ],
)
def test_when_an_attempt_gives_up(left, are_asked, is_hopeless):
    found = judge(runs((1, 9, {A, B, C, POISON}), *left), attempt=2)
    assert (found.attempt, found.next_run) == (2, len(left) + 1)
    assert (found.are_asked, found.is_hopeless) == (are_asked, is_hopeless)


def test_files_of_any_content_are_read(tmp_path):
    assert read_suspects(tmp_path).attempt == 1
    (tmp_path / f"{IN_FLIGHT}00001-00000").write_bytes(struct.pack("<4Q", 7, 0, A, B))
    (tmp_path / f"{IN_FLIGHT}00001-00001").write_bytes(struct.pack("<2Q", 0, C) + b"torn")
    (tmp_path / f"{IN_FLIGHT}00002-00000").write_bytes(b"")
    (tmp_path / f"{IN_FLIGHT}00003-00007").write_bytes(b"abc")
    (tmp_path / f"{IN_FLIGHT}x").write_bytes(b"not ours")
    found = read_suspects(tmp_path)
    assert found.attempt == 4 and found.keys == {A, B, C} and not found.charged and found.likely == {C}
    going_on = read_suspects(tmp_path, 3)
    assert (going_on.attempt, going_on.next_run) == (3, 8)
    forget_runs(tmp_path, going_on._replace(next_run=7))
    assert read_suspects(tmp_path).attempt == 3


def test_suspects_wait_and_those_behind_a_robots_txt_follow_it():
    host, config = HostWork("a.test"), Fetcher()
    plain, secure = Server("http://a.test", Known(), config), Server("https://a.test", Known(), config)
    for server in (plain, secure):
        host.add(server)
        server.urls.extend(f"{server.name}/{number}" for number in range(4))
    before = [*plain.urls, *secure.urls]
    third = key_of("http://a.test/3")
    found = judge(runs((1, 9, {key_of("http://a.test/2"), third, key_of("https://a.test")}), (2, 9, {third})))
    groups = withhold([host], found)
    assert list(plain.urls) == ["http://a.test/0", "http://a.test/1"] == found.without(before) and not secure.urls
    assert [(group.is_careful, [url for _, url in group.urls]) for group in groups] == [
        (True, ["http://a.test/2", "https://a.test/0"]),
        (True, ["http://a.test/3"]),
        (False, [f"https://a.test/{n}" for n in (1, 2, 3)]),
    ]
    assert withhold([host], judge([])) == []


def test_once_others_have_passed_the_likely_one_is_asked_first():
    host, config = HostWork("a.test"), Fetcher()
    server = Server("http://a.test", Known(), config)
    host.add(server)
    server.urls.extend(f"{server.name}/{number}" for number in range(3))
    first, second = key_of("http://a.test/1"), key_of("http://a.test/2")
    groups = withhold([host], judge(runs((1, 9, {first, second}), (2, 9, {second})), attempt=2))
    assert [[url for _, url in group.urls] for group in groups] == [["http://a.test/2"], ["http://a.test/1"]]


class Killer:
    """A web whose server kills the process that asks for certain pages, before it answers."""

    def __init__(self, tmp_path, pages: int, is_deadly, dwell_s: float = 0.0, **settings):
        self.out = tmp_path / "out"
        self.is_deadly = is_deadly
        self.process = None
        self.kills = 0
        hosts = tmp_path / "hosts"
        hosts.write_text("".join(f"127.0.0.{number + 2} h{number}.test\n" for number in range(5)))
        self.server = RawServer(self._answer, "0.0.0.0", dwell_s=dwell_s)
        self.urls = [f"http://h{number % 5}.test:{self.server.port}/{number}" for number in range(pages)]
        (tmp_path / "urls.txt").write_text("\n".join(self.urls))
        self.command = [
            tmp_path / "urls.txt",
            "--out",
            self.out,
            *override(
                **{
                    "delay_s": 0,
                    "delay_response_factor": 0,
                    "hosts_file": hosts,
                    "allow_private_addresses": True,
                    **settings,
                }
            ),
        ]

    def _answer(self, seen):
        if self.is_deadly(seen):
            return self._kill
        return NO_ROBOTS if seen.target == "/robots.txt" else ok()

    def _kill(self, connection) -> None:
        """Kills the one process that has the other end of the connection, and waits for its end."""
        port = connection.getpeername()[1]
        try:
            main = psutil.Process(self.process.pid)
            for process in (main, *main.children()):
                if any(other.laddr.port == port for other in process.net_connections("tcp") if other.laddr):
                    self.kills += 1
                    process.kill()
        except psutil.NoSuchProcess:
            pass  # killed by the answer to another of its requests
        connection.recv(1)  # until the kernel has closed it

    def run(self) -> int:
        """One attempt, as the supervisor makes it; its exit code."""
        self.process = start_fetcher(*self.command)
        _, self.said = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode

    def run_all(self) -> list[int]:
        codes = []
        while 0 not in codes and len(codes) < ATTEMPTS:
            codes.append(self.run())
        return codes

    def outcomes(self) -> Counter:
        return Counter(outcome_of(record) for record in finals_in(self.out).values())


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.sampled(1)
def test_a_page_that_kills_the_fetcher_is_charged_and_all_others_are_collected(tmp_path, processes):
    killer = Killer(tmp_path, 50, lambda seen: seen.target == "/17", processes=processes)
    with killer.server:
        codes = killer.run_all()
    assert codes == [-signal.SIGKILL if processes == 1 else 1, 0] and killer.kills >= 2, killer.said
    assert outcome_of(finals_in(killer.out)[killer.urls[17]]) == CHARGED
    assert killer.outcomes() == {("answered", ""): 49, CHARGED: 1}
    assert (killer.out / names.MANIFEST).exists() and not list(killer.out.glob(".aside*"))


def test_suspects_are_asked_last_and_with_nothing_else_in_flight(tmp_path):
    asked = []

    def is_deadly(seen):
        server = f"http://{seen.host}:{killer.server.port}"
        asked.append((server if seen.target == "/robots.txt" else server + seen.target, killer.server.busy))
        return seen.target == "/17"

    killer = Killer(tmp_path, 50, is_deadly, dwell_s=0.02)
    with killer.server:
        assert killer.run() == -signal.SIGKILL
        suspects = read_suspects(killer.out)
        before = {url for url, _ in asked}
        asked.clear()
        assert len(suspects.keys) > 1 and killer.run() == 0
    order = [url for url, _ in asked]
    others = [order.index(url) for url in suspects.without(killer.urls) if url not in before]
    assert others and max(others) < min(order.index(url) for url in order if key_of(url) in suspects.keys)
    assert {busy for url, busy in asked if key_of(url) in suspects.keys} == {1}


def test_a_robots_txt_that_kills_the_fetcher_is_charged_to_its_server(tmp_path):
    killer = Killer(tmp_path, 20, lambda seen: seen.target == "/robots.txt" and seen.host == "h3.test")
    with killer.server:
        codes = killer.run_all()
    assert codes[-1] == 0 and 2 <= killer.kills <= 3, killer.said
    assert killer.outcomes() == {("answered", ""): 16}, "no page of that server was asked for"
    assert not any(seen.host == "h3.test" and seen.target != "/robots.txt" for seen in killer.server.seen)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.sampled(1)
def test_where_every_request_kills_nobody_is_charged(tmp_path, processes):
    killer = Killer(tmp_path, 20, lambda seen: seen.target != "/robots.txt", processes=processes)
    with killer.server:
        codes = killer.run_all()
        assert killer.outcomes() == {}, "the pages are not charged"
        killer.is_deadly = lambda seen: False
        while killer.run():
            codes.append(75)
    assert CHARGED not in killer.outcomes() and set(killer.outcomes()) <= {("answered", "")}


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.sampled(1)
def test_a_page_that_kills_and_is_alone_in_its_list_is_named_and_charged_once_others_pass(
    tmp_path, processes, monkeypatch
):
    killer = Killer(tmp_path, 1, lambda seen: seen.target == "/0", processes=processes)
    with killer.server:
        codes = killer.run_all()
        assert 75 not in codes and 0 not in codes and killer.outcomes() == {}, (
            "a death, not a wish to be run again later"
        )
        assert f"It was asking for {killer.urls[0]}; [scope] reject_surts" in killer.said, killer.said
        monkeypatch.setenv(OTHERS_PASS_VARIABLE, "yes")
        assert killer.run() == 0 and killer.outcomes() == {CHARGED: 1}


def test_many_pages_that_kill_do_not_hold_up_the_list(tmp_path):
    killer = Killer(tmp_path, 50, lambda seen: seen.target in DEADLY)
    with killer.server:
        codes = killer.run_all()
    assert codes == [-signal.SIGKILL, 0], killer.said
    charged = {url.rpartition("/")[2] for url, record in finals_in(killer.out).items() if outcome_of(record) == CHARGED}
    assert charged and {f"/{page}" for page in charged} <= DEADLY, killer.said
    ended = killer.outcomes()["answered", ""] + len(charged)
    assert ended == 50 or "left to a later cycle" in killer.said, killer.said


def test_an_end_in_order_leaves_no_suspects(tmp_path):
    held = []

    def is_deadly(seen):
        if seen.target == "/7":
            held.append(seen)
            killer.process.send_signal(signal.SIGTERM)
            killer.process.send_signal(signal.SIGTERM)
        return False

    killer = Killer(tmp_path, 20, is_deadly)
    with killer.server:
        assert killer.run() == 75
        assert not read_suspects(killer.out).keys
        killer.is_deadly = lambda seen: False
        assert killer.run() == 0 and killer.outcomes() == {("answered", ""): 20}
