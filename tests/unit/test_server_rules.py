"""Rules about a whole server: what is refused, what is left alone, and what the table keeps."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from contract.url_paths import path_levels
from stages.verifier import prefixes
from stages.verifier.prefixes import FOLDER, KEPT, PREFIXES, PREFIXES_MAX, QUERY, TREE, Prefixes
from stages.verifier.rules import RULES, TREE_TIMES, Limits, NewRows, judge_new
from storage.tables import read_table, write_table

SEED = 2**64 - 1
PREFIXES_TYPES = [str(kind) for kind in PREFIXES.types]
OFF = Limits(0, 0, 0, 0, 0)
SUGGESTED = Limits(
    server_max_urls=1_000_000,
    domain_max_urls=4_000_000,
    prefix_from_urls=5_000,
    prefix_max_urls=50_000,
    query_max_urls=50_000,
)


def new_rows(urls, server=0, depth=1, key=None) -> NewRows:
    count = len(urls)
    return NewRows(
        np.broadcast_to(np.asarray(server, np.uint32), count),
        np.arange(count, dtype=np.uint64) if key is None else np.array(key, np.uint64),
        np.broadcast_to(np.asarray(depth, np.uint8), count),
        pa.array(urls, pa.string()),
    )


def judge(rows, limits, known=(0,), domain=None, table=None):
    codes, table = judge_new(
        rows,
        np.array(known, np.uint32),
        np.arange(len(known)) if domain is None else np.array(domain, np.uint64),
        prefixes.empty() if table is None else table,
        limits,
        SEED,
    )
    return [RULES[code] for code in codes.tolist()], table


def numbered(form: str, count: int, first: int = 0) -> list[str]:
    return [form.format(number) for number in range(first, first + count)]


def rows_of(table: Prefixes) -> list[tuple]:
    return list(zip(*(getattr(table, name).tolist() for name in PREFIXES.names)))


def table_of(*rows) -> Prefixes:
    columns = zip(*rows)
    return Prefixes(*(np.array(column, dtype) for column, dtype in zip(columns, PREFIXES_TYPES)))


@pytest.mark.parametrize(
    "url, levels",
    [
        ("http://a/", 0),
        ("http://a/a", 1),
        ("http://a/a/", 1),
        ("http://a/a/b", 2),
        ("http://a:80/a/b/?c/d", 2),
        ("http://a/?/a/b", 0),
        ("http://a/a?b/c?d/e", 1),
        ("http://a//", 0),
        ("http://a//a//b//", 2),
        ("http://a/" + "x/" * 255, 255),
        ("http://a/" + "x/" * 3000, 255),
        ("http://a/" + "/" * 7000, 0),
        ("http://a", 0),
        ("", 0),
        ("http://a?b/c/d/e", 0),  # no canonical URLs, but no reason to fall
    ],
)
def test_levels_of_a_path(url, levels):
    assert path_levels(pa.array(["http://b/c/d", url, "http://b/e"])).tolist() == [2, levels, 1]


def test_levels_of_nothing():
    for urls in (
        pa.array([], pa.string()),
        pa.array([], pa.large_string()),
        pa.chunked_array([], pa.string()),
        pa.array(["http://a/b"])[1:],
    ):
        assert path_levels(urls).tolist() == [] and path_levels(urls).dtype == np.uint8


def test_no_rows_change_nothing():
    table = table_of((0, FOLDER, 7, 3, 0))
    assert judge(new_rows([]), Limits(1, 1, 0, 1, 1), table=table) == ([], table)
    codes, after = judge_new(
        new_rows([]), np.empty(0, np.uint32), np.empty(0, np.uint64), prefixes.empty(), SUGGESTED, SEED
    )
    assert len(codes) == 0 and codes.dtype == np.uint8 and len(after) == 0


def test_without_limits_no_text_is_looked_at():
    rows = new_rows(numbered("http://a/a/b/{}?x", 5))
    rows.urls = None
    table = table_of((0, FOLDER, 7, 3, 0))
    assert judge(rows, OFF, known=[10**9], table=table) == ([""] * 5, table)
    assert judge(rows, Limits(3, 0, 0, 0, 0))[0] == ["", "", "", "server_budget", "server_budget"]


def test_small_servers_cost_nothing():
    """No text of theirs is looked at: here it would not even be there."""
    rows = new_rows(["http://a/a/b"] * 9)
    rows.urls = None
    told, table = judge(rows, Limits(0, 0, 20, 1, 1), known=[10])
    assert told == [""] * 9 and len(table) == 0


def test_a_server_is_watched_when_these_rows_make_it_large_and_ever_after():
    limits = Limits(0, 0, 20, 2, 0)
    told, table = judge(new_rows(numbered("http://a/a/{}", 9)), limits, known=[11])
    assert told == [""] * 2 + ["path_prefix"] * 7
    assert judge(new_rows(["http://a/a/x"]), limits, known=[13], table=table)[0] == ["path_prefix"]


@pytest.mark.parametrize(
    "trap, rule, left",
    [
        ("http://a/calendar/day-{}", "path_prefix", 5),
        ("http://a/a/b/{}", "path_prefix", 5),
        ("http://a/a/b/c/d/{}/e/", "path_prefix", 5),
        ("http://a/calendar/{}/05/14", "path_prefix", 5 * TREE_TIMES),
        ("http://a/lista.php?page={}", "query", 4),
        ("http://a/?s={}", "query", 4),
        ("http://a/x/{}?", "path_prefix", 5),
        ("http://a/post-{}/", "", 100),
        ("http://a/{}/tag", "", 100),
    ],
)
def test_traps_and_what_the_budget_has_to_bound(trap, rule, left):
    told, _ = judge(new_rows(numbered(trap, 100)), Limits(0, 0, 0, 5, 4))
    assert told == [""] * left + [rule] * (100 - left)


def test_a_large_site_is_left_alone_and_a_trap_on_it_is_not():
    site = [f"http://a/artigos/{2000 + number % 25}/{number}" for number in range(300_000)] + numbered(
        "http://a/titulo-{}/", 100_000
    )
    site += [f"http://a/produto/{number}?cor=azul" for number in range(40_000)]
    told, table = judge(new_rows(site), SUGGESTED)
    assert set(told) == {""}
    more = numbered("http://a/agenda/dia/{}", 300_000) + numbered("http://a/artigos/2026/{}", 1000)
    told, _ = judge(new_rows(more), SUGGESTED, [len(site)], table=table)
    assert told == [""] * 50_000 + ["path_prefix"] * 250_000 + [""] * 1000


def test_nearest_to_a_seed_first_then_by_key():
    keys, depths = [2**64 - 1, 0, 5, 2**63, 1], [1, 2, 2, 1, 3]
    for limits, rule in (
        (Limits(3, 0, 0, 0, 0), "server_budget"),
        (Limits(0, 3, 0, 0, 0), "domain_budget"),
        (Limits(0, 0, 0, 3, 0), "path_prefix"),
        (Limits(0, 0, 0, 0, 3), "query"),
    ):
        told, _ = judge(new_rows(["http://a/a/b/c?d"] * 5, depth=depths, key=keys), limits)
        assert told == ["", "", rule, "", rule]


def test_a_trap_does_not_eat_the_budget():
    told, table = judge(new_rows(numbered("http://a/t/t/{}", 50) + numbered("http://a/{}", 10)), Limits(12, 0, 0, 4, 0))
    assert told == [""] * 4 + ["path_prefix"] * 46 + [""] * 8 + ["server_budget"] * 2
    assert table.count.tolist() == [4, 4]


def test_what_the_rule_before_refused_takes_no_room():
    told, _ = judge(new_rows(numbered("http://a/t/x?{}", 5) + numbered("http://a/t/{}", 3)), Limits(0, 0, 0, 3, 2))
    assert told == ["", "", "query", "query", "query", "", "path_prefix", "path_prefix"]


def test_only_what_all_rules_grant_is_counted():
    told, table = judge(new_rows(numbered("http://a/t/{}?x", 9)), Limits(3, 0, 0, 5, 6))
    assert told == [""] * 3 + ["server_budget"] * 2 + ["path_prefix"] * 4
    assert rows_of(table)[0][1] == FOLDER and table.count[0] == 3 and sorted(table.count.tolist()) == [1, 1, 1, 3]


def test_servers_of_a_domain_share_its_budget():
    """In the domain by depth, then server, then key; another domain is not touched, nor are URLs that are known."""
    rows = new_rows(
        ["http://x/"] * 8, server=[2, 2, 0, 0, 0, 1, 1, 1], depth=[0, 1, 1, 1, 2, 0, 9, 9], key=[8, 0, 6, 5, 4, 3, 2, 1]
    )
    told, _ = judge(rows, Limits(0, 10, 0, 0, 0), known=[3, 100, 4], domain=[2**64 - 1, 5, 2**64 - 1])
    assert told == ["", "domain_budget", "", "", "domain_budget"] + ["domain_budget"] * 3
    told, _ = judge(rows, Limits(5, 10, 0, 0, 0), known=[3, 4, 4], domain=[9, 5, 9])
    assert told == ["", "server_budget", "", "", "server_budget", "", "server_budget", "server_budget"]


def test_counts_go_on_in_the_next_merge_and_a_raised_limit_opens_the_prefix():
    told, table = judge(new_rows(numbered("http://a/a/b/{}", 7)), Limits(0, 0, 0, 10, 0))
    assert told == [""] * 7
    told, table = judge(new_rows(numbered("http://a/a/b/{}", 7, first=7)), Limits(0, 0, 0, 10, 0), [7], table=table)
    assert told == [""] * 3 + ["path_prefix"] * 4
    assert judge(new_rows(["http://a/a/b/x", "http://a/a/c/x"]), Limits(0, 0, 0, 10, 0), [10], table=table)[0] == [
        "path_prefix",
        "",
    ]
    assert judge(new_rows(["http://a/a/b/x"]), Limits(0, 0, 0, 11, 0), [10], table=table)[0] == [""]
    assert judge(new_rows(["http://a/a/b/x"]), Limits(0, 0, 0, 5, 0), [10], table=table)[0] == ["path_prefix"]


def test_a_heavy_prefix_cannot_be_pushed_out_by_noise():
    limits = Limits(0, 0, 0, 100, 0)
    told, table = judge(new_rows(numbered("http://a/trap/x/{}", 150)), limits)
    known = told.count("")
    assert known == 100
    for turn in range(20):  # thousands of prefixes, some of them as heavy as can be
        noise = numbered("http://a/n{}/x/y", 2000, first=2000 * turn) + [
            f"http://a/h{turn}/{part}/{number}" for part in range(5) for number in range(90)
        ]
        told, table = judge(new_rows(noise), limits, [known], table=table)
        known += told.count("")
        assert len(table) <= PREFIXES_MAX and (np.bincount(table.kind, minlength=3) <= KEPT).all()
        assert (
            judge(new_rows(numbered("http://a/trap/x/{}", 5, first=999)), limits, [known], table=table)[0]
            == ["path_prefix"] * 5
        )


def test_prefixes_that_take_turns_are_caught_all_the_same():
    """Each merge brings a little of each of many folders, so that most are not in the table when they come again."""
    limits, table, granted = Limits(0, 0, 0, 100, 0), None, 0
    for turn in range(40):
        urls = [f"http://a/f{folder}/{turn}-{number}" for folder in range(300) for number in range(10)]
        told, table = judge(new_rows(urls), limits, [granted], table=table)
        granted += told.count("")
    assert 24 * 100 <= granted <= 300 * 100  # what an exact count of each folder would have granted
    assert set(told) == {"path_prefix"}


def test_a_count_is_never_too_low_and_a_wide_site_is_left_alone():
    """Folders of all sizes, far more than the table keeps, up to a share times the limit.

    Only those beyond the limit are refused.
    """
    random, limit, table = np.random.default_rng(5), 500, None
    exact, refused, granted = {}, set(), 0
    hashes = {}
    for turn in range(28):
        folders = np.minimum(random.zipf(1.4, 400), 5000).tolist()
        urls = [f"http://a/f{folder}/{turn}-{number}" for number, folder in enumerate(folders)]
        told, table = judge(new_rows(urls), Limits(0, 0, 0, limit, 0), [granted], table=table)
        for folder, rule in zip(folders, told):
            exact[folder] = exact.get(folder, 0) + (rule == "")
            refused |= {folder} if rule else set()
        granted += told.count("")
        for folder in set(folders) - set(hashes):
            hashes[folder] = int(judge(new_rows([f"http://a/f{folder}/x"]), Limits(0, 0, 0, 9, 0))[1].prefix[0])
        assert len(table) == KEPT[FOLDER]
        floor = int(table.count.min())
        assert int(table.count.sum()) <= granted and floor <= granted // KEPT[FOLDER]
        counts = {
            prefix: (count, began)
            for prefix, count, began in zip(table.prefix.tolist(), table.count.tolist(), table.began.tolist())
        }
        for folder, number in exact.items():
            count, began = counts.get(hashes[folder], (floor, floor))
            assert count - began <= number <= count
    assert granted < KEPT[FOLDER] * limit
    assert refused and all(limit <= exact[folder] < 2 * limit for folder in refused)


def test_past_a_share_times_the_limit_nothing_new_has_room():
    urls = [f"http://a/f{folder}/{number}" for folder in range(KEPT[FOLDER] + 5) for number in range(9)]
    told, table = judge(new_rows(urls), Limits(0, 0, 0, 9, 0))
    assert set(told) == {""}
    assert judge(new_rows(["http://a/new/1", "http://a/page"]), Limits(0, 0, 0, 9, 0), [len(told)], table=table)[0] == [
        "path_prefix",
        "",
    ]
    assert judge(new_rows(["http://a/new/1"]), Limits(0, 0, 0, 10, 0), [len(told)], table=table)[0] == [""]


def test_noise_of_one_kind_pushes_out_nothing_of_another():
    told, table = judge(new_rows(numbered("http://a/q{}?x", 500) + numbered("http://a/f/{}", 3)), Limits(0, 0, 0, 9, 9))
    assert set(told) == {""}
    assert np.bincount(table.kind, minlength=3).tolist() == [1, 0, KEPT[QUERY]]


def test_ties_stay_by_hash_and_the_table_is_sorted():
    _, table = judge(new_rows(numbered("http://a/{}/x/y", 500) + ["http://a/7/z"] * 1), Limits(0, 0, 0, 9, 0))
    _, whole = judge(new_rows(numbered("http://a/{}/x/y", 10)), Limits(0, 0, 0, 9, 0))
    assert len(whole) == 20 and set(whole.kind.tolist()) == {FOLDER, TREE}
    for found in (table, whole):
        assert rows_of(found) == sorted(rows_of(found))
    trees = table.prefix[table.kind == TREE]
    assert len(trees) == KEPT[TREE] and trees.max() < 2**60  # 16 of 500: the least ones


@pytest.mark.parametrize("low, high", [(0, 2**64 - 1), (2**64 - 1 - 5000, 2**64 - 1), (0, 5000)])
def test_the_largest_stay_whatever_their_hashes(low, high):
    """Hashes that lie all on one side of the bound by which a flood is sifted."""
    random = np.random.default_rng(3)
    rows = {
        (server, kind, int(prefix)): int(random.choice([1, 1, 1, 1, 2, 9]))
        for server, size in ((0, 900), (2, 20), (5, 120))
        for kind in range(3)
        for prefix in random.integers(low, high, size, np.uint64, endpoint=True)
    }
    table = table_of(*((*owner, count, 0) for owner, count in rows.items()))
    want = []
    for server, kind in {owner[:2] for owner in rows}:
        mine = sorted((-count, owner) for owner, count in rows.items() if owner[:2] == (server, kind))
        want += [(*owner, -count, 0) for count, owner in mine[: KEPT[kind]]]
    assert rows_of(prefixes.keep_largest(table)) == sorted(want)


def test_the_same_prefix_on_two_servers_is_counted_apart():
    told, table = judge(
        new_rows(["http://a/a/b/1", "http://b/a/b/1", "http://b/a/b/2"], server=[0, 1, 1]),
        Limits(0, 0, 0, 1, 0),
        known=[0, 0],
    )
    assert told == ["", "", "path_prefix"]
    assert table.server.tolist() == [0, 0, 1, 1] and table.prefix[:2].tolist() == table.prefix[2:].tolist()


def test_long_and_odd_texts():
    long = "/" + "a" * 3990 + "/" + "b" * 3990
    urls = [f"http://a{long}{number % 10}/{number}" for number in range(200)] + numbered(
        "http://a" + "/" * 7000 + "{}/x", 50
    )
    told, _ = judge(new_rows(urls), Limits(0, 0, 0, 15, 0))
    assert told[:150] == [""] * 120 + ["path_prefix"] * 30 and told[150:] == ["path_prefix"] * 50 + [""] * 50


def test_a_table_follows_its_servers(tmp_path):
    first, second, third, fourth = (
        (FOLDER, 7, 3, 0),
        (QUERY, 1, 9, 2),
        (FOLDER, 2**64 - 1, 2**32 - 1, 2**32 - 1),
        (TREE, 0, 1, 0),
    )
    table = table_of((0, *first), (0, *second), (2, *third), (3, *fourth))
    assert rows_of(prefixes.move_servers(table, np.array([1, 2, 4, 5]))) == [
        (1, *first),
        (1, *second),
        (4, *third),
        (5, *fourth),
    ]
    assert rows_of(prefixes.move_servers(table, np.array([3, 2, 1, 0]))) == [
        (0, *fourth),
        (1, *third),
        (3, *first),
        (3, *second),
    ]
    here = np.array([False, True, True, True])
    assert rows_of(prefixes.take_servers(table, here, np.cumsum(here) - 1)) == [(1, *third), (2, *fourth)]
    assert len(prefixes.take_servers(table, ~here & False, np.cumsum(here))) == 0
    assert len(prefixes.move_servers(prefixes.empty(), np.empty(0, np.int64))) == 0
    for one in (table, prefixes.empty()):
        write_table(tmp_path / "prefixes.parquet", prefixes.to_table(one))
        assert rows_of(prefixes.from_table(read_table(tmp_path / "prefixes.parquet", PREFIXES))) == rows_of(one)


def test_a_count_stops_at_the_largest_number():
    urls = numbered("http://a/a/{}", 3)
    _, table = judge(new_rows(urls[:1]), Limits(0, 0, 0, 9, 0))
    full = replace(table, count=np.array([2**32 - 2], np.uint32))
    told, after = judge(new_rows(urls), Limits(0, 0, 0, 2**40, 0), table=full)
    assert told == [""] * 3 and after.count.tolist() == [2**32 - 1]
    assert full.count.tolist() == [2**32 - 2]
