"""Which host may be asked now: one request at a time, and a pause after each, per host, per address and per domain.

Theory. A *rest* is what must be left in peace together: a host, an address, or a registered domain. A host may be asked
when none of its rests is busy and all have rested. Every host with something to ask is either in a heap, sorted by the
moment at which it may be worth a look, or in the queue of a busy rest that it waits for. A rest that becomes free sends
the first host of its queue to the heap, and only that one. So a thousand hosts of one address cost no more than the one
whose turn it is. If that host cannot use the rest, the next one is sent. The cost of a request therefore grows with the
logarithm of the number of hosts, and no host waits for a rest that is not its own.

contract/pause.py says how long each rest lasts. What a server asked for, or its errors call for, holds for the host and
its domain.

No clock and no I/O here: moments are arguments, whole milliseconds of one clock, rounded down.
"""

import heapq
from collections import deque
from itertools import count

from contract.config import Fetcher
from contract.pause import DOMAIN, longest_address_pause_ms, pauses_after, rested_at_ms
from stages.fetcher.slots import ASKED, clamp, slot_of

BUSY_ELSEWHERE_MS = 100  # until an address that another process is asking is looked at again


class Rest:
    """What is left in peace together: free, or busy with one request, and when it has rested."""

    def __init__(self, slot: int = -1):
        self.slot = slot  # of a host or an address, in the table that processes and cycles share
        self.is_busy = False
        self.ready_at_ms = 0
        self.queue: deque[Host] = deque()


class Host:
    """A host with something left to ask."""

    def __init__(self, name: str, ready_at_ms: int = 0):
        self.name = name
        self.pause_ms = 0  # the longest crawl-delay of its servers
        self.rest = Rest(slot_of(name.encode()))
        self.rest.ready_at_ms = ready_at_ms
        self.rests: tuple[Rest, ...] = (self.rest,)
        self.sent_by: Rest | None = None
        self.due_at_ms = 0

    @property
    def address_rest(self) -> Rest:
        return self.rests[1]

    @property
    def slotted(self) -> tuple[Rest, ...]:
        """What other processes may ask too: the address, and the host, where a robots.txt of theirs leads to it."""
        return self.rests[:2]

    @property
    def ready_at_ms(self) -> int:
        return self.rest.ready_at_ms

    def rest_at_least(self, pause_ms: int) -> None:
        """From now on, after every request."""
        self.pause_ms = max(self.pause_ms, pause_ms)

    def rest_until(self, ready_at_ms: int) -> None:
        self.rest.ready_at_ms = max(self.rest.ready_at_ms, ready_at_ms)


class Politeness:
    def __init__(self, slots, config: Fetcher):
        self._slots = slots
        self._config = config
        self._longest_ms = longest_address_pause_ms(config)
        self._addresses: dict[bytes, Rest] = {}
        self._least_ms = max(pauses_after(config, 0, 0))
        self._written: dict[int, int] = {}  # slot -> what we wrote there ourselves: a moment, or ASKED
        self._before: dict[int, int] = {}  # slot -> the moment that was there before the request that we make
        self._foreign: dict[int, tuple[int, int]] = {}  # slot -> what others wrote there, and the moment that counts
        self._domains: dict[str, Rest] = {}
        self._heap: list[tuple[int, int, Host]] = []
        self._order = count()  # of hosts that are due at the same moment
        self.waiting = 0  # hosts with something to ask that are not being asked

    def admit(self, host: Host, network: bytes, domain: str, now_ms: int) -> None:
        """Adds a host that has something to ask, at the network of its address."""
        address = self._addresses.get(network)
        if address is None:
            address = self._addresses[network] = Rest(slot_of(network))
        shared = (self._domains.setdefault(domain, Rest()),) if DOMAIN in self._config.delay_scope else ()
        host.rests = (host.rest, address, *shared)
        self.waiting += 1
        self._push(host, now_ms)

    def next_at(self) -> int | None:
        """The earliest moment at which take() may find a host; none while all hosts wait for one that is asked."""
        return self._heap[0][0] if self._heap else None

    def take(self, now_ms: int) -> Host | None:
        """A host that may be asked now; its rests are busy until it is given back by end() or leave()."""
        while self._heap and self._heap[0][0] <= now_ms:
            _, _, host = heapq.heappop(self._heap)
            if self._claim(host, now_ms):
                return host
        return None

    def _claim(self, host: Host, now_ms: int) -> bool:
        late, late_at_ms = None, now_ms
        for rest in host.rests:
            if rest.is_busy:
                self._wait_for(host, rest, now_ms)
                return False
            if (ready_at_ms := self._ready_at(rest, now_ms)) > late_at_ms:
                late, late_at_ms = rest, ready_at_ms
        if late is None:
            late = self._hold(host, now_ms)
        if late is not None:
            if host.sent_by is not late:
                self._send_another(host, now_ms)
            self._push(host, now_ms)
            return False
        host.sent_by = None
        for rest in host.rests:
            rest.is_busy = True
        self.waiting -= 1
        return True

    def _hold(self, host: Host, now_ms: int) -> Rest | None:
        """Locks host and address against other processes, or neither; returns the one that is not free."""
        held: list[Rest] = []
        for rest in host.slotted:
            if not self._lock(rest, now_ms):
                for other in held:
                    self._let_go(other)
                return rest
            held.append(rest)
        return None

    def _lock(self, rest: Rest, now_ms: int) -> bool:
        """False where another process asks it, or did since we looked."""
        slot = rest.slot
        if not self._slots.hold(slot):
            rest.ready_at_ms = now_ms + BUSY_ELSEWHERE_MS
            return False
        stored_ms, is_ours = self._slots[slot], self._written.get(slot) == ASKED
        if stored_ms == ASKED and not is_ours:  # a process died; its request may have ended only now
            rest.ready_at_ms = rested_at_ms(now_ms, self._least_ms)
            self._release(rest)
            return False
        if self._ready_at(rest, now_ms) > now_ms:
            self._slots.release(slot, None)
            return False
        if not is_ours:  # else what shares the slot is being asked
            self._before[slot], self._written[slot] = stored_ms, ASKED
            self._slots.begin(slot)
        return True

    def _release(self, rest: Rest) -> None:
        """Ends a hold: it rests from now on."""
        self._written[rest.slot] = rest.ready_at_ms
        self._slots.release(rest.slot, rest.ready_at_ms)

    def _let_go(self, rest: Rest) -> None:
        """Ends a hold without a request: what the slot said before is true again."""
        before_ms = self._written[rest.slot] = self._before.get(rest.slot, 0)
        self._slots.release(rest.slot, before_ms)

    def _wait_for(self, host: Host, rest: Rest, now_ms: int) -> None:
        if host.sent_by is rest:  # another host was quicker: this one stays first in the queue
            host.sent_by = None
            rest.queue.appendleft(host)
        else:
            rest.queue.append(host)
            self._send_another(host, now_ms)

    def _send_another(self, host: Host, now_ms: int) -> None:
        """A free rest had sent this host, which cannot use it now: the next host of its queue gets the chance."""
        rest, host.sent_by = host.sent_by, None
        if rest is not None and not rest.is_busy:
            self._send_first(rest, now_ms)

    def _send_first(self, rest: Rest, now_ms: int) -> None:
        if rest.queue:
            host = rest.queue.popleft()
            host.sent_by = rest
            self._push(host, now_ms)

    def end(self, host: Host, now_ms: int, total_ms: int, has_more: bool) -> None:
        """Gives back a host whose request has ended after `total_ms`: its rests begin."""
        pauses = pauses_after(self._config, host.pause_ms, total_ms)
        own, address, *domain = host.rests
        own.ready_at_ms = max(own.ready_at_ms, rested_at_ms(now_ms, pauses.host_ms))
        for rest in domain:
            rest.ready_at_ms = max(own.ready_at_ms, rested_at_ms(now_ms, pauses.domain_ms))
        address.ready_at_ms = rested_at_ms(now_ms, pauses.address_ms)
        for rest in host.slotted:
            self._release(rest)
        self._give_back(host, now_ms, has_more)

    def leave(self, host: Host, now_ms: int, has_more: bool) -> None:
        """Gives back a host that was not asked after all."""
        for rest in host.slotted:
            self._let_go(rest)
        self._give_back(host, now_ms, has_more)

    def _give_back(self, host: Host, now_ms: int, has_more: bool) -> None:
        for rest in host.rests:
            rest.is_busy = False
        for rest in host.rests:
            self._send_first(rest, now_ms)
        if has_more:  # behind those that waited
            self.waiting += 1
            self._push(host, now_ms)

    def _ready_at(self, rest: Rest, now_ms: int) -> int:
        if rest.slot < 0:
            return rest.ready_at_ms
        stored_ms = self._slots[rest.slot]
        # Written by ourselves, for this address or for one that shares its slot; or another's lock decides.
        if stored_ms in (self._written.get(rest.slot), ASKED):
            return rest.ready_at_ms
        return max(rest.ready_at_ms, self._believe(rest.slot, stored_ms, now_ms))

    def _believe(self, slot: int, stored_ms: int, now_ms: int) -> int:
        """A moment that another process wrote. One that is too late, by a clock that was set back since, counts from
        when it was first seen: it would stay ahead of us for ever.
        """
        seen_ms, believed_ms = self._foreign.get(slot, (None, 0))
        if seen_ms != stored_ms:
            believed_ms = clamp(stored_ms, now_ms, self._longest_ms)
            self._foreign[slot] = stored_ms, believed_ms
        return believed_ms

    def _push(self, host: Host, now_ms: int) -> None:
        host.due_at_ms = max(self._ready_at(rest, now_ms) for rest in host.rests)
        heapq.heappush(self._heap, (host.due_at_ms, next(self._order), host))
