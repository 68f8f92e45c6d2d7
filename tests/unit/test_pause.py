"""The pause between requests, rule by rule."""

import numpy as np
import pytest

from contract.config import Config, Fetcher, Verifier
from contract.pause import (
    Pauses,
    asked_until_ms,
    believed_ready_at_ms,
    due_at_all_ms,
    explain_pauses,
    longest_address_pause_ms,
    pauses_after,
    requests_per_cycle,
    rested_at_ms,
    rested_from_earlier_ms,
    rested_from_unknown_ms,
    slowed_until_ms,
)


@pytest.mark.parametrize(
    "scope, processes, pauses",
    [
        (("host", "address"), 1, Pauses(5_000, 0, 5_000)),
        (("host",), 1, Pauses(5_000, 0, 0)),
        (("host",), 2, Pauses(5_000, 0, 5_000)),
        (("domain",), 1, Pauses(300, 5_000, 0)),
        (("address",), 1, Pauses(300, 0, 5_000)),
        ((), 1, Pauses(300, 0, 0)),
    ],
)
def test_the_delay_holds_for_what_the_scope_names(scope, processes, pauses):
    config = Fetcher(delay_s=5.0, delay_scope=scope, processes=processes, delay_response_factor=2.0)
    assert pauses_after(config, crawl_delay_ms=0, response_ms=150) == pauses


def test_the_longest_rule_counts_and_a_crawl_delay_is_not_for_the_address():
    config = Fetcher(delay_s=1.0, delay_response_factor=1.0)
    assert pauses_after(config, 7_000, 3_000) == Pauses(7_000, 0, 3_000)
    assert pauses_after(config, 2_000, 3_000) == Pauses(3_000, 0, 3_000)
    assert list(explain_pauses(config, 7_000, 3_000).values()) == [1_000, 3_000, 7_000]


def test_moments():
    config = Fetcher(delay_s=2.0, total_timeout_s=60.0, delay_response_factor=1.0)
    assert (rested_at_ms(10, 0), rested_at_ms(10, 5)) == (10, 16)
    assert longest_address_pause_ms(config) == 60_001
    assert (asked_until_ms(10, 0), asked_until_ms(10, 3)) == (0, 3_010)
    assert slowed_until_ms(10, 1_000, 0) == 1_011 and slowed_until_ms(10, 1_000, 2) == 2_011
    assert rested_from_earlier_ms(config, 3_000, 100, 0, 50) == 3_051, "a request later than now counts as now"
    assert rested_from_earlier_ms(config, 0, 10, 9_999, 50) == 9_999
    assert rested_from_unknown_ms(config, 3_000, 50) == 3_051
    assert believed_ready_at_ms(1 << 62, 50) == 86_400_050 and believed_ready_at_ms(70, 50) == 70


def test_columns():
    config = Config(fetcher=Fetcher(delay_s=5.0, cycle_max_s=100.0), verifier=Verifier(server_backoff_s=60.0))
    delays_ms = np.array([0, 20_000, 0, 20_000], np.uint32)
    last_ms, asked_ms = np.full(4, 1_000), np.array([0, 0, 500_000, 0])
    over = np.array([-1, -1, 0, 2])
    assert due_at_all_ms(config, delays_ms, last_ms, asked_ms, over).tolist() == [0, 21_000, 500_000, 241_000]
    assert requests_per_cycle(config.fetcher, delays_ms).tolist() == [21.0, 6.0, 21.0, 6.0]
