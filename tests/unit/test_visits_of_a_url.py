"""What bin/why says of visits: what each found, why it was made then, and when the next one is due."""

import pytest

from contract.config import Config, Priority, Revisit
from contract.units import moment
from examine.visits import (
    describe_history,
    describe_lastmod,
    describe_listed,
    describe_next,
    describe_rule,
    find_rule,
    judge_visits,
)

DROPPED = "never: 6 visits in a row found no page, [revisit] misses_max allows 5; it stays collected"
NOW_MS = 1_800_000_000_000
A, B, UNKNOWN = b"a" * 16, b"b" * 16, bytes(16)


def answered(digest=A, revisit=False, status=200, **more):
    page = {"content_digest": digest, "revisit": revisit}
    return {"event": "asked", "outcome": "answered", "status": status, "page": page, **more}


def found_by(*events):
    judge_visits(list(events))
    return [event.get("found") for event in events]


def test_a_visit_found_a_change_or_none():
    visits = [answered(), answered(UNKNOWN, revisit=True), answered(), answered(B), answered(B), answered(A)]
    assert found_by(*visits) == [
        "first visit",
        "not changed",
        "the same content again",
        "changed",
        "the same content again",
        "changed",
    ]


def test_a_304_after_a_change_is_no_change():
    assert found_by(answered(), answered(B), answered(UNKNOWN, revisit=True))[-1] == "not changed"


def test_what_cannot_be_compared_is_not_called_a_change():
    assert found_by(answered(UNKNOWN), answered(A), answered(UNKNOWN)) == [
        "first visit",
        "not seen to have changed",
        "not seen to have changed",
    ]
    assert found_by(answered(), answered(page=None))[-1] == "not seen to have changed", "its table was not kept"


def test_failures_and_pages_that_are_gone():
    failed = {"event": "asked", "outcome": "failed", "status": 0}
    seeded = {"event": "seeded"}
    assert found_by(seeded, failed, answered(), failed, answered(B, status=404)) == [
        None,
        "failed",
        "first visit",
        "failed",
        "gone, changed",
    ]


LISTED = {
    "order": 7,
    "revisit": False,
    "score": 1_234,
    "vrank": 0.25,
    "etag": "",
    "last_modified": "",
    "fetched_at_ms": NOW_MS,
    "policy": "in-links",
    "revisit_policy": "optimal",
}


def test_why_it_was_listed_is_said_in_words():
    assert list(describe_listed(LISTED)) == [
        "listed for a first visit, by policy in-links: score 1,234, VRank 0.25, order 7"
    ]
    again = {**LISTED, "revisit": True}
    what, sent = describe_listed({**again, "etag": '"x"', "last_modified": "Tue, 17 Nov 2026 10:00:00 GMT"})
    assert what.startswith(
        f"listed for a revisit of the page of {moment(NOW_MS)}, by policy in-links, revisits optimal"
    )
    assert sent == 'sent If-None-Match: "x", If-Modified-Since: Tue, 17 Nov 2026 10:00:00 GMT'
    assert list(describe_listed(again))[1] == "sent no validators: its last full answer had none"
    strange = {**again, "etag": '"\xe9\x01"'}
    assert list(describe_listed(strange))[1] == (
        "sent no validators: those of its last full answer are no texts for a request"
    )
    assert list(describe_listed({**strange, "last_modified": "now"}))[1] == "sent If-Modified-Since: now"
    assert "a policy that is not known" in next(describe_listed({**LISTED, "policy": None, "revisit_policy": None}))


def test_all_visits_in_one_line():
    collected = {"visits": 1, "changes": 0, "unchanged_min": 0, "changed_min": 0, "misses": 0}
    assert describe_history(collected) == "1 visit, 0 found a change"
    many = {"visits": 4, "changes": 1, "unchanged_min": 120, "changed_min": 1_440, "misses": 2}
    assert describe_history(many) == (
        "4 visits, 1 found a change; seen 2 h unchanged and 1 d changed; the last 2 visits found no page"
    )


@pytest.mark.parametrize(
    "found, text",
    [
        (None, '[revisit] policy is "none"'),
        (
            {"is_dropped": True},
            "never: 6 visits in a row found no page, [revisit] misses_max allows 5; it stays collected",
        ),
        ({"due_at_ms": None}, "never: its server http://a.test was given up"),
        ({"due_at_ms": NOW_MS}, f"due since {moment(NOW_MS)}: revisits uniform, every 1 h"),
        ({"due_at_ms": NOW_MS + 1}, f"due not before {moment(NOW_MS + 1)}: revisits uniform, every 1 h"),
        (
            {"due_at_ms": NOW_MS, "changes_per_day": 0.5},
            f"due since {moment(NOW_MS)}: revisits uniform, every 1 h, for an estimate of a change every 2 d",
        ),
        (
            {"due_at_ms": NOW_MS, "wait_s": 900.0, "has_claim": True},
            f"due since {moment(NOW_MS)}: revisits uniform, every 1 h; its sitemap says that it has changed since the "
            "last visit: now after 15 min",
        ),
    ],
)
def test_when_the_next_visit_is_due(found, text):
    about = {"is_dropped": False, "due_at_ms": 0, "interval_s": 3_600.0, "changes_per_day": None}
    about |= {"wait_s": 3_600.0, "has_claim": False}
    known = {
        "next": None if found is None else {**about, **found},
        "collected": {"misses": 6},
        "server": {"server": "http://a.test"},
    }
    said = describe_next(known, Config(revisit=Revisit(policy="uniform")), NOW_MS)
    assert said.startswith(text) and (found is None or said == text)


@pytest.mark.parametrize(
    "claims, true, text",
    [
        (4, 3, "3 of its 4 tested lastmod dates were true"),
        (1, 0, "0 of its 1 tested lastmod date was true"),
        (0, 0, "none of its lastmod dates was tested yet"),
    ],
)
def test_what_lastmod_dates_of_a_server_were_worth(claims, true, text):
    server = {"server": "http://a.test", "lastmod_claims": claims, "lastmod_true": true}
    said = describe_lastmod(NOW_MS // 1000, server)
    assert said == f"{moment(NOW_MS)}, by a sitemap; http://a.test: {text}"


def test_the_rule_that_a_url_falls_under():
    rules = (Priority(surt="test,a,", weight=2.0), Priority(pattern="/feed$", interval_s=3_600.0))
    config = Config(revisit=Revisit(policy="uniform"), priority=rules)
    assert describe_rule(find_rule("http://a.test/feed", config)) == "rule 1 of [[priority]], surt test,a,: weight 2"
    assert describe_rule(find_rule("http://b.test/feed", config)) == (
        "rule 2 of [[priority]], pattern /feed$: weight 1, a visit every 1 h"
    )
    assert find_rule("http://b.test/", config) is None
