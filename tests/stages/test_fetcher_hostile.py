"""The fetcher against every bad manner of synthweb/hostile.py.

Each URL ends once, for the right reason, and nothing hangs.
"""

import time
from types import SimpleNamespace

import pytest

from contract import warc
from contract.tables import ANSWERED, FAILED, REFUSED
from synthweb.hostile import HostileServer
from synthweb.manners import MANNERS, ROBOTS
from tests.fetcher_lab import PATIENCE_S, fetch, finals_in, outcome_of, records_in

SETTINGS = {
    "retries_max": 0,
    "server_failures_max": 1_000,
    "body_max_bytes": 300_000,
    "header_max_bytes": 64 << 10,
    "connect_timeout_s": 6.0,
    "slow_bytes_per_s": 100,
    "slow_s": 6.0,
    "total_timeout_s": 120.0,
    "cycle_max_s": 2 * PATIENCE_S,
}


def expect(outcome: str, why: str | int, *manners: str) -> dict[str, tuple[str, str | int]]:
    return dict.fromkeys(manners, (outcome, why))


def all_named(beginning: str) -> list[str]:
    return [name for name in MANNERS if name.startswith(beginning)]


# What is expected of each manner: a status where there is an answer to keep, a reason where there is none.
EXPECTED = (
    expect(
        ANSWERED,
        200,
        "plain",
        "empty-body",
        "keep",
        "set-cookie",
        "accept-answer",
        *all_named("bomb-"),
        *all_named("encoding-"),
    )
    | expect(ANSWERED, 200, "endless-body", "endless-chunks", "endless-small-chunks")  # what fits is kept, and marked
    | expect(
        ANSWERED,
        200,
        "chunk-extension-long",
        "length-twice-same",
        "length-list",
        "length-smaller",
        "length-and-chunked",
        "length-overflow",
        "transfer-chunked-twice",
        "transfer-identity",
        "reset-after-answer",
        "interim-100-once",
        "lf-only",
    )
    | expect(
        ANSWERED,
        200,
        *all_named("keep-then-"),
        *all_named("second-answer"),
        "version-1.0",
        "version-2",
        "status-no-reason",
    )
    | expect(
        ANSWERED,
        200,
        "header-like-warc",
        "header-folded",
        "header-8-bit",
        "header-control",
        "header-no-name",
        "header-blank-name",
        "header-type-long",
    )
    | expect(ANSWERED, 302, *all_named("redirect-"))
    | expect(ANSWERED, 300, "redirect-300")
    | expect(ANSWERED, 401, "basic-401")
    | expect(ANSWERED, 407, "proxy-407")
    | expect(ANSWERED, 999, "status-999")
    | expect(ANSWERED, 600, "status-600")
    | expect(ANSWERED, 204, "status-204-body")
    | expect(FAILED, "http_304", "status-304-body")
    | expect(FAILED, "http_429", *all_named("later-429-"))
    | expect(FAILED, "http_5xx", *all_named("later-503-"), "later-once", "fail-500")
    | expect(
        FAILED,
        "too_slow",
        "drip-body",
        "drip-chunks",
        "drip-head",
        "stall-body",
        "stall-head",
        "silence",
        "accept-silence",
    )
    | expect(
        FAILED,
        "too_long_headers",
        "endless-header-line",
        "endless-header-lines",
        "endless-status-line",
        "endless-interims",
        "endless-trailers",
        "interim-100",
        "interim-103",
    )
    | expect(
        FAILED,
        "bad_http",
        "chunk-negative",
        "chunk-overflow",
        "chunk-garbage",
        "chunk-no-crlf",
        "chunk-trailers",
        "length-twice",
        "length-plus",
        "length-minus",
        "length-garbage",
        "length-empty",
        "transfer-unknown",
        "accept-banner",
        "header-nul",
        "header-bare-cr",
        "header-no-colon",
        "header-type-strange",
        "redirect-rubbish",
        "redirect-two",
        "version-0.9",
        "version-9",
        "version-h2-preface",
        "status-rubbish",
        "status-short",
        "status-long",
        "status-negative",
        "status-0",
    )
    | expect(
        FAILED,
        "disconnect",
        "chunk-giant",
        "chunk-cut",
        "length-larger",
        "length-giant",
        "close-within-head",
        "close-after-status",
        "close-after-head",
        "close-within-body",
        "reset-before-head",
        "reset-within-head",
        "reset-after-head",
        "reset-within-body",
        "accept-reset",
        "switching-101",
    )
    | expect(FAILED, "empty", "close-before-head", "accept-close", "interim-only", "fail-once")
    | expect(FAILED, "tls", *all_named("tls-"))
    | expect(FAILED, "timeout_connect", "tls-stall", "tls-stall-midway")
)

# Hosts whose robots.txt is in bad manners: what becomes of /private, which the rules forbid where there are any, and of
# a page.
FORBIDS, ALLOWS, STOPS = "forbids /private", "allows all", "stops"
ROBOTS_EXPECTED = {
    "robots-redirects-5": FORBIDS,
    "robots-redirects-6": ALLOWS,
    "robots-redirect-loop": ALLOWS,
    "robots-redirect-host": FORBIDS,
    "robots-elsewhere": FORBIDS,
    "robots-redirect-dead": STOPS,
    "robots-redirect-file": ALLOWS,
    "robots-500": STOPS,
    "robots-503": STOPS,
    "robots-429": STOPS,
    "robots-403": ALLOWS,
    "robots-long": FORBIDS,
    "robots-long-line": FORBIDS,
    "robots-wildcards": ALLOWS,
    "robots-binary": ALLOWS,
    "robots-html": ALLOWS,
    "robots-rubbish-status": STOPS,
    "robots-close": STOPS,
    "robots-drip": STOPS,
    "robots-silence": STOPS,
    "robots-endless": FORBIDS,
}


@pytest.fixture(scope="module")
def met(tmp_path_factory):
    """One fetch of everything: manners have a host and an address each, so they are met side by side."""
    folder = tmp_path_factory.mktemp("hostile") / "out"
    with HostileServer(tls=True) as server, pytest.MonkeyPatch.context() as patch:
        authority = folder.parent / "authority.pem"
        authority.write_bytes(server.certificates.authority_pem)
        patch.setenv("SSL_CERT_FILE", str(authority))
        urls = {name: server.url(name) for name in EXPECTED}
        for name in ROBOTS_EXPECTED:
            urls |= {name: server.url(name, "/page"), f"{name} private": server.url(name, "/private")}
        started_s = time.monotonic()
        result = fetch(folder, list(urls.values()), server.hosts(), **SETTINGS)
        took_s = time.monotonic() - started_s
        return SimpleNamespace(
            server=server, urls=urls, result=result, took_s=took_s, finals=finals_in(folder), records=records_in(folder)
        )


def ended(met, name: str) -> tuple[str, str | int]:
    """Outcome of a URL, and status or reason."""
    record = met.finals[met.urls[name]]
    outcome, reason = outcome_of(record)
    return outcome, warc.parse_response(record.block).status if outcome == ANSWERED else reason


def test_every_manner_has_an_expectation():
    assert set(EXPECTED) | set(ROBOTS_EXPECTED) == set(MANNERS) and not set(EXPECTED) & set(ROBOTS_EXPECTED)
    assert {name for name in MANNERS if MANNERS[name].moment == ROBOTS} == set(ROBOTS_EXPECTED)


@pytest.mark.parametrize("manner", EXPECTED)
@pytest.mark.sampled(60)
def test_a_manner_ends_in_one_record_for_its_reason(met, manner):
    assert ended(met, manner) == EXPECTED[manner]
    assert len(met.server.visits_of(manner)) == 1  # retries_max = 0: no second request, by nobody


@pytest.mark.parametrize("manner", ROBOTS_EXPECTED)
def test_a_robots_txt_in_bad_manners(met, manner):
    verdict = ROBOTS_EXPECTED[manner]
    pages = [visit.target for visit in met.server.visits_of(manner) if "robots.txt" not in visit.target]
    if verdict == STOPS:
        assert met.urls[manner] not in met.finals and met.urls[f"{manner} private"] not in met.finals and pages == []
    else:
        assert ended(met, manner) == (ANSWERED, 200)
        assert ended(met, f"{manner} private") == ((REFUSED, "robots") if verdict == FORBIDS else (ANSWERED, 200))
        assert pages == ["/page"] if verdict == FORBIDS else sorted(pages) == ["/page", "/private"]


def test_no_url_is_lost_or_doubled(met):
    not_reached = [url for url, _ in met.result.not_reached]
    assert sorted([*met.finals, *not_reached]) == sorted(met.urls.values())
    counts = met.result.counts
    assert counts["listed"] == len(met.urls) == sum(counts[name] for name in (ANSWERED, FAILED, REFUSED, "not_reached"))
    assert met.took_s < PATIENCE_S


def test_every_request_is_clean_and_alone(met):
    for visit in met.server.visits:
        head = visit.raw.lower()
        assert not any(
            word in head for word in (b"\r\ncookie", b"authorization:", b"user:secret", b"expect:", b"upgrade:")
        )
    spans: dict[str, list] = {}
    for visit in met.server.visits:
        spans.setdefault(visit.address, []).append(visit)
    for visits in spans.values():
        assert len(visits) <= 14  # six of robots.txt, and the pages
        for first, second in zip(visits, visits[1:]):
            assert first.ended_s <= second.started_s or first.manner.startswith(("accept-", "tls-")), (first, second)


def test_what_is_kept_is_bounded_and_marked(met):
    for name in ("endless-body", "endless-chunks", "endless-small-chunks"):
        record = met.finals[met.urls[name]]
        assert (
            record.get("WARC-Truncated") == "length"
            and len(warc.parse_response(record.block).body) == SETTINGS["body_max_bytes"]
        )
    for name in ("drip-body", "stall-body", "close-within-body"):
        assert met.finals[met.urls[name]].get("WARC-Truncated") in ("time", "disconnect")
    for name in all_named("bomb-"):  # stored as it came, never unpacked here
        assert len(met.finals[met.urls[name]].block) < 300_000


def test_what_a_server_says_is_never_taken_for_a_record(met):
    assert {
        record.url.partition("://")[2].partition("/")[0].partition(":")[0].rpartition(".")[2]
        for record in met.records
        if record.url
    } <= {"test", "1"}
    assert not [record for record in met.records if "victim" in record.url]
    assert b"victim.test" in met.finals[met.urls["header-like-warc"]].block
    assert not [record for record in met.records if b"smuggled" in record.block]
