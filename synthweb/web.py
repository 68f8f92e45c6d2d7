"""The web as its users see it: seeds, names, the truth of a crawl, and the answer to any request."""

import copy
import time
from collections import Counter

from synthweb.answer import Answer, answer_request, refuse
from synthweb.growth import grow_web
from synthweb.rules import Rules
from synthweb.server import Server
from synthweb.walk import Walk, walk_web
from synthweb.wire import Request


class Web:
    """A web made from a seed. The same seed and number of servers give the same web, byte for byte.

    The port is written into URLs and changes nothing else; 0 stands for one that serve() is to choose.
    """

    def __init__(self, seed: int, servers: int = 300, port: int = 8080) -> None:
        self.seed = seed
        self.port = port
        self.servers: dict[str, Server] = {server.host: server for server in grow_web(seed, servers)}

    def at_port(self, port: int) -> "Web":
        """The same web on another port."""
        moved = copy.copy(self)
        moved.port = port
        return moved

    def seeds(self) -> list[str]:
        """Home pages from which every live server is reached."""
        return [page.url.text(self.port) for page in self._seed_pages()]

    def hosts(self) -> dict[str, str]:
        """Every name that resolves, with its address; nothing may listen there."""
        return {server.host: server.address for server in self.servers.values() if server.address}

    def addresses(self) -> list[str]:
        """The addresses that listen, each once."""
        return sorted({server.address for server in self.servers.values() if server.address and server.listens()})

    def answer(self, host: str, target: str, attempt: int = 1, accepts_gzip: bool = False) -> Answer:
        """What `host` answers when `target` is asked for the `attempt`-th time, the first being 1."""
        server = self.servers.get(host)
        if server is None:
            return refuse(421)
        return answer_request(server, target, attempt, accepts_gzip, self.port, self.seed)

    def respond(self, request: Request, attempt: int) -> Answer:
        """What is answered to a request; conditions in it are ignored."""
        return self.answer(request.host, request.target, attempt, request.accepts_gzip)

    def wall_ms(self) -> float:
        return time.time() * 1000

    def walk(self, rules: Rules = Rules()) -> Walk:
        """The fate of every URL that a correct crawl from the seeds meets."""
        return walk_web(self.servers, [page.url for page in self._seed_pages()], self.port, rules)

    def truth(self, rules: Rules = Rules()) -> set[str]:
        """Every URL that a correct crawl from the seeds gets an answer for, other than 429 and 5xx."""
        return set(self.walk(rules).collected)

    def forbidden(self, rules: Rules = Rules()) -> set[str]:
        """Every URL that such a crawl finds linked and that robots.txt forbids."""
        return self.walk(rules).forbidden

    def census(self) -> Counter[str]:
        """How often each kind of thing occurs, by name: `role:slow`, `page:404`, `form:relative`, ..."""
        counts: Counter[str] = Counter()
        for server in self.servers.values():
            counts.update((f"role:{server.role}", f"robots:{server.robots.name}", f"tongue:{server.tongue.name}"))
            counts.update(f"trap:{trap.name}" for trap in server.traps)
            counts["subdomain"] += server.host.count(".") > 1
            for page in server.pages.values():
                counts.update((f"page:{page.feature}", f"status:{page.status}", f"shape:{page.shape}"))
                counts.update((f"charset:{page.charset}", f"declared:{page.declared}", f"framing:{page.framing}"))
                counts["gzip"] += page.gzipped
                counts["connection-close"] += page.closes
                counts["native-path"] += not page.url.path.isascii()
                for link in page.links:
                    counts.update((f"link:{link.kind}", f"form:{link.form}", f"extra:{link.extra}", f"why:{link.why}"))
        counts["shared-address"] = sum(n > 1 for n in Counter(self.hosts().values()).values())
        return +counts

    def _seed_pages(self):
        return [server.home() for server in self.servers.values() if server.home().level == 0]
