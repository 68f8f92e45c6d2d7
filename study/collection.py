"""A graph as a crawl keeps it: pages in the order of (domain key, URL key), with the keys of URLs, servers and domains.

Every block is a run of rows then. A graph without URLs gets keys made from page numbers; as pages are numbered by URL
there, runs of RUN neighbours stand for servers and domains, so that a list has to spread over the collection.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract.blocks import interval
from contract.url import Keys, servers_of
from contract.url_paths import GOLDEN
from storage.text_segments import data_of
from study.graphs import Graph, Rows

RUN = 500  # pages that stand for a server
Values = npt.NDArray[np.float64]
KeyColumn = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Collection:
    graph: Graph
    ranks: Values  # PageRank in the whole graph
    key: KeyColumn
    domain_key: KeyColumn  # rising
    server_key: KeyColumn
    keys: Keys | None  # None: the graph has no URLs

    def __len__(self) -> int:
        return len(self.key)

    @property
    def has_urls(self) -> bool:
        return self.keys is not None

    def lines(self, rows: Rows) -> pa.LargeBinaryArray | None:
        """URLs, each with a newline."""
        return None if self.graph.urls is None else self.graph.urls.take(pa.array(rows))

    def edges_of_blocks(self, blocks: int) -> Rows:
        """The first row of each of so many blocks, in the order of keys, and the end."""
        lows = sorted(interval(block, blocks)[0] for block in range(blocks))
        return np.append(np.searchsorted(self.domain_key, np.array(lows, np.uint64)), len(self))


def collect(graph: Graph, ranks: Values, seed: int) -> Collection:
    """`seed` is the secret of the keys: with another one blocks hold other domains, and what is equal comes otherwise.

    REQUIRES: `graph` has URLs of all pages or of none.
    """
    if graph.urls is None:
        keys = None
        number = np.arange(len(graph), dtype=np.uint64)
        key, server_key = mix(number, seed), mix(number // np.uint64(RUN), ~seed)
        domain_key = server_key
    else:
        keys = Keys(seed)
        key, server_key, domain_key = keys_of(keys, graph.urls)
    order = np.lexsort((key, domain_key))
    return Collection(graph.take(order), ranks[order], key[order], domain_key[order], server_key[order], keys)


def keys_of(keys: Keys, lines: pa.LargeBinaryArray) -> tuple[KeyColumn, KeyColumn, KeyColumn]:
    """The keys of URLs, and of the server and the registered domain of each."""
    starts, data = data_of(lines)
    text = data.tobytes()
    key = np.fromiter(
        (keys.of(text[low : high - 1].decode("ascii")) for low, high in zip(starts.tolist(), starts[1:].tolist())),
        np.uint64,
        len(lines),
    )
    servers = [keys.server(name) for name in servers_of(text, starts[:-1].tolist())]
    each = np.fromiter(((server.key, server.domain_key) for server in servers), np.dtype("u8,u8"), len(lines))
    return key, each["f0"], each["f1"]


def mix(numbers: KeyColumn, seed: int) -> KeyColumn:
    """A key for each number, no two the same: each step can be undone."""
    with np.errstate(over="ignore"):
        mixed = (numbers + np.uint64(seed % (1 << 64)) * GOLDEN) * GOLDEN
        mixed ^= mixed >> np.uint64(29)
        mixed *= GOLDEN
        return mixed ^ mixed >> np.uint64(32)
