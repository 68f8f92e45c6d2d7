"""Hosts that wait to be asked: their names are resolved, many at a time, then politeness admits them."""

from collections import deque
from collections.abc import Callable

from stages.fetcher.politeness import Politeness
from stages.fetcher.resolver import Found, Resolver
from stages.fetcher.server_queues import HostWork, Server
from stages.fetcher.slots import network_of


class HostAdmission:
    def __init__(
        self,
        hosts: list[HostWork],
        resolver: Resolver,
        politeness: Politeness,
        domain_of: Callable[[str], str],
        queries_max: int,
        on_advance: Callable[[HostWork], None],
        on_no_address: Callable[[HostWork, Found], None],
    ):
        self._waiting = deque(hosts)
        self._resolver = resolver
        self._politeness = politeness
        self._domain_of = domain_of
        self._queries_max = queries_max
        self._queries = 0
        self._on_advance = on_advance  # called with each host before its name is looked up
        self._on_no_address = on_no_address  # called with a host that cannot be asked, and the reason
        for host in hosts:
            host.is_active = True

    @property
    def is_over(self) -> bool:
        return not self._waiting and not self._queries

    @property
    def pending(self) -> int:
        """Hosts that wait to be looked up, or are being looked up."""
        return len(self._waiting) + self._queries

    def add(self, host: HostWork) -> None:
        """Takes a host that has something to ask, unless it is active already."""
        if not host.is_active:
            host.is_active = True
            self._waiting.append(host)

    def return_home(self, server: Server) -> None:
        """Takes a server that may be asked again: its robots.txt was at another host, or its URLs had to wait."""
        server.is_away = False
        if not server.needs_robots:
            server.home.obey_late(server.delay_ms)
        if server.has_more:
            if server not in server.home.servers:
                server.home.servers.append(server)
            self.add(server.home)

    @property
    def can_advance(self) -> bool:
        return bool(self._waiting) and self._queries < self._queries_max

    def advance(self, now_ms: int, most: int, start_query: Callable[[HostWork], None]) -> None:
        """Admits up to `most` hosts; `start_query` is called for those whose names must be looked up first."""
        while self.can_advance and most > 0:
            host = self._waiting.popleft()
            most -= 1
            self._on_advance(host)
            if not host.has_more:
                host.is_active = False
            elif (found := self._resolver.look_up(host.name, now_ms)) is not None:
                self._admit_found(host, found, now_ms)
            else:
                self._queries += 1
                start_query(host)

    async def resolve(self, host: HostWork, clock: Callable[[], int], is_over: Callable[[], bool]) -> Found:
        """Looks up the addresses of a host for which advance() called `start_query`; returns what was found."""
        asked_at_ms = clock()
        try:
            found = await self._resolver.resolve(host.name, asked_at_ms)
        finally:
            self._queries -= 1
        if not is_over():
            host.dns_ms = clock() - asked_at_ms
            self._admit_found(host, found, clock())
        return found

    def _admit_found(self, host: HostWork, found: Found, now_ms: int) -> None:
        host.expires_at_ms = found.expires_at_ms
        if not found.addresses:
            host.is_active, host.why_none = False, found.message
            self._on_no_address(host, found)
            return
        host.addresses = list(found.addresses)
        self.admit(host, now_ms)

    def admit(self, host: HostWork, now_ms: int) -> None:
        self._politeness.admit(host, network_of(host.address), self._domain_of(host.name), now_ms)
