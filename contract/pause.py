"""The pause between requests: every rule on how long a host, an address, a domain or a server is left alone.

robots.py and retry_after.py read what a server asks for; the functions here turn it into pauses and moments. All are
pure: moments are arguments, whole milliseconds of one clock, rounded down. The fetcher calls them between two requests,
the verifier for the moment at which a server is due again, the scheduler for the requests that fit into a cycle.

A new rule about the pause between two requests goes into `pauses_after` and `explain_pauses` below; one about when a
server may be listed again into `due_at_all_ms`. If it has a setting, declare that in contract/config.py and explain it
in pipeline.toml: at most three files.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contract.config import Config, Fetcher
from contract.retry_after import WAIT_MAX_S

HOST, ADDRESS, DOMAIN = "host", "address", "domain"  # words of `delay_scope`
SLOW_LEAST_MS, SLOW_MOST_MS = 1_000, 600_000  # the pause after a 429 or 503 that says nothing more
# The fetcher waits for a pause up to this. A server with a longer one is not listed before its pause is over.
PAUSE_WITHIN_CYCLE_MS = 10_000
# A cycle that was interrupted and resumed may end as long after its plan. What servers then ask for ends up to
# WAIT_MAX_S later; only a wrong clock writes a later moment.
CYCLE_MAX_MS = 7 * 86_400_000
BACKOFF_DOUBLINGS_MAX = 30
BACKOFF_MAX_MS = 1 << 52  # added to a moment it still fits into 64 bits
REQUEST_LEAST_S = 1e-3  # that a request takes, where the delay is 0


class Pauses(NamedTuple):
    """How long each is left alone after a request."""

    host_ms: int
    domain_ms: int
    address_ms: int


def pauses_after(config: Fetcher, crawl_delay_ms: int, response_ms: int) -> Pauses:
    """The pauses after a request that took `response_ms`; `crawl_delay_ms` is the longest of the host's servers.

    A crawl-delay speaks for one site and must not hold up its neighbours at the same address.
    """
    delay_ms = configured_delay_ms(config)
    by_response_ms = round(response_ms * config.delay_response_factor)
    return Pauses(
        max(crawl_delay_ms, by_response_ms, delay_ms if HOST in config.delay_scope else 0),
        delay_ms if DOMAIN in config.delay_scope else 0,
        max(by_response_ms, delay_ms) if addresses_rest(config) else 0,
    )


def explain_pauses(config: Fetcher, crawl_delay_ms: int, response_ms: int) -> dict[str, float]:
    """For people: each rule of `pauses_after` in words, and its pause in milliseconds."""
    factor = config.delay_response_factor
    return {
        f"fetcher.delay_s, by {' and '.join(config.delay_scope) or 'nothing'}": config.delay_s * 1000,
        f"last response time x {factor:g}, fetcher.delay_response_factor": response_ms * factor,
        "crawl-delay of robots.txt": float(crawl_delay_ms),
    }


def addresses_rest(config: Fetcher) -> bool:
    """Several processes know each other's requests by the address only, so there the delay always holds."""
    return ADDRESS in config.delay_scope or config.processes > 1


def configured_delay_ms(config: Fetcher) -> int:
    return round(config.delay_s * 1000)


def crawl_delay_ms(crawl_delay_s: float) -> int:
    return round(crawl_delay_s * 1000)


def rested_at_ms(ended_at_ms: int, pause_ms: int) -> int:
    """The first moment at which the pause is over: both moments are rounded down, hence one millisecond more."""
    return ended_at_ms + pause_ms + 1 if pause_ms else ended_at_ms


def longest_address_pause_ms(config: Fetcher) -> int:
    """The longest pause that a fetcher can have written for an address."""
    by_response_ms = round(config.total_timeout_s * config.delay_response_factor * 1000)
    return rested_at_ms(0, max(configured_delay_ms(config), by_response_ms))


def slowed_pause_ms(slow_ms: int, crawl_delay_ms: int, delay_ms: int) -> int:
    """The pause after a 429 or 503: twice the one before, which was at least the configured delay."""
    return min(max(SLOW_LEAST_MS, 2 * max(slow_ms, crawl_delay_ms, delay_ms)), SLOW_MOST_MS)


def forgiven_pause_ms(slow_ms: int) -> int:
    """What an answer leaves of the pause that a 429 or 503 caused: one half."""
    return slow_ms // 2


def is_slow(slow_ms: int) -> bool:
    """Whether what is left of such a pause is still kept."""
    return slow_ms >= SLOW_LEAST_MS // 4


def asked_until_ms(ended_at_ms: int, wait_s: int) -> int:
    """The moment up to which an answer with Retry-After asks for quiet; 0 where it does not."""
    return ended_at_ms + wait_s * 1000 if wait_s else 0


def slowed_until_ms(ended_at_ms: int, slow_ms: int, retry_after_s: int) -> int:
    return rested_at_ms(ended_at_ms, max(slow_ms, retry_after_s * 1000))


def rested_from_earlier_ms(
    config: Fetcher, crawl_delay_ms: int, last_request_at_ms: int, ready_at_ms: int, now_ms: int
) -> int:
    """When a server has rested from its last request in an earlier cycle, and has had the quiet that it asked for."""
    pause_ms = max(configured_delay_ms(config), crawl_delay_ms)
    return max(ready_at_ms, rested_at_ms(min(last_request_at_ms, now_ms), pause_ms))


def rested_from_unknown_ms(config: Fetcher, crawl_delay_ms: int, now_ms: int) -> int:
    """When a server has rested from a request of an interrupted attempt that may have ended only now."""
    return rested_at_ms(now_ms, max(configured_delay_ms(config), crawl_delay_ms))


def believed_ready_at_ms(ready_at_ms: int, now_ms: int) -> int:
    """A later moment than a server may ask for was written by a wrong clock."""
    return min(ready_at_ms, now_ms + WAIT_MAX_S * 1000)


def believed_ready_at_all_ms(ready_at_ms: NDArray[np.int64], planned_at_ms: int) -> NDArray[np.int64]:
    """The same for the servers of a block, by the plan of a cycle that may have ended much later."""
    return np.minimum(ready_at_ms, planned_at_ms + CYCLE_MAX_MS + WAIT_MAX_S * 1000)


def due_at_all_ms(
    config: Config,
    crawl_delay_ms: NDArray[np.uint32],
    last_request_at_ms: NDArray[np.int64],
    ready_at_ms: NDArray[np.int64],
    failures_over: NDArray[np.int64],
) -> NDArray[np.int64]:
    """When each server of a block may be listed again: after a long pause, a backoff or the quiet that it asked for.

    `failures_over` are failures in a row beyond `server_failures_max`, below 0 where there are fewer.
    """
    backoff_ms = config.verifier.server_backoff_s * 1000 * np.exp2(np.clip(failures_over, 0, BACKOFF_DOUBLINGS_MAX))
    backed_off = last_request_at_ms + np.minimum(backoff_ms, BACKOFF_MAX_MS).astype(np.int64)
    pause_ms = np.maximum(crawl_delay_ms.astype(np.int64), configured_delay_ms(config.fetcher))
    rested = np.where(pause_ms > PAUSE_WITHIN_CYCLE_MS, last_request_at_ms + pause_ms, 0)
    return np.maximum(np.where(failures_over >= 0, np.maximum(backed_off, rested), rested), ready_at_ms)


def requests_per_cycle(config: Fetcher, crawl_delay_ms: NDArray[np.uint32]) -> NDArray[np.float64]:
    """How many requests to each server fit in `cycle_max_s`: the pause counts, the requests themselves do not."""
    delay_s = np.maximum(crawl_delay_ms / 1000, config.delay_s)
    return config.cycle_max_s / np.maximum(delay_s, REQUEST_LEAST_S) + 1
