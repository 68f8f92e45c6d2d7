"""common-crawl: the score in days, the file of centralities, and budgets of registered domains."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contract.accumulators import DAY_MS
from contract.centrality_files import POSITIONS, convert, make_positions
from contract.config import Config, Scheduler
from contract.config_check import from_tables
from contract.errors import BadConfiguration, BadInput
from contract.policies import common_crawl, policy_of
from contract.policies.common_crawl import FILE_KEY, UNITS_PER_DAY, ZERO_DAYS
from contract.policies.policy import Candidates
from contract.url import Keys
from tests.unit.test_policies import candidates, config_of, order_of

KEYS = Keys(17)
FILE = Path("centralities.txt")
TODAY = 20_000
NOW_S = TODAY * DAY_MS // 1000


def days_of(seen_s=None, **columns) -> list[float]:
    """Scores, in days."""
    plain = candidates(config_of("common-crawl"), **columns)
    seen = None if seen_s is None else np.array(seen_s, np.uint32)
    of = Candidates(plain.rows, np.zeros(len(plain), np.int64), {}, plain.config, NOW_S * 1000, seen)
    return (policy_of(of.config).score(of) / UNITS_PER_DAY - ZERO_DAYS).tolist()


def test_each_part_of_the_score():
    assert days_of(depth=[0]) == [365], "never seen, and nothing else"
    assert days_of(links_in=[0, 1, 3, 7]) == [365, 395, 425, 455]
    assert days_of(linked_day=[0, TODAY, TODAY - 10, TODAY + 5]) == [365, 365, 355, 365]
    assert days_of(attempts=[0, 1, 2]) == [365, 305, 245]
    assert days_of(levels=[0, 1, 20]) == [365, 360, 265]
    day_s = DAY_MS // 1000
    assert days_of([0, NOW_S, NOW_S - day_s // 2, NOW_S - 400 * day_s, NOW_S + 9], depth=[0] * 5) == [
        365, 0, 0.5, 400, 0
    ]  # fmt: skip


def test_parts_add_up_and_a_page_that_was_just_seen_comes_last():
    columns = {"links_in": [3, 3, 0], "linked_day": [TODAY - 100, TODAY, TODAY], "levels": [1, 0, 0]}
    assert days_of([0, NOW_S - 86_400, NOW_S], **columns) == [365 + 60 - 100 - 5, 61, 0]


def test_the_worst_and_the_best_stay_within_32_bits():
    most = {name: [2**32 - 1] for name in ("links_in",)} | {"linked_day": [1], "attempts": [255], "levels": [255]}
    assert days_of([NOW_S], **most)[0] < 0 and days_of([1], links_in=[2**32 - 1])[0] > NOW_S / 86_400
    assert order_of(candidates(config_of("common-crawl"), attempts=[255, 0], levels=[255, 255])) == [1, 0]


def positions_of(text: str) -> dict[int, int]:
    found = make_positions(FILE, text.encode(), KEYS)
    assert found.dtype == POSITIONS and (np.diff(found["key"].astype(object)) > 0).all()
    return dict(found.tolist())


def test_the_most_central_domain_has_position_1_and_equal_ones_share_one():
    text = "# domains\n\nb.br 5\na.br 9.5e6\nC.br 5\nd.com.br 1\n"
    assert positions_of(text) == {KEYS.of("a.br"): 1, KEYS.of("b.br"): 2, KEYS.of("c.br"): 2, KEYS.of("d.com.br"): 4}


def test_a_table_of_common_crawl_is_read_as_it_is():
    """Names from the end, by columns of the first line; what is no registered domain by our list is left out."""
    text = (
        "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\t#n_hosts\n"
        "1\t2.5E7\t2\t0.01\tcom.facebook\t3000\n9\t1\t9\t1\tcom.a<b\t1\n"
        "2\t2.4E7\t1\t0.02\tbr.com.uol\t9\n3\t1.0E7\t3\t0.1\tbr.com.uol.www\t1\n"
    )
    assert positions_of(text) == {KEYS.of("facebook.com"): 1, KEYS.of("uol.com.br"): 2}


@pytest.mark.parametrize(
    "line",
    [
        "a.br",
        "a.br 1 2",
        "1 a.br",
        "a.br nan",
        "a.br -1",
        "a.br 1_0",
        "www.a.br 1",
        "http://a.br/ 1",
        "a b.br 1",
        "\0 1",
    ],
)
def test_any_other_line_is_named(line):
    with pytest.raises(BadInput, match="centralities.txt: line 2: expected a registered domain and its") as caught:
        positions_of(f"c.br 1\n{line}\n")
    assert caught.value.exit_code == 65 and "found '" in str(caught.value)


def test_a_domain_twice_with_another_number_and_a_copy_are_refused():
    with pytest.raises(BadInput, match="line 3: expected each domain once"):
        positions_of("a.br 1\nb.br 1\na.br 2\n")
    assert positions_of("a.br 1\na.br 1\n") == {KEYS.of("a.br"): 1}
    with pytest.raises(BadInput, match="name the text itself"):
        convert(FILE, convert(FILE, b"a.br 1\n", KEYS), KEYS)
    with pytest.raises(BadInput, match="line 2: expected .* as many columns as the first line names"):
        positions_of("#host_rev #harmonicc_val\nbr.a\n")


def budgets(tmp_path, *domains: str, **settings) -> list[int] | None:
    lines = [f"d{number}.br {1000 - number}" for number in range(1, 101)]
    (tmp_path / "copy.npy").write_bytes(convert(FILE, "\n".join(lines).encode(), KEYS))
    config = replace(Config(), scheduler=Scheduler(policy="common-crawl", **settings))
    keys = np.array([KEYS.of(domain) for domain in domains], np.uint64)
    return policy_of(config).domain_urls(config, {FILE_KEY: tmp_path / "copy.npy"}, keys).tolist()


def test_a_budget_is_the_largest_one_divided_by_the_root_of_the_position(tmp_path):
    domains = ("d1.br", "d4.br", "d9.br", "d100.br", "d3.br", "unknown.br")
    assert budgets(tmp_path, *domains, centrality_urls_max=600, centrality_urls_min=70) == [600, 300, 200, 70, 346, 70]
    assert budgets(tmp_path) == []


def test_without_a_file_and_in_a_mix_there_is_no_budget():
    config = config_of("common-crawl")
    assert common_crawl.limit_domains(config, {}, np.array([1], np.uint64)) is None
    assert policy_of(config_of("0.5*common-crawl + 0.5*fifo")).domain_urls is None


def test_the_least_budget_is_not_above_the_largest():
    with pytest.raises(BadConfiguration, match="centrality_urls_min = 5 must not be above"):
        from_tables({"scheduler": {"centrality_urls_min": 5, "centrality_urls_max": 4}}, "test")
