"""Outcomes that need no request: URLs that the rules or the configuration refuse, and hosts that cannot be asked."""

from collections import deque
from collections.abc import Callable

from contract.tables import FAILED, REASON_ROBOTS, REFUSED
from stages.fetcher.outcomes import Outcomes
from stages.fetcher.pre_refusals import explain_refusal
from stages.fetcher.reasons import FORBIDDEN_ADDRESS
from stages.fetcher.server_queues import HostWork, Server

AT_ONCE_MAX = 500  # URLs refused before sockets and signals get their turn


class Settlement:
    def __init__(
        self,
        outcomes: Outcomes,
        refused: dict[str, str],
        clock: Callable[[], int],
        return_home: Callable[[Server], None],
    ):
        self._outcomes = outcomes
        self._refused = refused  # URLs that are not asked for -> reason
        self._clock = clock
        self._return_home = return_home  # called for a server whose robots.txt was asked for at another host

    def settle(self, server: Server, url: str, outcome: str, reason: str, message: str) -> None:
        self._outcomes.settle(url, outcome, reason, self._clock(), message=message)
        server.note(outcome)

    def settle_robots(self, server: Server, outcome: str, reason: str, message: str) -> None:
        self._outcomes.settle(
            server.robots_url, outcome, reason, self._clock(), message=message, robots_for=server.name
        )
        server.note(outcome)
        server.note_robots(server.robots_url, outcome, b"")
        if server.is_away:
            self._return_home(server)

    def is_through(self, server: Server) -> bool:
        """Settles the URLs at the head of the queue that the rules forbid; false where there may be more of them."""
        for _ in range(AT_ONCE_MAX):
            if server.needs_robots or (forbidden := server.pop_forbidden()) is None:
                return True
            url, rule = forbidden
            self.settle(server, url, REFUSED, REASON_ROBOTS, rule)
        return False

    def refuse(self, host: HostWork) -> None:
        """Settles the URLs of a host that are not to be asked for, before its name is looked up."""
        refused = self._refused
        for server in host.servers if refused else ():
            out = [url for url in server.urls if url in refused]
            if out:
                server.urls = deque(url for url in server.urls if url not in refused)
            for url in out:
                self.settle(server, url, REFUSED, refused[url], explain_refusal(url, refused[url]))

    def give_up(self, host: HostWork, reason: str) -> None:
        """Settles the URLs and errands of a host that has no address to ask."""
        while host.errands:
            self.settle_robots(host.errands.popleft(), FAILED, reason, host.why_none)
        for server in list(host.servers):
            if reason != FORBIDDEN_ADDRESS and server.needs_robots and server.has_more:
                self.settle_robots(server, FAILED, reason, host.why_none)
            while server.has_more:
                if reason == FORBIDDEN_ADDRESS:
                    self.settle(server, server.urls.popleft(), REFUSED, reason, host.why_none)
                elif self.is_through(server) and server.has_more:
                    self.settle(server, server.urls.popleft(), FAILED, reason, host.why_none)
