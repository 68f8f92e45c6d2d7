"""Several fetcher processes on one list: what servers see of them, how they stop, die and go on."""

import os
import signal
import subprocess
from itertools import pairwise

import psutil
import pytest

from contract import warc
from contract.config import Fetcher
from stages.fetcher.processes import SHARED_BUDGETS, add_up, part_of, settings_among, share_of
from tests.fetcher_lab import (
    NO_ROBOTS,
    PATIENCE_S,
    RawServer,
    finals_in,
    ok,
    override,
    records_in,
    run_fetcher,
    start_fetcher,
)

HOSTS = 12


@pytest.fixture
def web(tmp_path):
    """Twelve hosts on three addresses, whose pages come slowly enough for requests at the same time to meet."""

    def answer(seen):
        return NO_ROBOTS if seen.target == "/robots.txt" else ok()

    with RawServer(answer, "0.0.0.0", dwell_s=0.01) as server:
        hosts = tmp_path / "hosts"
        hosts.write_text("".join(f"127.0.0.{2 + number % 3} h{number}.test\n" for number in range(HOSTS)))
        server.urls = [f"http://h{number}.test:{server.port}/{page}" for page in range(3) for number in range(HOSTS)]
        (tmp_path / "urls.txt").write_text("\n".join(server.urls))
        server.command = lambda **settings: [
            tmp_path / "urls.txt",
            "--out",
            tmp_path / "out",
            *override(
                **{
                    "delay_s": 0.05,
                    "delay_response_factor": 0,
                    "hosts_file": hosts,
                    "allow_private_addresses": True,
                    **settings,
                }
            ),
        ]
        yield server


def address_of(seen) -> int:
    return int(seen.host[1:].partition(".")[0]) % 3


def test_hosts_and_budgets_are_divided():
    parts = [part_of(f"http://h{number}.test:81", 3) for number in range(100)]
    assert set(parts) == {0, 1, 2} and part_of("https://h5.test", 3) == parts[5]
    config = Fetcher(processes=3, bandwidth_max_bytes_per_s=0, transfers_max=10)
    shares = [share_of(config, number, 3) for number in range(3)]
    assert [share.transfers_max for share in shares] == [4, 3, 3] and {
        share.bandwidth_max_bytes_per_s for share in shares
    } == {0}
    for name in SHARED_BUDGETS:
        assert sum(getattr(share, name) for share in shares) == getattr(config, name)
    assert add_up([{"pages": 1, "errors": {"dns": 1}, "stage": "x"}, {"pages": 2, "errors": {"dns": 2, "tls": 1}}]) == {
        "pages": 3,
        "errors": {"dns": 3, "tls": 1},
    }


def test_several_fetchers_together_stay_within_the_limits():
    config = Fetcher(transfers_max=11, connections_max=22)
    assert settings_among(config, 1) == config
    shares = [settings_among(config, 4) for _ in range(4)]
    assert sum(share.transfers_max for share in shares) == 8 and sum(share.connections_max for share in shares) == 20
    assert "address" in shares[0].delay_scope


def test_each_url_is_fetched_once_and_an_address_is_asked_by_one_process_at_a_time(tmp_path, web):
    done = run_fetcher(*web.command(processes=3))
    assert done.returncode == 0, done.stderr
    assert sorted(line.split()[-1] for line in done.stdout.splitlines()) == sorted(web.urls)
    assert set(finals_in(tmp_path / "out")) == set(web.urls) and len(list((tmp_path / "out").glob("*/*.warc.zst"))) == 3
    assert len(web.seen) == len(web.urls) + HOSTS and not list((tmp_path / "out").glob(".aside*"))
    for address in range(3):
        asked = sorted((seen for seen in web.seen if address_of(seen) == address), key=lambda seen: seen.started_s)
        assert all(after.started_s - before.ended_s >= 0.05 for before, after in pairwise(asked))


def test_a_signal_stops_all_in_order_and_others_go_on(tmp_path, web):
    process = start_fetcher(*web.command(processes=2))
    web.wait_for(10)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 75 and errors.count("run it again") == 1, errors
    done = run_fetcher(*web.command(processes=3))
    assert done.returncode == 0 and set(finals_in(tmp_path / "out")) == set(web.urls), done.stderr
    pages = [seen.target + seen.host for seen in web.seen if seen.target != "/robots.txt"]
    assert len(pages) == len(set(pages)), "what was answered before the end is not asked again"
    assert sum(record.type == "warcinfo" for record in records_in(tmp_path / "out")) == 5


def test_the_death_of_one_ends_all_and_the_next_run_goes_on(tmp_path, web):
    process = start_fetcher(*web.command(processes=2))
    web.wait_for(8)
    victim, *others = psutil.Process(process.pid).children()
    victim.kill()
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1 and not any(other.is_running() for other in others), errors
    done = run_fetcher(*web.command(processes=1))
    assert done.returncode == 0 and set(finals_in(tmp_path / "out")) == set(web.urls), done.stderr
    assert {record.get(warc.OUTCOME) for record in finals_in(tmp_path / "out").values()} == {"answered"}


def test_when_the_first_dies_the_others_end(tmp_path, web):
    process = start_fetcher(*web.command(processes=2, delay_s=1))
    web.wait_for(4)
    children = psutil.Process(process.pid).children()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    gone, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert not alive


def test_what_is_wrong_with_the_configuration_is_told_once(tmp_path, web):
    done = run_fetcher(*web.command(processes=2, hosts_file=tmp_path / "none"))
    assert done.returncode == 78 and done.stderr.count("fetcher.hosts_file") == 1


@pytest.mark.long
def test_a_second_signal_ends_a_team_with_a_stopped_member(tmp_path, web):
    process = start_fetcher(*web.command(processes=2, delay_s=1))
    web.wait_for(4)
    victim, *_ = psutil.Process(process.pid).children()
    victim.suspend()
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE_S) == 75
    process.communicate()
    assert run_fetcher(*web.command(processes=1)).returncode == 0 and set(finals_in(tmp_path / "out")) == set(web.urls)
