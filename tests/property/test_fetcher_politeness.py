"""Politeness over random hosts, addresses and durations: the pauses always hold, and every request gets its turn."""

import heapq

from hypothesis import given, settings, strategies as st

from stages.fetcher.politeness import Host, Politeness
from stages.fetcher.slots import MemorySlots

hosts = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3000), st.integers(0, 5000), st.integers(1, 4)), min_size=1, max_size=12,
)  # slot, crawl-delay, first readiness, requests


@settings(max_examples=150, deadline=None)
@given(hosts, st.integers(0, 1500), st.integers(1, 5), st.randoms(use_true_random=False))
def test_pauses_hold_and_nobody_starves(given_hosts, delay_ms, transfers_max, dice):
    politeness = Politeness(MemorySlots(), delay_ms)
    left, flights, now_ms, waited = {}, [], 0, 0
    by_host: dict[str, list[tuple[int, int]]] = {}
    by_slot: dict[int, list[tuple[int, int]]] = {}
    for number, (slot, crawl_delay_ms, ready_at_ms, requests) in enumerate(given_hosts):
        host = Host(str(number), max(delay_ms, crawl_delay_ms), ready_at_ms)
        left[host.name] = requests
        politeness.admit(host, slot, 0)
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
            by_host.setdefault(name, []).append((started_ms, now_ms))
            by_slot.setdefault(host.slot, []).append((started_ms, now_ms))
            politeness.end(host, now_ms, has_more=left[name] > 0)
        waited += 1
        assert waited < 1000
    for spans, pause_of in ((by_host, lambda name: max(delay_ms, given_hosts[int(name)][1])), (by_slot, lambda slot: delay_ms)):
        for key, requests in spans.items():
            requests.sort()
            for (_, ended_ms), (started_ms, _) in zip(requests, requests[1:]):
                assert started_ms >= ended_ms + pause_of(key)
