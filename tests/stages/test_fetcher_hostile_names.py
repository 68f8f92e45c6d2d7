"""The fetcher against name servers that fail, lie, change their mind or say nothing; all of it on loopback."""

import pytest

from contract.tables import ANSWERED, REFUSED
from stages.fetcher import addresses
from synthweb.hostile import HostileServer
from synthweb.name_answers import REFUSED as REFUSED_CODE
from synthweb.name_answers import (
    fail,
    give,
    give_alias,
    give_nothing,
    in_turn,
    mistake_id,
    mistake_question,
    send_bytes,
    stay_silent,
    truncate,
)
from synthweb.names import NameServer
from tests.fetcher_lab import fetch, finals_in, outcome_of, override, run_fetcher

HOME = "127.77.99.1"
HERE = give(HOME)
MANY = [HOME, *(f"127.78.{number // 250}.{number % 250 + 1}" for number in range(400))]
GOOD = (ANSWERED, "")

NAMES = {
    "plain.test": (HERE, GOOD),
    "alias.test": (give_alias("plain.test"), GOOD),
    "chain.test": (give_alias("alias.test"), GOOD),
    "no-ttl.test": (give(HOME, ttl_s=0), GOOD),
    "cut.test": (truncate(HERE), GOOD),
    "many.test": (give(*MANY), GOOD),
    "mapped.test": (give(f"::ffff:{HOME}"), GOOD),
    "slow-to-tell.test": (in_turn(stay_silent, HERE), GOOD),
    "liar-once.test": (in_turn(mistake_id(give("127.0.0.1")), HERE), GOOD),
    "nowhere.test": (give_nothing(), "dns"),
    "empty.test": (give(), "dns"),
    "alias-to-nowhere.test": (give_alias("nowhere.test"), "dns"),
    "silent.test": (stay_silent, "dns_timeout"),
    "fails.test": (fail(), "dns_timeout"),
    "loop.test": (give_alias("pool.test"), "dns_timeout"),
    "pool.test": (give_alias("loop.test"), "dns_timeout"),
    "refuses.test": (fail(REFUSED_CODE), "dns_timeout"),
    "rubbish.test": (send_bytes(bytes(range(256))), "dns_timeout"),
    "liar.test": (mistake_id(give("127.0.0.1")), "dns_timeout"),
    "other-question.test": (mistake_question(give("127.0.0.1"), "another.test"), "dns_timeout"),
}
FORBIDDEN = {
    "loopback.test": give("127.0.0.1"),
    "home.test": HERE,
    "metadata.test": give("169.254.169.254"),
    "private.test": give("10.0.0.1"),
    "zero.test": give("0.0.0.0"),
    "six.test": give("::1"),
    "mapped.test": give("::ffff:127.0.0.1"),
    "local.test": give("fe80::1"),
    "nat64.test": give("64:ff9b::7f00:1"),
    "sixtofour.test": give("2002:7f00:1::1"),
    "unique.test": give("fd00::1"),
    "alias.test": give_alias("loopback.test"),
    "shared.test": give("100.64.0.1"),
    "multicast.test": give("224.0.0.1"),
}


def fetch_named(folder, server: HostileServer, names: NameServer, urls: list[str], **settings):
    return fetch(
        folder,
        urls,
        {},
        hosts_file="",
        dns_servers=(f"127.0.0.1:{names.port}",),
        **{"dns_timeout_s": 2.0, "retries_max": 0, "server_failures_max": 100, "connect_timeout_s": 2.0, **settings},
    )


def test_each_bad_answer_has_its_reason(tmp_path):
    scripts = {name: script for name, (script, _) in NAMES.items()}
    with HostileServer() as server, NameServer(scripts=scripts) as names:
        urls = {name: f"http://{name}:{server.ports['http']}/plain" for name in NAMES}
        result = fetch_named(tmp_path / "out", server, names, list(urls.values()))
        finals, not_reached = finals_in(tmp_path / "out"), dict(result.not_reached)
        found = {name: outcome_of(finals[url]) if url in finals else not_reached[url] for name, url in urls.items()}
        assert found == {name: expected for name, (_, expected) in NAMES.items()}
        assert {visit.address for visit in server.visits} == {HOME}  # never the address that a liar gave
        assert all(
            names.count(name) <= 12 for name in NAMES
        )  # two tries of two types, each over UDP and TCP, and aliases


def test_no_name_leads_to_a_forbidden_address(tmp_path):
    with HostileServer() as server, NameServer(scripts=FORBIDDEN) as names:
        port = server.ports["http"]
        urls = [
            f"http://{host}:{port}/plain" for host in [*FORBIDDEN, "127.0.0.1", "[::ffff:7f00:1]", "169.254.169.254"]
        ]
        fetch_named(tmp_path / "out", server, names, urls, allow_private_addresses=False)
        finals = finals_in(tmp_path / "out")
        assert {url: outcome_of(finals[url]) for url in urls} == dict.fromkeys(urls, (REFUSED, "forbidden_address"))
        assert server.visits == []


def test_a_name_that_changes_its_mind_gains_nothing(tmp_path, monkeypatch):
    """DNS rebinding: an allowed address first, a forbidden one from then on, with no time to live."""
    # Nothing on loopback is of the public Internet: for this test, one address of it is.
    monkeypatch.setattr(addresses, "is_global", lambda address: str(address) == HOME)
    rebinding = in_turn(give(HOME, ttl_s=0), give("127.0.0.1", ttl_s=0), give("169.254.169.254", ttl_s=0))
    both = give("127.0.0.1", HOME, ttl_s=0)
    with HostileServer() as server, NameServer(scripts={"rebinds.test": rebinding, "both.test": both}) as names:
        urls = [
            f"http://{name}:{server.ports['http']}/{number}"
            for name in ("rebinds.test", "both.test")
            for number in range(5)
        ]
        fetch_named(tmp_path / "out", server, names, urls, allow_private_addresses=False)
        finals = finals_in(tmp_path / "out")
        assert [outcome_of(finals[url]) for url in urls] == [GOOD] * 10
        assert {visit.address for visit in server.visits} == {HOME}
        assert names.count("rebinds.test", "A") == 1


@pytest.mark.parametrize("families", [("ipv4", "ipv6"), ("ipv6", "ipv4"), ("ipv6",)])
def test_the_preferred_kind_of_address_is_asked_for_first(tmp_path, families):
    both = give(HOME, f"::ffff:{HOME}")
    with HostileServer() as server, NameServer(scripts={"both.test": both}) as names:
        url = f"http://both.test:{server.ports['http']}/plain"
        fetch_named(tmp_path / "out", server, names, [url], address_families=families)
        assert outcome_of(finals_in(tmp_path / "out")[url]) == GOOD
        assert names.asked == [("both.test", "A" if families[0] == "ipv4" else "AAAA")]


def test_the_command_survives_them_together(tmp_path):
    """As a process, by DNS: it ends with 0 and tells of every URL once."""
    with HostileServer() as server:
        manners = [
            "plain",
            "chunk-garbage",
            "header-nul",
            "reset-within-body",
            "close-before-head",
            "version-0.9",
            "bomb-br",
            "redirect-file",
        ]
        urls = [*map(server.url, manners), f"http://nowhere.test:{server.ports['http']}/"]
        (tmp_path / "urls.txt").write_text("".join(f"{url}\n" for url in urls))
        with NameServer({name: [address] for name, address in server.hosts().items()}) as names:
            done = run_fetcher(
                tmp_path / "urls.txt",
                "--out",
                tmp_path / "out",
                *override(
                    contact="https://example.org/bot",
                    delay_s=0,
                    retries_max=0,
                    allow_private_addresses=True,
                    dns_servers=f'["127.0.0.1:{names.port}"]',
                ),
            )
    assert done.returncode == 0, done.stderr
    told = {line.split()[-1]: line.split()[0] for line in done.stdout.splitlines()}
    assert len(done.stdout.splitlines()) == len(urls) and set(told) == set(urls)
    assert [told[url] for url in urls] == [
        "200",
        "bad_http",
        "bad_http",
        "disconnect",
        "empty",
        "bad_http",
        "200",
        "302",
        "not_reached:dns",
    ]
