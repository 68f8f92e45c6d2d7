"""A crawl folder of nothing but links, for tests of graphs; and what its graph must be, found the slow way."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.graph.cycles import CycleOfLinks, write_cycle
from contract.crawl_folder import CrawlFolder, create
from contract.url import server_of
from graph.folder import Graph, Level

Link = tuple[str, str]


@dataclass
class LinkCrawl:
    folder: Path
    crawl: CrawlFolder = field(init=False)
    cycles: int = 0
    forged: dict[str, int] = field(default_factory=dict)  # keys of URLs that are not those of their texts

    def __post_init__(self):
        self.crawl = create(self.folder, 2, hash_seed=17)

    def key(self, url: str) -> int:
        return self.forged.get(url, self.crawl.keys().of(url))

    def add(
        self,
        links: Iterable[Link],
        *,
        unknown: Iterable[str] = (),
        pages: Iterable[str] = (),
        nofollow: Iterable[Link] = (),
        kinds: dict[Link, int] | None = None,
        at_ms: int = 0,
        unchanged: Iterable[str] = (),
        targets: Iterable[str] | None = None,
    ) -> None:
        """A cycle with these links. Pages are all that links come from; targets in `unknown` have no text."""
        links = sorted(set(links), key=lambda link: (self.key(link[0]), self.key(link[1])))
        collected = sorted({*(source for source, _ in links), *pages})
        extracted = sorted({target for _, target in links} - set(unknown))
        nofollow, unchanged = set(nofollow), set(unchanged)
        folder = write_cycle(
            self.crawl,
            self.cycles,
            CycleOfLinks(
                self.keyed(collected),
                self.keyed(extracted),
                {
                    "from_key": self.keys(source for source, _ in links),
                    "to_key": self.keys(target for _, target in links),
                    "nofollow": [link in nofollow for link in links],
                    "kinds": [(kinds or {}).get(link, 1) for link in links],
                },
                {
                    "url_key": self.keys([*collected, *unchanged]),
                    "fetched_at_ms": [at_ms] * (len(collected) + len(unchanged)),
                    "revisit": [False] * len(collected) + [True] * len(unchanged),
                },
                None if targets is None else {"key": self.keys(targets), "url": list(targets)},
            ),
        )
        self.cycles += 1
        self.last = folder

    def keyed(self, urls: list[str]) -> dict:
        keys = self.crawl.keys()
        domains = [keys.server(server_of(url)).domain_key for url in urls]
        return {"url": urls, "url_key": self.keys(urls), "domain_key": np.array(domains, np.uint64)}

    def keys(self, urls: Iterable[str]) -> np.ndarray:
        return np.array([self.key(url) for url in urls], np.uint64)


def texts_of(level: Level) -> list[str]:
    return [text for piece in level.texts.pieces() for text in piece]


def edges_of(level: Level, is_back: bool = False) -> dict[Link, int]:
    """Source and target of each edge -> its weight, 1 for pages."""
    texts, found = texts_of(level), {}
    for sources, targets, weights in (level.backlinks if is_back else level.links).edge_pieces(7):
        assert (np.diff(sources) >= 0).all()
        each = [1] * len(sources) if weights is None else weights.tolist()
        for source, target, weight in zip(sources.tolist(), targets.tolist(), each):
            ends = (texts[target], texts[source]) if is_back else (texts[source], texts[target])
            assert ends not in found, "an edge stands twice"
            found[ends] = weight
    return found


def expect_graph(graph: Graph, urls: Iterable[str], links: Iterable[Link], domain_of) -> None:
    """The graph has these pages and links, numbered in the order of URLs, folded, transposed, and found by text."""
    links = set(links)
    assert texts_of(graph.pages) == sorted(set(urls))
    ends_of = {
        "pages": lambda url: url,
        "servers": lambda url: server_of(url) + "/",
        "domains": lambda url: domain_of(server_of(url)),
    }
    for name, end in ends_of.items():
        level = graph.level(name)
        wanted = Counter((end(source), end(target)) for source, target in links)
        assert edges_of(level) == edges_of(level, is_back=True) == wanted
        assert texts_of(level) == sorted({end(url) for url in urls})
        assert level.edges == len(wanted)
        for number, text in enumerate(texts_of(level)):
            assert level.texts.find(text) == number and level.texts[number] == text
        assert level.texts.find("zzz") is None and level.texts.find("") is None
