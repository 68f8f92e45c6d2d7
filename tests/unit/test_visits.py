"""What visits change of collected pages, and when a block's revisits are due."""

from dataclasses import replace

import numpy as np
import pytest

from contract import revisits
from contract.config import Config, Priority, Revisit
from contract.generation import SIDE_COLUMNS
from contract.revisits import MINUTE_MS
from contract.tables import COLLECTED_STATE, UNKNOWN_DIGEST, WAITING
from stages.verifier import figures
from stages.verifier.figures import VisitFigures
from stages.verifier.harvest import Answers
from stages.verifier.visits import first_visits, miss, pages_of, visit_again

NOW_MS = 1_800_000_000_000
ONE, OTHER = b"1" * 16, b"2" * 16
REVISIT = Revisit(policy="uniform", interval_s=3_600.0, interval_min_s=60.0, interval_max_s=360_000.0)
GIANT = {"visits": 65_535, "changes": 65_534, "unchanged_min": 2**32 - 1, "changed_min": 2**32 - 1, "misses": 255}


def make_side(pages: int = 1, **columns) -> dict[str, np.ndarray]:
    """Pages that were collected at NOW_MS in cycle 7, with the content ONE."""
    side = {name: np.zeros(pages, dtype) for name, dtype in SIDE_COLUMNS.items()}
    first = {"cycle": 7, "row": 3, "fetched_at_ms": NOW_MS, "visits": 1, "parsed": 1}
    for name, value in {**first, **columns}.items():
        side[name][:] = value
    side["content_digest"][:] = np.void(columns.get("content_digest", ONE))
    return side


def answer(digest: bytes = ONE, status: int = 200, minutes: float = 60, revisit: bool = False, parsed: bool = True):
    keys = np.ones(1, np.uint64)
    return Answers(
        keys,
        keys,
        np.array([5]),
        np.array([np.void(UNKNOWN_DIGEST if revisit else digest)], "V16"),
        np.array([NOW_MS + int(minutes * MINUTE_MS)]),
        np.array([status], np.uint16),
        np.array([parsed and not revisit]),
        np.array([revisit]),
    )


def visit(side: dict, one: Answers, config: Revisit = REVISIT, duplicate: bool = False, cycle: int = 9):
    counts = visit_again(side, np.zeros(1, np.int64), one, np.array([duplicate]), cycle, config)
    return counts, {
        name: values[0].tobytes() if name == "content_digest" else values[0] for name, values in side.items()
    }


def test_full_answer_takes_the_place_of_the_one_before():
    counts, row = visit(make_side(visited_at_ms=NOW_MS + 1, duplicate=1), answer(OTHER))
    assert (row["cycle"], row["row"], row["content_digest"], row["duplicate"]) == (9, 5, OTHER, 0)
    assert (row["fetched_at_ms"], row["visited_at_ms"]) == (NOW_MS + 60 * MINUTE_MS, 0)
    assert (row["visits"], row["changes"], row["changed_min"], row["unchanged_min"]) == (2, 1, 60, 0)
    assert counts == {"revisited": 1, "changed": 1, "unchanged": 0, "gone": 0, "duplicates": 0}


def test_revisit_record_leaves_the_stored_answer():
    counts, row = visit(make_side(duplicate=1), answer(revisit=True), duplicate=True)
    assert (row["cycle"], row["row"], row["content_digest"], row["duplicate"]) == (7, 3, ONE, 1)
    assert (row["fetched_at_ms"], row["visited_at_ms"]) == (NOW_MS, NOW_MS + 60 * MINUTE_MS)
    assert (row["visits"], row["changes"], row["changed_min"], row["unchanged_min"]) == (2, 0, 0, 60)
    assert row["parsed"] == 1
    assert counts == {"revisited": 1, "changed": 0, "unchanged": 1, "gone": 0, "duplicates": 0}


def test_not_modified_after_a_change_is_no_change():
    side = make_side()
    visit(side, answer(OTHER))
    _, row = visit(side, answer(revisit=True, minutes=90))
    assert (row["visits"], row["changes"], row["changed_min"], row["unchanged_min"]) == (3, 1, 60, 30)
    assert (row["cycle"], row["content_digest"]) == (9, OTHER)


@pytest.mark.parametrize("known, new", [(UNKNOWN_DIGEST, ONE), (ONE, UNKNOWN_DIGEST), (ONE, ONE)])
def test_content_that_is_unknown_or_the_same_is_no_change(known, new):
    _, row = visit(make_side(content_digest=known), answer(new))
    assert (row["changes"], row["unchanged_min"], row["content_digest"]) == (0, 60, new)


@pytest.mark.parametrize("was", [0, 1])
def test_page_is_no_duplicate_of_itself(was):
    counts, row = visit(make_side(duplicate=was), answer(ONE), duplicate=True)
    assert row["duplicate"] == was and counts["duplicates"] == 0
    counts, row = visit(make_side(duplicate=was), answer(OTHER), duplicate=True)
    assert row["duplicate"] == 1 and counts["duplicates"] == 1


@pytest.mark.parametrize("minutes, counted", [(0, 1), (0.4, 1), (1.4, 1), (1.6, 2), (-500, 1), (1e8, 100_000_000)])
def test_minutes_are_rounded_and_never_none(minutes, counted):
    _, row = visit(make_side(), answer(minutes=minutes))
    assert row["unchanged_min"] == counted


def test_pages_that_are_gone_are_missed_until_they_are_back():
    side = make_side(misses=1)
    for status, misses in ((404, 2), (410, 3), (403, 0), (404, 1), (200, 0)):
        counts, row = visit(side, answer(status=status))
        assert row["misses"] == misses and counts["gone"] == (status in (404, 410))
    assert visit(side, answer(OTHER, status=404))[1]["changes"] == 1


def test_failure_counts_as_a_visit_for_its_time_alone():
    side = make_side()
    assert miss(side, np.zeros(1, np.int64), np.array([NOW_MS + 60 * MINUTE_MS])) == {"missed": 1}
    assert (side["misses"][0], side["visits"][0], side["unchanged_min"][0]) == (1, 1, 0)
    _, row = visit(side, answer(minutes=75))
    assert (row["visits"], row["unchanged_min"], row["misses"]) == (2, 15, 0)


def test_sums_stay_at_their_largest_values():
    side = make_side(**GIANT)
    visit(side, answer(OTHER, status=404))
    _, row = visit(side, answer(OTHER, status=404))
    assert {name: row[name] for name in GIANT} == GIANT
    miss(side, np.zeros(1, np.int64), np.array([NOW_MS]))
    assert side["misses"][0] == 255


def test_proportional_adapts_the_period():
    config = replace(REVISIT, policy="proportional", interval_s=6_000.0, shorten=0.5, lengthen=1.5)
    side = make_side()
    for digest, period in ((ONE, 150), (ONE, 225), (OTHER, 113), (OTHER, 170)):
        assert visit(side, answer(digest), config)[1]["period_min"] == period
    assert visit(make_side(), answer(), REVISIT)[1]["period_min"] == 0


def test_first_answer_parsed_later_and_links_counted_once():
    fresh = first_visits(answer(status=404, parsed=False), np.zeros(1, bool), 4)
    assert (fresh["visits"], fresh["misses"][0], fresh["parsed"][0], fresh["cycle"]) == (1, 1, False, 4)
    side = make_side(parsed=0)
    assert visit(side, answer(revisit=True))[1]["parsed"] == 0
    assert visit(side, answer(OTHER))[1]["parsed"] == 1
    assert visit(side, answer(parsed=False))[1]["parsed"] == 1


def servers_table(count: int, **columns) -> dict[str, np.ndarray]:
    table = {"due_at_ms": np.zeros(count, np.int64), "given_up": np.zeros(count, bool)}
    table |= {name: np.zeros(count, np.uint32) for name in ("lastmod_claims", "lastmod_true")}
    for name, (row, value) in columns.items():
        table[name][row] = value
    return table


def take(
    config: Config,
    side: dict,
    server: np.ndarray,
    rule: np.ndarray | int = 0,
    parts: int = 1,
    lastmod_s: np.ndarray | int = 0,
) -> VisitFigures:
    """Each page is a collected row with a waiting one behind it."""
    visits = VisitFigures(config)
    for here in np.array_split(np.arange(len(server)), parts):
        rows = {
            "state": np.tile(np.array([COLLECTED_STATE, WAITING], np.uint8), len(here)),
            "rule": np.repeat(np.broadcast_to(rule, len(server))[here], 2).astype(np.uint8),
            "lastmod_s": np.repeat(np.broadcast_to(lastmod_s, len(server))[here], 2).astype(np.uint32),
        }
        visits.take({name: values[here] for name, values in side.items()}, rows, np.repeat(server[here], 2))
    return visits


def test_no_revisits_are_never_due():
    found = take(Config(), make_side(3, visits=4, changes=2), np.zeros(3, np.int32)).figures(servers_table(1))
    assert found == {"revisit_due_ms": None, "revisitable": 0, "visits": 12, "changes": 6}


def test_a_block_is_due_with_one_page_in_a_hundred():
    side = make_side(250)
    side["fetched_at_ms"] = NOW_MS + np.random.default_rng(1).permutation(250) * 1000
    config = Config(revisit=REVISIT)
    found = take(config, side, np.zeros(250, np.int32)).figures(servers_table(1))
    assert found["revisit_due_ms"] == NOW_MS + 1000 + 3_600_000 and found["revisitable"] == 250
    one = take(config, make_side(), np.zeros(1, np.int32)).figures(servers_table(1))
    assert one["revisit_due_ms"] == NOW_MS + 3_600_000


def test_pages_wait_for_their_servers():
    config, server = Config(revisit=REVISIT), np.arange(3, dtype=np.int32)
    later = servers_table(3, due_at_ms=(slice(None), NOW_MS * 2))
    assert take(config, make_side(3), server).figures(later)["revisit_due_ms"] == NOW_MS * 2
    given_up = servers_table(3, given_up=(slice(None), True))
    assert take(config, make_side(3), server).figures(given_up)["revisit_due_ms"] is None
    assert take(config, make_side(3), server).figures(servers_table(3, given_up=(1, True)))["revisitable"] == 2


def test_pages_that_were_missed_too_often_are_dropped():
    config = Config(revisit=replace(REVISIT, misses_max=2))
    side = make_side(2, misses=[2, 3])
    found = take(config, side, np.zeros(2, np.int32)).figures(servers_table(1))
    assert found["revisitable"] == 1 and found["revisit_due_ms"] == NOW_MS + 4 * 3_600_000


def test_rules_have_intervals_of_their_own():
    config = Config(revisit=REVISIT, priority=(Priority(surt="test,", interval_s=60.0),))
    for rule, due_s in ((0, 3_600), (1, 60), (2, 3_600)):
        found = take(config, make_side(), np.zeros(1, np.int32), rule).figures(servers_table(1))
        assert found["revisit_due_ms"] == NOW_MS + due_s * 1000


def test_a_few_pages_with_an_interval_of_their_own_wait_for_no_hundredth_of_the_rest():
    rules = (
        Priority(surt="a,", weight=2.0),
        Priority(surt="b,", interval_s=600.0),
        Priority(surt="c,", interval_s=60.0),
    )
    config, rule = Config(revisit=REVISIT, priority=rules), np.zeros(1_000, np.uint8)
    rule[:3] = [1, 2, 3]
    rule[500:800] = 2
    server = np.zeros(len(rule), np.int32)
    found = take(config, make_side(len(rule)), server, rule, parts=3).figures(servers_table(1))
    assert found["revisit_due_ms"] == NOW_MS + 60_000 and found["revisitable"] == 1_000
    side = make_side(len(rule), misses=np.where(rule == 3, 255, 0).astype(np.uint8))
    found = take(config, side, server, rule).figures(servers_table(1))
    assert found["revisit_due_ms"] == NOW_MS + 600_000 and found["revisitable"] == 999


@pytest.mark.parametrize("policy", ["uniform", "proportional", "optimal"])
def test_figures_are_those_of_the_whole_block(monkeypatch, policy):
    """However its rows are cut: the scheduler lists what is due by the same functions on all rows at once."""
    random, pages = np.random.default_rng(5), 1_000
    side = make_side(pages)
    side["visits"] = random.integers(1, 30, pages).astype("u2")
    side["changes"] = (side["visits"] * random.random(pages)).astype("u2")
    for name in ("unchanged_min", "changed_min", "period_min"):
        side[name] = random.integers(0, 100_000, pages).astype("u4")
    side["misses"], server = random.integers(0, 8, pages).astype("u1"), random.integers(0, 9, pages).astype(np.int32)
    config = Config(revisit=replace(REVISIT, policy=policy))
    whole = take(config, side, server).figures(servers_table(9))
    monkeypatch.setattr(figures, "PAGES_AT_ONCE", 37)
    assert take(config, side, server, parts=4).figures(servers_table(9)) == whole
    rates = revisits.estimate_rates(pages_of(side), server, 9, config.revisit)
    due = revisits.due_at_ms(config.revisit, pages_of(side), rates)
    due = np.sort(due[due < revisits.NEVER_MS])
    assert whole["revisitable"] == len(due) and whole["revisit_due_ms"] == due[len(due) // 100 - 1]
