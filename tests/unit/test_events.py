"""Events of a run in words: the same for the display and for the message log."""

import pytest

from contract.config import Config, Fetcher, Scheduler
from contract.log import ABSORB, FORGET, GROW, RECONSIDER, SEED
from supervise.display import Display
from supervise.events import ERROR, EVENTS, INFO, LEVELS, WARNING, describe_event, describe_kept_keys
from supervise.flights import Flights
from supervise.messages import Messages
from tests.made_up_flights import make_plan

PLAN = make_plan(17, 2)
IN_LINKS = Config(scheduler=Scheduler(policy="in-links"))
FETCHED = {"answered": 5, "bytes": 2_000, "failed": 1, "refused": 2, "not_reached": 3}
CASES = [
    ("plan", {"plan": PLAN}, INFO, "cycle 17 (crawl) of block 2/8 planned"),
    ("resume", {"plan": PLAN}, INFO, "cycle 17 (crawl) was interrupted: resuming it"),
    ("stage", {"plan": PLAN, "stage": "fetcher", "attempt": 1}, INFO, "the fetcher of cycle 17 begins"),
    ("stage", {"plan": PLAN, "stage": "fetcher", "attempt": 2}, INFO, "the fetcher of cycle 17 begins, attempt 2"),
    ("stage_ended", {"plan": PLAN, "stage": "fetcher", "code": 0}, INFO, "the fetcher of cycle 17 ended"),
    (
        "stage_ended",
        {"plan": PLAN, "stage": "fetcher", "code": -9},
        WARNING,
        "the fetcher of cycle 17 ended by signal 9 (SIGKILL)",
    ),
    (
        "retry",
        {"plan": PLAN, "stage": "fetcher", "code": 1, "wait_s": 2.0},
        WARNING,
        "the fetcher of cycle 17 (block 2) ended by exit code 1; it runs again in 2 s",
    ),
    ("sleep", {"until_ms": None, "why": ""}, INFO, "nothing is due until seeds arrive"),
    ("sleep", {"until_ms": 0, "why": "all is done"}, INFO, "nothing is due until seeds arrive: all is done"),
    ("taken", {"counts": {"kind": SEED, "new": 1}}, INFO, "1 seed taken in"),
    ("taken", {"counts": {"kind": RECONSIDER, "urls": 2, "servers": 1}}, INFO, "reconsidered: 2 URLs and 1 server"),
    (
        "held",
        {"plan": PLAN, "reason": "the extractor died 4 times"},
        ERROR,
        "cycle 17 of block 2 is held for the rest of this run: the extractor died 4 times; "
        "other blocks continue, the next run tries it again",
    ),
    (
        "damaged",
        {"plan": PLAN},
        ERROR,
        "cycle 17 of block 2 cannot continue, a file is damaged; other blocks continue, bin/status says what to run",
    ),
    (
        "abandoned",
        {"plan": PLAN, "reason": "x"},
        WARNING,
        "cycle 17 abandoned, no URL is charged: x; its URLs are listed again",
    ),
    (
        "committed",
        {"plan": PLAN, "counts": {"fetcher": FETCHED, "verifier": {"new": 4, "waiting": 6}}},
        INFO,
        "cycle 17 block 2/8: 5 pages, 2.0 kB, 1 failed, 2 refused, 3 not reached; 4 new URLs, 6 waiting in the block",
    ),
    (
        "committed",
        {
            "plan": PLAN,
            "counts": {
                "fetcher": FETCHED,
                "extractor": {"link_sources": {"answered": 2, "failed": 1, "refused": 0, "bytes": 500}},
                "verifier": {"new": 4, "waiting": 6},
            },
        },
        INFO,
        "cycle 17 block 2/8: 3 pages, 1.5 kB, 0 failed, 2 refused, 3 not reached; 4 new URLs, 6 waiting in the block; "
        "besides, of link sources: 2 pages, 500 B, 1 failed",
    ),
    ("committed", {"plan": make_plan(18, 2, kind=GROW), "counts": {}}, INFO, "block 2 split in two: 9 blocks"),
    (
        "committed",
        {"plan": make_plan(18, 2, kind=FORGET), "counts": {"verifier": {"forgotten": 1_200, "known": 9_000}}},
        INFO,
        "cycle 18 forgot 1,200 URLs of block 2, which no page links to any more; 9,000 stay",
    ),
    (
        "committed",
        {"plan": make_plan(19, 2, kind=ABSORB), "counts": {}},
        INFO,
        "cycle 19 (absorb) of block 2 committed",
    ),
    (
        "committed",
        {
            "plan": PLAN,
            "counts": {
                "fetcher": FETCHED,
                "verifier": {"new": 4, "waiting": 6, "revisited": 3, "changed": 1, "gone": 0, "missed": 2},
            },
        },
        INFO,
        "cycle 17 block 2/8: 5 pages, 3 seen again (1 changed, 2 missed), 2.0 kB, 1 failed, 2 refused, 3 not reached; "
        "4 new URLs, 6 waiting in the block",
    ),
    (
        "committed",
        {
            "plan": make_plan(12, 0, kind=ABSORB, config=IN_LINKS),
            "counts": {"verifier": {"known": 1_234, "prepared": {"features": [], "refused_again": 3}}},
        },
        INFO,
        "cycle 12 prepared block 0 for the changed configuration (policy in-links): 1,234 URLs, 3 refused by the scope",
    ),
    (
        "committed",
        {"plan": make_plan(12, 0, kind=ABSORB), "counts": {"verifier": {"known": 6, "ranked": 0}}},
        WARNING,
        "cycle 12 (absorb) of block 0 committed; 0 of 6 known URLs have a rank",
    ),
    (
        "committed",
        {"plan": PLAN, "counts": {"fetcher": FETCHED, "verifier": {"new": 4, "waiting": 6, "known": 10, "ranked": 7}}},
        INFO,
        "cycle 17 block 2/8: 5 pages, 2.0 kB, 1 failed, 2 refused, 3 not reached; 4 new URLs, 6 waiting in the block; "
        "7 of 10 known URLs have a rank",
    ),
    (
        "unprepared",
        {"plan": make_plan(12, 0, kind=ABSORB, config=IN_LINKS)},
        WARNING,
        "cycle 12 did not prepare block 0 for the policy in-links: the block is listed by what it has, and the next "
        "run tries again; this is a defect, please report it",
    ),
    (
        "warm_died",
        {"reason": "signal 9"},
        WARNING,
        "the process that stages are forked from died: signal 9; its stages are ended and run again, no URL is charged",
    ),
    ("waits", {"text": "the split of block 3 waits for cycle 17"}, INFO, "the split of block 3 waits for cycle 17"),
]


@pytest.mark.parametrize("event, facts, level, text", CASES)
def test_every_event_has_a_level_and_a_text(event, facts, level, text):
    assert describe_event(event, facts) == (level, text)


def test_no_event_is_left_out():
    assert {event for event, *_ in CASES} == set(EVENTS)
    assert {level for level, _ in EVENTS.values()} <= set(LEVELS)


def test_display_and_message_log_take_every_event(tmp_path, capfd):
    display, messages = Display(False, Config(), Flights()), Messages(tmp_path, Config())
    for event, facts, *_ in CASES:
        display.report(event, **facts)
        messages.report(event, **facts)
    assert len((tmp_path / "messages.log").read_text().splitlines()) == len(CASES)
    assert "is held for the rest of this run" in capfd.readouterr().err


def test_an_unknown_event_is_an_error(tmp_path):
    for place in (Display(True, Config(), Flights()), Messages(tmp_path)):
        with pytest.raises(KeyError):
            place.report("no_such_event")


def test_a_sleep_that_lasts_is_told_once(tmp_path, capfd):
    display, messages = Display(False, Config(), Flights()), Messages(tmp_path)
    for place in (display, messages):
        for until_ms in (1_000, 1_000, 2_000):
            place.report("sleep", until_ms=until_ms, why="")
        place.report("plan", plan=PLAN)
        place.report("sleep", until_ms=2_000, why="")
    assert capfd.readouterr().err.count("nothing is due") == 3
    assert (tmp_path / "messages.log").read_text().count("nothing is due") == 3


def test_a_quiet_display_prints_what_is_abnormal_only(capfd):
    display = Display(True, Config(), Flights())
    for event, facts, *_ in CASES:
        display.report(event, **facts)
    printed = capfd.readouterr().err
    assert "runs again in 2 s" in printed and "is held" in printed
    assert "5 pages" not in printed and "nothing is due" not in printed


def test_the_keys_that_a_resumed_cycle_keeps_are_told():
    plan = make_plan(17, config=Config(fetcher=Fetcher(delay_s=0.01)))
    assert list(describe_kept_keys(plan, Config(fetcher=Fetcher(delay_s=0.02)))) == [
        "cycle 17 keeps its plan's fetcher.delay_s = 0.01 (now 0.02)"
    ]
