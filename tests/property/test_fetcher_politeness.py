"""Politeness over random hosts, addresses and durations: the pauses always hold, and every request gets its turn."""

import heapq

from hypothesis import given, settings
from hypothesis import strategies as st

from contract.config import DELAY_SCOPES, Fetcher
from contract.pause import SLOW_LEAST_MS, SLOW_MOST_MS
from stages.fetcher.politeness import Host, Politeness
from stages.fetcher.server_queues import HostWork
from stages.fetcher.slots import MemorySlots
from tests.sampling import sampling

hosts = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3000), st.integers(0, 5000), st.integers(1, 4)),
    min_size=1,
    max_size=12,
)  # slot, domain, crawl-delay, first readiness, requests
scopes = st.sets(st.sampled_from(DELAY_SCOPES))


@settings(max_examples=sampling.examples(150))
@given(
    hosts,
    scopes,
    st.integers(0, 1500),
    st.integers(1, 5),
    st.sampled_from((0.0, 1.0, 3.0)),
    st.randoms(use_true_random=False),
)
def test_pauses_hold_and_nobody_starves(given_hosts, scope, delay_ms, transfers_max, factor, dice):
    config = Fetcher(delay_s=delay_ms / 1000, delay_scope=tuple(scope), delay_response_factor=factor)
    politeness = Politeness(MemorySlots(), config)
    left, flights, now_ms, waited = {}, [], 0, 0
    spans: dict[tuple[str, object], list[tuple[int, int, int]]] = {}
    for number, (slot, domain, crawl_delay_ms, ready_at_ms, requests) in enumerate(given_hosts):
        host = Host(str(number), ready_at_ms)
        host.rest_at_least(crawl_delay_ms)
        left[host.name] = requests
        politeness.admit(host, bytes([slot]), str(domain), 0)
    while any(left.values()) or flights:
        while len(flights) < transfers_max and (host := politeness.take(now_ms)):
            assert now_ms >= host.ready_at_ms
            left[host.name] -= 1
            heapq.heappush(flights, (now_ms + dice.randrange(800), host.name, now_ms, host))
        next_at_ms = politeness.next_at()
        moments = [flights[0][0]] if flights else []
        if next_at_ms is not None and len(flights) < transfers_max:
            moments.append(next_at_ms)
        assert moments, "nothing to wait for, and requests left"
        now_ms = max(now_ms, min(moments))
        while flights and flights[0][0] <= now_ms:
            _, name, started_ms, host = heapq.heappop(flights)
            slot, domain, crawl_delay_ms, _, _ = given_hosts[int(name)]
            by_response_ms = round((now_ms - started_ms) * factor)
            host_pause_ms = max(crawl_delay_ms, by_response_ms)
            for kind, key, pause_ms in (
                ("host", name, host_pause_ms),
                ("address", slot, by_response_ms if "address" in scope else 0),
                ("domain", domain, host_pause_ms),
            ):
                longest_ms = max(pause_ms, delay_ms if kind in scope else 0)
                spans.setdefault((kind, key), []).append((started_ms, now_ms, longest_ms))
            politeness.end(host, now_ms, now_ms - started_ms, has_more=left[name] > 0)
        waited += 1
        assert waited < 1000
    for (kind, _), requests in spans.items():
        if kind == "domain" and kind not in scope:
            continue
        requests.sort()
        for (_, ended_ms, pause_ms), (started_ms, _, _) in zip(requests, requests[1:]):
            assert started_ms >= ended_ms + pause_ms


answers = st.lists(
    st.one_of(st.none(), st.integers(0, 5000)), max_size=40
)  # an answer, or a refusal and its Retry-After in s


@settings(max_examples=sampling.examples(150))
@given(answers, st.integers(0, 20_000), st.integers(0, 20_000))
def test_a_server_s_pauses_follow_what_it_says(said, delay_ms, crawl_delay_ms):
    """At least what it asks for, at least twice the last pause of its own, within bounds, and forgotten in the end."""
    host, now_ms = HostWork("a"), 0
    host.rest_at_least(crawl_delay_ms)
    own_ms = 0  # the pause that our own doubling has come to
    for retry_after_s in said:
        if retry_after_s is None:
            host.speed_up(now_ms)
            own_ms //= 2
            assert host.ready_at_ms <= now_ms + own_ms + 1
        else:
            host.slow_down(now_ms, retry_after_s, delay_ms)
            own_ms = min(max(SLOW_LEAST_MS, 2 * max(own_ms, delay_ms, crawl_delay_ms)), SLOW_MOST_MS)
            assert host.ready_at_ms == now_ms + max(own_ms, retry_after_s * 1000) + 1
        now_ms = max(now_ms, host.ready_at_ms)
    for _ in range(12):
        host.speed_up(now_ms)
        now_ms = max(now_ms, host.ready_at_ms)
    before_ms = host.ready_at_ms
    host.speed_up(now_ms + 1)
    assert host.ready_at_ms == before_ms
