"""Servers of the list while they are fetched: what is left to ask, by which rules, and how often they failed in a row."""

from collections import deque
from dataclasses import dataclass

from contract.robots import Rules
from contract.tables import ANSWERED, FAILED
from stages.fetcher import robots
from stages.fetcher.politeness import Host


@dataclass(frozen=True)
class Known:
    """What earlier cycles know of a server, from Servidores."""
    robots_text: bytes | None = None  # none where unknown or expired
    delay_ms: int = 0
    last_request_at_ms: int = 0
    failures: int = 0


class Server:
    def __init__(self, name: str, known: Known, agent: str, failures_max: int, robots_max_bytes: int):
        self.name = name
        self.urls: deque[str] = deque()
        self.failures = known.failures
        self.is_left_alone = False  # for the rest of the cycle
        self.robots_url = name + robots.PATH
        self._robots_text = known.robots_text
        self._robots_redirects = 0
        self._rules: Rules | None = None
        self._agent = agent
        self._failures_max = failures_max
        self._robots_max_bytes = robots_max_bytes

    @property
    def has_more(self) -> bool:
        return bool(self.urls) and not self.is_left_alone

    @property
    def needs_robots(self) -> bool:
        return self._robots_text is None

    @property
    def rules(self) -> Rules:
        """The rules, parsed at first use: many servers of a list are never reached."""
        if self._rules is None:
            self._rules = Rules(self._robots_text, self._agent)
        return self._rules

    def note(self, outcome: str) -> None:
        """Counts failures in a row; a refusal is our own doing and counts neither way."""
        if outcome == ANSWERED:
            self.failures = 0
        elif outcome == FAILED:
            self.failures += 1
            if self.failures >= self._failures_max:
                self.is_left_alone = True

    def note_robots(self, url: str, outcome: str, block: bytes) -> None:
        """Takes the end of an exchange for robots.txt; `block` is the response block, empty without an answer."""
        answer = robots.read_answer(url, self._robots_redirects, outcome, block, self._robots_max_bytes)
        if answer.follow:
            self.robots_url = answer.follow
            self._robots_redirects += 1
        elif answer.text is None:
            self.is_left_alone = True
        else:
            self._robots_text = answer.text


class HostWork(Host):
    """The servers of one host, asked in turn."""

    def __init__(self, name: str, pause_ms: int):
        super().__init__(name, pause_ms)
        self.servers: deque[Server] = deque()

    @property
    def has_more(self) -> bool:
        return any(server.has_more for server in self.servers)

    def next_server(self) -> Server | None:
        """The server whose turn it is; those that are done with are dropped."""
        while self.servers:
            if self.servers[0].has_more:
                self.servers.rotate(-1)
                return self.servers[-1]
            self.servers.popleft()
        return None
