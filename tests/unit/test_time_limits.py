"""Limits on the time and the speed of a transfer; moments are made up."""

from contract.config import Fetcher
from stages.fetcher.reasons import TIMEOUT_TOTAL, TOO_SLOW
from stages.fetcher.time_limits import Stopwatch, TimeLimits

LIMITS = TimeLimits(Fetcher(slow_s=6.0, slow_bytes_per_s=100, total_timeout_s=60.0))


def reason_at(stopwatch: Stopwatch, now_s: float, received_bytes: int, is_sent: bool = True) -> str:
    excess = LIMITS.find_excess(stopwatch, now_s, received_bytes, is_sent)
    return excess[0] if excess else ""


def test_a_transfer_is_slow_once_too_little_came_since_the_request_was_sent():
    stopwatch = Stopwatch(0.0)
    assert not any(reason_at(stopwatch, now_s, 0, is_sent=False) for now_s in (5.0, 7.0, 20.0)), "it still connects"
    assert not reason_at(stopwatch, 25.0, 0) and reason_at(stopwatch, 26.0, 0) == TOO_SLOW


def test_a_transfer_ends_after_its_total_time_whether_it_was_sent_or_not():
    assert reason_at(Stopwatch(0.0), 60.0, 10**6) == reason_at(Stopwatch(0.0), 60.0, 0, is_sent=False) == TIMEOUT_TOTAL
