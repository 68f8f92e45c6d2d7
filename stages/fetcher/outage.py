"""An outage of our own network: recognised by local evidence, waited out, and charged to no server.

Two kinds of failure may mean that the network is down here: the kernel knows no route to any address of a host
(ENETUNREACH, ENETDOWN), or no name server answers at all. Such a failure is held back. A success of the same
kind shows that the network works: what was held back becomes ordinary failures. When failures of 3 domains are held
back with no success in between, we test the network without asking any web server: the route by connecting datagram
sockets, which sends nothing; the name servers by a question about the root. If that fails too, the network is down:
nothing new is asked, the clock of the cycle stops, and we test again until the network is back or `outage_max_s` is
over. What was held back is then asked again, now or by the next attempt.

A list may hold fewer than 3 domains, and each block of a crawl has lists of its own. So once nothing else is left to
ask, one domain without a name is enough to make us look: name servers that answer no question about the root are this
machine's own. A missing route is not enough: a crawl of an intranet may have no route to the world, and one dead
network in it.

A machine without IPv6 has a route to the IPv4 world, and a dead prefix leaves the route to the last address that
answered: neither is an outage. Timeouts and refused connections say nothing about this machine and are never evidence.
"""

import errno
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

import trio

from stages.fetcher.stopping import say

ROUTE, NAMES = "route", "names"
WHAT = {ROUTE: "no route to any address", NAMES: "no name server answers"}
NO_ROUTE = (errno.ENETUNREACH, errno.ENETDOWN)
# Addresses for documentation (RFC 5737, RFC 3849): a default route leads there, and nothing is sent.
WORLD = ("192.0.2.1", "2001:db8::1")
DOMAINS_LEAST = 3
LOOK_LEAST_S, LOOK_MOST_S = 2.0, 30.0
ANY_PORT = 9


class Held(NamedTuple):
    """A failure that is held back."""

    kind: str
    domain: str
    fail: Callable[[], None]  # makes it an ordinary failure
    ask_again: Callable[[], None]
    address: str = ""


class Outage:
    """What is held back, and whether the network is down; moments are arguments."""

    def __init__(self):
        self._held: list[Held] = []
        self._began_at_ms: int | None = None
        self._earlier_ms = 0  # duration of the outages that are over
        self._alive = ""  # the last address that answered in any way
        self._domains_least = {ROUTE: DOMAINS_LEAST, NAMES: DOMAINS_LEAST}

    @property
    def is_down(self) -> bool:
        return self._began_at_ms is not None

    @property
    def is_doubted(self) -> bool:
        """Whether nothing new is to be asked: the network is down, or may be."""
        return self.is_down or bool(self._held and self.doubted_kinds())

    def doubted_kinds(self) -> list[str]:
        domains = {kind: {held.domain for held in self._held if held.kind == kind} for kind in (ROUTE, NAMES)}
        return [kind for kind, found in domains.items() if len(found) >= self._domains_least[kind]]

    def doubt_names(self) -> bool:
        """Nothing else is left to ask: from now on one domain without a name is a doubt; whether there is one."""
        self._domains_least[NAMES] = 1
        return self.is_doubted

    def domains(self) -> list[str]:
        return sorted({held.domain for held in self._held})

    def lasted_ms(self, now_ms: int) -> int:
        """How long the network was down, all outages of this run together."""
        return self._earlier_ms + self.present_ms(now_ms)

    def present_ms(self, now_ms: int) -> int:
        return now_ms - self._began_at_ms if self.is_down else 0

    def hold(self, held: Held) -> None:
        self._held.append(held)

    def note_success(self, kind: str, now_ms: int, address: str = "") -> None:
        """Takes a sign that the network works."""
        self._alive = address or self._alive
        if self._held and any(held.kind == kind for held in self._held):
            if self.is_down:
                self.end(now_ms)
            else:
                self.fail(kind)

    def begin(self, now_ms: int) -> None:
        self._began_at_ms = now_ms

    def end(self, now_ms: int) -> None:
        """The network is back: what was held back is asked again."""
        self._earlier_ms, self._began_at_ms = self.lasted_ms(now_ms), None
        held, self._held = self._held, []
        for one in held:
            one.ask_again()

    def fail(self, kind: str = "") -> bool:
        """Turns what is held back, of one kind or of both, into ordinary failures; whether there was any."""
        out = [held for held in self._held if kind in ("", held.kind)]
        self._held = [held for held in self._held if kind not in ("", held.kind)]
        for one in out:
            one.fail()
        return bool(out)

    def has_route(self, *addresses: str) -> bool:
        """Whether the kernel has a route to one of these, to those held back, to the last alive, or to the world."""
        return has_route((*addresses, *{held.address: None for held in self._held}, self._alive, *WORLD))


def has_route(addresses: Iterable[str]) -> bool:
    """Whether the kernel has a route to one of the addresses; sends nothing."""
    for address in filter(None, addresses):
        try:
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect((address, ANY_PORT))
            return True
        except OSError as error:
            if error.errno not in (*NO_ROUTE, errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                return True  # an error other than a missing route
    return False


class Watch:
    """Tests whether the network is down, and when it is back."""

    def __init__(
        self,
        outage: Outage,
        ask_name_server: Callable[[], Awaitable[bool]],
        clock: Callable[[], int],
        max_s: float,
        on_change: Callable[[], None],
        on_too_long: Callable[[str], None],
    ):
        self._outage = outage
        self._ask_name_server = ask_name_server
        self._clock = clock
        self._max_s = max_s
        self._on_change = on_change
        self._on_too_long = on_too_long  # called with a sentence for people
        self._is_looking = False

    @property
    def is_due(self) -> bool:
        return self._outage.is_doubted and not self._is_looking

    async def look(self) -> None:
        """Tests until there is no doubt any more, or for as long as an outage may last."""
        self._is_looking = True
        pause_s, kinds, began_at_ms = LOOK_LEAST_S, self._outage.doubted_kinds(), None
        while not await self._works(kinds) and self._outage.is_doubted:
            if not self._outage.is_down:
                began_at_ms = self._begin(kinds)
            left_s = self._max_s - self._outage.present_ms(self._clock()) / 1000
            if left_s <= 0:
                self._on_too_long(
                    f"the network has been down here for {self._max_s:g} s ({describe(kinds)}): "
                    "run it again when the network is back; no server was charged with it"
                )
                return
            await trio.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, LOOK_MOST_S)
            if not self._outage.is_doubted:  # an answer came meanwhile
                break
        self._is_looking = False
        if began_at_ms is not None:
            say(f"the network is back after {(self._clock() - began_at_ms) / 1000:.0f} s")
        self._on_change()

    async def _works(self, kinds: list[str]) -> bool:
        """Whether the network works; what was held back is then dealt with."""
        for kind in kinds:
            if not (self._outage.has_route() if kind == ROUTE else await self._ask_name_server()):
                return False
        if self._outage.is_down:
            self._outage.end(self._clock())
        else:
            for kind in kinds:
                self._outage.fail(kind)
        return True

    def _begin(self, kinds: list[str]) -> int:
        began_at_ms = self._clock()
        self._outage.begin(began_at_ms)
        domains = self._outage.domains()
        say(
            f"the network is down here ({describe(kinds)}: {', '.join(domains[:DOMAINS_LEAST])}): "
            f"waiting for up to {self._max_s:g} s, looking again every {LOOK_LEAST_S:g} to "
            f"{LOOK_MOST_S:g} s; no server is charged with it"
        )
        return began_at_ms


def describe(kinds: list[str]) -> str:
    return " and ".join(WHAT[kind] for kind in kinds)
