"""Every policy: its features and the order of its scores, as its source says; ties, extremes, rules on top."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from contract import generation
from contract.config import Budget, Config, Priority, Revisit, Scheduler
from contract.policies import (
    FEATURES,
    POLICIES,
    columns_read,
    describe,
    features_of,
    policy_of,
    random_order,
    response_time,
    rules,
    score_with_rules,
)
from contract.policies.policy import LARGEST, Candidates, Urls, largest_first, smallest_first
from contract.qrank.weights import SHIPPED
from contract.rank_files import make_ranks
from contract.url import Keys, server_of
from contract.url_terms import TermTable

KEYS = Keys(17)
SERVERS = ("mean_ms", "requests", "waiting", "mentions", "domain_key")
COLUMNS = {name: dtype for name, dtype in generation.COLUMNS.items() if name != "server"}


def config_of(policy: str, *priority: Priority, **settings) -> Config:
    scheduler = Scheduler(policy=policy, ranks_file="/ranks" if policy == "pagerank" else "", **settings)
    return replace(Config(), scheduler=scheduler, priority=priority)


def candidates(config: Config, server=None, servers=None, **columns) -> Candidates:
    """Rows of these columns, the others zero, of the dtypes of a generation."""
    count = max(len(column) for column in columns.values())
    rows = {name: np.asarray(columns.get(name, np.zeros(count)), dtype) for name, dtype in COLUMNS.items()}
    given = {name: np.asarray((servers or {}).get(name, [0]), np.uint64) for name in SERVERS}
    longest = max(map(len, given.values()))
    table = {name: np.resize(column, longest) for name, column in given.items()}
    return Candidates(rows, np.asarray(server if server is not None else np.zeros(count, np.int64)), table, config, 0)


def order_of(of: Candidates) -> list[int]:
    """The rows, the best first, ties as they stand."""
    scores = score_with_rules(of)
    assert scores.dtype == np.uint32 and scores.shape == (len(of),)
    return np.argsort(LARGEST - scores, kind="stable").tolist()


def urls_of(config: Config, *urls: str, cycle=1, **more) -> Urls:
    lines = pa.array([f"{url}\n".encode() for url in urls], pa.large_binary())
    servers = [KEYS.server(server_of(url)) for url in urls]
    keys = np.array([KEYS.of(url) for url in urls], np.uint64)
    domain_key, server_key = (
        np.array([getattr(server, name) for server in servers], np.uint64) for name in ("domain_key", "key")
    )
    return Urls(lines, keys, domain_key, server_key, cycle, config, **more)


def feature(name: str, given: Urls) -> list:
    values = FEATURES[name].compute(given)
    assert values.dtype == np.dtype(FEATURES[name].dtype) and len(values) == len(given.key)
    return values.tolist()


# Of all policies.


@pytest.mark.parametrize("name", POLICIES)
def test_the_first_lines_of_each_policy_cite_its_source(name):
    module = {"random": "random_order"}.get(name, name.replace("-", "_"))
    text = (Path(random_order.__file__).parent / f"{module}.py").read_text().partition('"""\n')[0]
    assert text.startswith(f'"""{name}: ') and any(word in text for word in ("19", "20", "UFMG"))


@pytest.mark.parametrize("name", POLICIES)
def test_any_columns_give_scores(name):
    """Zeros and the largest values of every column: no warning, and 32 bits."""
    most = {column: [0, np.iinfo(dtype).max] for column, dtype in COLUMNS.items()}
    of = candidates(config_of(name), server=[0, 1], servers={column: [0, 2**32 - 1] for column in SERVERS}, **most)
    with np.errstate(all="raise"):
        assert sorted(order_of(of)) == [0, 1]
    none = candidates(config_of(name), server=np.empty(0, np.int64), key=[])
    assert score_with_rules(none).dtype == np.uint32 and len(score_with_rules(none)) == 0


@pytest.mark.parametrize("name", POLICIES)
def test_equal_rows_have_equal_scores(name):
    of = candidates(config_of(name), key=[7] * 5)
    assert len(np.unique(score_with_rules(of))) == 1


@pytest.mark.parametrize("name", POLICIES)
def test_a_score_reads_the_columns_that_its_policy_names_and_no_others(name):
    config = config_of(name, Priority(surt="br,", weight=2))
    of = candidates(config, key=[1, 2])
    named = {column: of.rows[column] for column in columns_read(config)}
    few = Candidates(named, np.zeros(2, np.int64), {column: np.zeros(1, np.uint64) for column in SERVERS}, config, 0)
    assert score_with_rules(few).tolist() == score_with_rules(of).tolist()


@pytest.mark.parametrize("name", POLICIES)
def test_features_of_no_url(name):
    files = {"scheduler.ranks_file": Path("none"), "scheduler.weights_file": SHIPPED}
    given = urls_of(config_of(name), files=files)
    given.memory["scheduler.ranks_file"] = make_ranks(Path("none"), b"", KEYS)
    given.memory["scheduler.terms_file"] = TermTable([])
    for column in policy_of(given.config).features:
        assert feature(column.name, given) == []


WEIGHTS = [
    (Priority(surt="br,", weight=2),),
    (Priority(surt="br,", weight=2), Priority(surt="com,", weight=0.5), Priority(surt="org,", weight=2)),
    tuple(Priority(surt=f"br,s{number},", weight=1 + number / 100) for number in range(1, 256)),
]


@pytest.mark.parametrize("priority", WEIGHTS, ids=len)
@pytest.mark.parametrize("name", POLICIES)
def test_weights_come_first_and_the_policy_decides_within_one(name, priority):
    random = np.random.default_rng(3)
    config, count = config_of(name, *priority), 3000
    columns = {
        column: random.integers(0, min(np.iinfo(dtype).max, 5000), count).astype(dtype)
        for column, dtype in COLUMNS.items()
    }
    columns["key"] = random.integers(0, 2**63, count).astype(np.uint64)
    columns["rule"] = random.integers(0, len(priority) + 1, count)
    servers = {column: random.integers(0, 3000, 100) for column in SERVERS}
    of = candidates(config, random.integers(0, 100, count), servers, **columns)
    scores, plain = score_with_rules(of).astype(np.int64), policy_of(config).score(of).astype(np.int64)
    weight = rules.weights_of(config)[columns["rule"]]
    order = np.lexsort((scores,))
    assert (np.diff(weight[order]) >= 0).all()
    same = np.diff(weight[order]) == 0
    lost = 1 << (len(np.unique(rules.weights_of(config))) - 1).bit_length()
    assert (np.diff(plain[order])[same] > -lost).all()  # what is lost are the lowest bits
    for value in np.unique(weight):
        here = np.flatnonzero(weight == value)
        assert (np.diff(scores[here[np.argsort(plain[here], kind="stable")]]) >= 0).all()


def test_rules_without_a_weight_of_their_own_change_no_score():
    rule = Priority(pattern="feed", interval_s=60.0)
    of = candidates(config_of("fifo", rule), added=[3, 1, 2], rule=[1, 0, 1])
    assert score_with_rules(of).tolist() == score_with_rules(candidates(config_of("fifo"), added=[3, 1, 2])).tolist()


def test_a_promise_keeps_its_order_under_a_rule():
    of = candidates(config_of("new-domains", *WEIGHTS[1]), promise=[1, 2, 2399, 2400], rule=[1] * 4)
    assert order_of(of) == [3, 2, 1, 0]


# What a generation is prepared for.


def differs(before: Config, after: Config) -> set[str]:
    files = {"scheduler.ranks_file": Path("copy")}
    first, second = describe(before, files), describe(after, files)
    assert first.keys() == second.keys()
    return {name for name in first if first[name] != second[name]}


@pytest.mark.parametrize(
    "before, after, wanted",
    [
        (Config(), config_of("fifo"), {"policy", "features"}),
        (config_of("in-links"), config_of("opic"), {"policy"}),
        (config_of("random"), config_of("random", seed=2), {"scores"}),
        (config_of("fifo"), config_of("fifo", seed=2, slow_share=0.5, list_max_urls=5), set()),
        (config_of("fifo", Priority(surt="br,")), config_of("fifo", Priority(surt="com,")), {"features"}),
        (config_of("fifo", Priority(pattern="x")), config_of("fifo", Priority(pattern="x", weight=2)), {"scores"}),
        (config_of("new-domains"), config_of("new-domains", bonus_patterns=("x",)), {"features"}),
        (config_of("fifo"), config_of("fifo", bonus_patterns=("x",)), set()),
        (Config(budget=(Budget(pattern="a"),)), Config(budget=(Budget(pattern="b"),)), {"features"}),
        (Config(budget=(Budget(surt="br,"),)), Config(budget=(Budget(surt="br,", urls=5),)), set()),
        (Config(), Config(revisit=Revisit(policy="uniform")), {"revisit"}),
        (Config(), Config(revisit=Revisit(interval_s=90_000.0)), set()),
        (Config(), replace(Config(), scope=replace(Config().scope, hops_max=3)), {"scope"}),
    ],
)
def test_a_generation_is_prepared_anew_for_what_changes_its_columns_or_its_choice(before, after, wanted):
    assert differs(before, after) == wanted


def test_another_file_of_ranks_is_another_feature():
    config = config_of("pagerank")
    first, second = (describe(config, {"scheduler.ranks_file": Path(name)}) for name in ("files/a.npy", "files/b.npy"))
    assert first["features"] != second["features"]
    assert first == describe(config, {"scheduler.ranks_file": Path("elsewhere/a.npy")})


def test_a_configuration_asks_for_the_features_of_its_policy_and_its_rules():
    config = replace(config_of("spread", Priority(surt="br,")), budget=(Budget(surt="br,"),))
    assert [column.name for column in features_of(config)] == ["spread", "rule", "budget"]
    assert features_of(config_of("in-links")) == ()


# Sums of a registered domain.


def test_a_column_of_a_domain_is_the_sum_over_its_servers():
    servers = {"domain_key": [7, 7, 3, 9, 7], "mentions": [1, 10, 5, 0, 100]}
    of = candidates(Config(), server=[4, 0, 2, 3, 1], servers=servers, key=[0] * 5)
    assert of.domain("mentions").tolist() == [111, 111, 5, 0, 111]
    assert of.server("mentions").tolist() == [100, 1, 5, 0, 10]
    assert of.of_server(np.arange(5)).tolist() == [4, 0, 2, 3, 1] and len(of) == 5


# The orders.


def test_fifo_is_the_order_of_cycles():
    config = config_of("fifo")
    assert feature("added", urls_of(config, "http://a.br/", "http://b.br/", cycle=12)) == [12, 12]
    assert order_of(candidates(config, added=[5, 1, 3, 0, 2**24, 2**32 - 1])) == [3, 1, 2, 0, 4, 5]


def test_breadth_first_is_the_order_of_depths():
    assert order_of(candidates(config_of("breadth-first"), depth=[255, 3, 0, 254, 1])) == [2, 4, 1, 3, 0]


def test_shortest_path_is_the_order_of_levels_then_of_depths():
    config = config_of("shortest-path")
    urls = ["http://a.br/", "http://a.br/x", "http://a.br/x/", "http://a.br//x//y?z/w", f"http://a.br/{'x/' * 300}"]
    assert feature("levels", urls_of(config, *urls)) == [0, 1, 1, 2, 255]
    assert order_of(candidates(config, levels=[2, 0, 1, 1, 255, 0], depth=[0, 9, 5, 4, 255, 255])) == [1, 5, 3, 2, 0, 4]


def test_random_is_the_same_for_the_same_seed_and_another_for_another():
    keys = np.random.default_rng(1).integers(0, 2**63, 20_000).astype(np.uint64)
    scores = {seed: policy_of(config_of("random")).score(candidates(config_of("random", seed=seed), key=keys))
              for seed in (0, 1, 2, 3, 2**53)}  # fmt: skip
    for one, first in scores.items():
        assert (first == score_with_rules(candidates(config_of("random", seed=one), key=keys))).all()
        assert abs(np.corrcoef(np.arange(20_000), np.argsort(first))[0, 1]) < 0.03
        top = first > np.quantile(first, 0.9)
        for two, second in scores.items():
            if one < two:
                for low in np.arange(0, 1, 0.1):  # no tenth of one order is found together in the other
                    window = (second >= np.quantile(second, low)) & (second < np.quantile(second, low + 0.1))
                    assert 0.07 < window[top].mean() < 0.13, (one, two)


def test_random_mixes_keys_that_differ_in_few_bits():
    of = candidates(config_of("random"), key=np.arange(10_000))
    assert abs(np.corrcoef(np.arange(10_000), score_with_rules(of))[0, 1]) < 0.05


@pytest.mark.parametrize("name, column", [("in-links", "links_in"), ("opic", "cash"), ("pagerank", "rank")])
def test_the_largest_number_comes_first(name, column):
    most = np.iinfo(COLUMNS[column]).max
    assert order_of(candidates(config_of(name), **{column: [0, 3, 1, most, 2, most // 2]})) == [3, 5, 1, 4, 2, 0]


def test_what_links_bring_changes_over_time_and_some_of_it_is_handed_on():
    varying = {"in-links", "opic", "neural-graph", "history", "common-crawl", "focused", "random-walk", "fica"}
    assert {name for name, policy in POLICIES.items() if policy.varies} == varying
    handed = {name: list(policy.hands_on) for name, policy in POLICIES.items() if policy.hands_on}
    assert handed == {"opic": ["cash"], "neural-graph": ["inherited"], "history": ["inherited"], "fica": ["nearness"]}
    assert {name for name, policy in POLICIES.items() if policy.is_gated} == {"new-domains"}


def test_server_size_is_the_order_of_waiting_urls_then_of_depths():
    servers = {"waiting": [3, 2**32 - 1, 0, 70_000]}
    of = candidates(config_of("server-size"), server=[0, 1, 2, 3, 1, 0], servers=servers, depth=[1, 9, 0, 255, 2, 0])
    assert order_of(of) == [4, 1, 3, 5, 0, 2]


def test_response_time_is_the_order_of_fast_servers_then_of_depths():
    servers = {"mean_ms": [100, 20, 0, 2**32 - 1], "requests": [5, 5, 0, 1]}
    of = candidates(config_of("response-time"), server=[0, 1, 2, 3, 1, 0], servers=servers, depth=[1, 9, 0, 255, 2, 0])
    assert order_of(of) == [2, 4, 1, 5, 0, 3]


@pytest.mark.parametrize(
    "mean_ms, requests, slow",
    [
        ([100, 20, 0, 300], [5, 5, 0, 1], [False, False, False, True]),
        ([100, 20, 400, 300], [1, 1, 1, 1], [False, False, True, True]),
        ([50, 50, 50], [1, 1, 1], [False] * 3),
        ([0, 0], [0, 0], [False] * 2),
        ([7], [1], [False]),
    ],
)
def test_response_time_keeps_a_share_for_the_slower_half_of_servers(mean_ms, requests, slow):
    servers = {"mean_ms": mean_ms, "requests": requests}
    config = config_of("response-time", slow_share=0.25)
    of = candidates(config, server=np.arange(len(mean_ms)), servers=servers, key=mean_ms)
    which, share = response_time.reserve_slow(of)
    assert which.tolist() == slow and share == 0.25


def test_pagerank_is_that_of_the_url_else_of_its_server_else_none(tmp_path):
    text = b"http://a.br/x 0.5\nhttp://a.br 0.25\nhttp://c.br 7\n"
    np.save(tmp_path / "copy.npy", make_ranks(tmp_path, text, KEYS))
    given = urls_of(
        config_of("pagerank"), "http://a.br/x", "http://a.br/", "https://a.br/x", "http://c.br/", "http://z.br/",
        files={"scheduler.ranks_file": tmp_path / "copy.npy"},
    )  # fmt: skip
    wanted = largest_first(np.array([0.5, 0.25, 0, 7, 0], np.float32)).tolist()
    assert feature("rank", given) == wanted
    assert feature("rank", given) == wanted  # from memory
    assert order_of(candidates(config_of("pagerank"), rank=wanted)) == [3, 0, 1, 2, 4]


# The two helpers of policies.


def test_smallest_first():
    for bits, dtype in ((8, np.uint8), (16, np.uint16), (24, np.uint32), (32, np.uint32), (24, np.int64)):
        values = np.array([0, 1, 2**bits - 2, 2**bits - 1]).astype(dtype)
        scores = smallest_first(values, bits)
        assert scores.dtype == np.uint32 and (np.diff(scores.astype(np.int64)) < 0).all() and scores[-1] == 0
    assert smallest_first(np.array([2**24 - 1, 2**32 - 1, 2**60]), 24).tolist() == [0, 0, 0]


def test_largest_first_keeps_the_order_of_any_numbers_and_cannot_be_nan():
    values = np.unique(np.concatenate([np.arange(1000), 2 ** np.arange(64, dtype=np.float64), [2**64 - 1]]))
    scores = largest_first(values).astype(np.int64)
    assert (np.diff(scores) >= 0).all() and len(np.unique(scores)) >= 1050 and scores[0] == 0
    assert np.isfinite(largest_first(np.array([0, 2**64 - 1], np.uint64)).view(np.float32)).all()
