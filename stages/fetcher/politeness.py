"""Which host may be asked now: one request at a time, and a pause after each, per host and per address.

Theory (the workbench of BUbiNG). Every host has one address, every address one lane. A lane is busy while one of its
hosts is asked, so that one request at a time holds for both at once. Otherwise the lane is due when its address has
rested and the first of its hosts has. A heap of lanes by that moment gives the next host to ask in logarithmic time;
busy lanes are not in it, so no host waits for a lane that is not its own.

A host rests for the longest of our delay and the crawl-delays of its servers; its address for our delay, since a
crawl-delay speaks for one site and must not hold up its neighbours. No clock and no I/O here: moments are arguments,
whole milliseconds of one clock, rounded down.
"""

import heapq
from collections.abc import MutableMapping
from itertools import count

from stages.fetcher.slots import clamp


class Host:
    """A host with something left to ask."""

    def __init__(self, name: str, pause_ms: int, ready_at_ms: int = 0):
        self.name = name
        self.pause_ms = pause_ms
        self.ready_at_ms = ready_at_ms
        self.slot = -1

    def rest_at_least(self, pause_ms: int) -> None:
        self.pause_ms = max(self.pause_ms, pause_ms)


class Lane:
    def __init__(self, slot: int):
        self.slot = slot
        self.hosts: list[tuple[int, int, Host]] = []  # a heap by readiness, then by order of arrival
        self.is_busy = False
        self.due_at_ms = 0


def rested_at(end_ms: int, pause_ms: int) -> int:
    """The first moment at which the pause is over: both moments are rounded down, hence the one millisecond more."""
    return end_ms + pause_ms + 1 if pause_ms else end_ms


class Politeness:
    def __init__(self, slots: MutableMapping, delay_ms: int):
        self._slots = slots
        self._delay_ms = delay_ms
        self._lanes: dict[int, Lane] = {}
        self._due: list[tuple[int, int, Lane]] = []  # a heap; an entry that is not its lane's due moment is void
        self._arrivals = count()

    def admit(self, host: Host, slot: int, now_ms: int) -> None:
        """Adds a host that has something to ask, at the slot of its address."""
        host.slot = slot
        lane = self._lanes.setdefault(slot, Lane(slot))
        heapq.heappush(lane.hosts, (host.ready_at_ms, next(self._arrivals), host))
        if not lane.is_busy:
            self._schedule(lane, now_ms)

    def next_at(self) -> int | None:
        """The earliest moment at which a host may be asked, or none while all lanes are busy or empty."""
        while self._due and not self._is_valid(self._due[0]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def take(self, now_ms: int) -> Host | None:
        """A host that may be asked now; its lane is busy until the host is given back by end() or leave()."""
        while (due_at_ms := self.next_at()) is not None and due_at_ms <= now_ms:
            _, _, lane = heapq.heappop(self._due)
            if self._due_moment(lane, now_ms) > now_ms:  # somebody else has used the address meanwhile
                self._schedule(lane, now_ms)
                continue
            lane.is_busy = True
            _, _, host = heapq.heappop(lane.hosts)
            return host
        return None

    def end(self, host: Host, now_ms: int, has_more: bool) -> None:
        """Gives back a host whose request has ended: it and its address rest from now on."""
        host.ready_at_ms = rested_at(now_ms, host.pause_ms)
        self._slots[host.slot] = rested_at(now_ms, self._delay_ms)
        self._give_back(host, now_ms, has_more)

    def leave(self, host: Host, now_ms: int, has_more: bool) -> None:
        """Gives back a host that was not asked after all."""
        self._give_back(host, now_ms, has_more)

    def _give_back(self, host: Host, now_ms: int, has_more: bool) -> None:
        lane = self._lanes[host.slot]
        lane.is_busy = False
        if has_more:
            heapq.heappush(lane.hosts, (host.ready_at_ms, next(self._arrivals), host))
        if lane.hosts:
            self._schedule(lane, now_ms)
        else:
            del self._lanes[host.slot]

    def _due_moment(self, lane: Lane, now_ms: int) -> int:
        address_ready_at_ms = clamp(self._slots[lane.slot], now_ms, rested_at(0, self._delay_ms))
        return max(address_ready_at_ms, lane.hosts[0][0])

    def _schedule(self, lane: Lane, now_ms: int) -> None:
        lane.due_at_ms = self._due_moment(lane, now_ms)
        heapq.heappush(self._due, (lane.due_at_ms, next(self._arrivals), lane))

    def _is_valid(self, entry: tuple[int, int, Lane]) -> bool:
        due_at_ms, _, lane = entry
        return not lane.is_busy and bool(lane.hosts) and lane.due_at_ms == due_at_ms
