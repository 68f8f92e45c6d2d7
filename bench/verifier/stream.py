"""The stream of URLs: what each cycle collects and extracts, made from a seed and one counter per server.

A URL is a pair (server, number). Its keys and its text follow from the pair alone, so nothing is kept of a URL that
was given out: a server's counter says which numbers are known. Keys are splitmix64 of the pair, not xxh3 of the text
as in a crawl: the verifier only compares keys, and an array of them is made at once. Server sizes follow a power law
(exponent 1, shifted by Mandelbrot's constant, so that the largest server has a thousandth of all: crawls bound a
server).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.verifier.texts import Texts
from contract.blocks import in_interval

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
SERVER_SALT, DOMAIN_SALT = np.uint64(0x5E7E), np.uint64(0xD0_3A17)
SHIFT = 100.0  # Mandelbrot's: the largest server's share is 1 / (SHIFT * ln(servers / SHIFT)), about 0.001
EARLY = 2.0  # links lead to a server's early URLs more often: number = count * u ** EARLY
DRAWS_MAX = 4  # rounds of drawing known URLs; what is still missing after them is made up for by new ones


def mix(values: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser: a bijection of u64."""
    with np.errstate(over="ignore"):
        mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@dataclass(frozen=True)
class Shape:
    """What a stream is like; the same shape gives the same bytes."""

    servers: int = 1_000_000
    collected: int = 100_000  # per cycle, of its block and known before
    extracted: int = 900_000  # per cycle, distinct
    known_share: float = 0.7  # of the extracted
    seed: int = 1

    @property
    def domains(self) -> int:
        return max(1, self.servers // 2)


@dataclass
class Urls:
    """Rows of distinct URLs, in the order of (domain key, URL key)."""

    server: np.ndarray  # u32
    number: np.ndarray  # u32
    key: np.ndarray  # u64
    links_in: np.ndarray  # u32

    def __len__(self) -> int:
        return len(self.key)


class Stream:
    """Gives out one cycle after another; `counts`, `absorbed` and `taken` are u32, one per server."""

    def __init__(self, shape: Shape):
        self.shape = shape
        servers = np.arange(shape.servers, dtype=np.uint64)
        with np.errstate(over="ignore"):
            self.server_key = mix(servers * GOLDEN + SERVER_SALT)
            self.domain_key = mix(servers % np.uint64(shape.domains) * GOLDEN + DOMAIN_SALT)
        self.texts = Texts(shape.servers, shape.domains)
        self.counts = np.zeros(shape.servers, np.uint32)  # URLs given out
        self.absorbed = np.zeros(shape.servers, np.uint32)  # of these, the ones that the server's block has merged
        self.taken = np.zeros(shape.servers, np.uint32)  # of these, the ones that were collected
        self.known_share = 0.0  # of the last cycle

    def extract(self, cycle: int, known_share: float | None = None) -> Urls:
        """The URLs that the pages of this cycle lead to; counts the new ones. `known_share` overrides the shape's."""
        shape = self.shape
        random = np.random.Generator(np.random.PCG64([shape.seed, cycle]))
        again, times = self._draw_known(
            random, round(shape.extracted * (shape.known_share if known_share is None else known_share))
        )
        self.known_share = len(again) / shape.extracted
        fresh = np.bincount(self._draw_servers(random, shape.extracted - len(again)), minlength=shape.servers)
        server = np.repeat(np.arange(shape.servers, dtype=np.uint32), fresh)
        ends = np.cumsum(fresh)
        number = np.arange(len(server)) - np.repeat(ends - fresh, fresh) + self.counts[server]
        self.counts += fresh.astype(np.uint32)
        return self._urls(
            np.concatenate([(again >> np.uint64(32)).astype(np.uint32), server]),
            np.concatenate([again.astype(np.uint32), number.astype(np.uint32)]),
            np.concatenate([times.astype(np.uint32), np.ones(len(server), np.uint32)]),
        )

    def collect(self, low: int, high: int) -> Urls:
        """The next uncollected URLs of the block of domain keys [low, high), spread evenly over its servers."""
        here = np.flatnonzero(in_interval(self.domain_key, low, high))
        waiting = self.absorbed[here] - self.taken[here]
        quota = level_for(waiting, self.shape.collected)
        take = np.minimum(waiting, quota)
        over = int(take.sum()) - self.shape.collected
        if over > 0:
            take[np.flatnonzero(take == quota)[:over]] -= 1
        server = np.repeat(here, take).astype(np.uint32)
        number = np.arange(len(server)) - np.repeat(np.cumsum(take) - take, take) + self.taken[server]
        return self._urls(server, number.astype(np.uint32), np.zeros(len(server), np.uint32))

    def note_turn(self, low: int, high: int, collected: Urls) -> None:
        """The block has merged all that was given out for it."""
        self.taken += np.bincount(collected.server, minlength=self.shape.servers).astype(np.uint32)
        here = in_interval(self.domain_key, low, high)
        self.absorbed[here] = self.counts[here]

    def urls_of(self, server: np.ndarray, number: np.ndarray) -> pa.StringArray:
        return self.texts.urls(server, number, self.keys_of(server, number))

    def keys_of(self, server: np.ndarray, number: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return mix(self.server_key[server] + (number.astype(np.uint64) + np.uint64(1)) * GOLDEN)

    def save(self, path: Path, **more: np.ndarray) -> None:
        aside = path.with_suffix(".aside")
        with open(aside, "wb") as file:
            np.savez(file, counts=self.counts, absorbed=self.absorbed, taken=self.taken, **more)
        aside.rename(path)

    def load(self, path: Path) -> dict[str, np.ndarray]:
        with np.load(path) as saved:
            self.counts, self.absorbed, self.taken = (saved[name] for name in ("counts", "absorbed", "taken"))
            return {name: saved[name] for name in saved.files}

    def _draw_servers(self, random: np.random.Generator, count: int) -> np.ndarray:
        """Ranks by the inverse of the distribution: server 0 is the largest."""
        ranks = SHIFT * (((self.shape.servers + SHIFT) / SHIFT) ** random.random(count) - 1)
        return np.minimum(ranks.astype(np.int64), self.shape.servers - 1)

    def _draw_known(self, random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Distinct codes (server << 32 | number) of URLs given out before, and how often each was drawn."""
        codes = np.empty(0, np.uint64)
        times = np.empty(0, np.int64)
        for _ in range(DRAWS_MAX):
            if len(codes) >= count or not self.counts.any():
                break
            server = self._draw_servers(random, round((count - len(codes)) * 1.1) + 16)
            server = server[self.counts[server] > 0]
            number = (self.counts[server] * random.random(len(server)) ** EARLY).astype(np.uint64)
            drawn = np.concatenate([np.repeat(codes, times), server.astype(np.uint64) << np.uint64(32) | number])
            codes, times = np.unique(drawn, return_counts=True)
        kept = np.sort(random.permutation(len(codes))[:count])
        return codes[kept], times[kept]

    def _urls(self, server: np.ndarray, number: np.ndarray, links_in: np.ndarray) -> Urls:
        key = self.keys_of(server, number)
        order = np.lexsort((key, self.domain_key[server]))
        return Urls(server[order], number[order], key[order], links_in[order])


def level_for(waiting: np.ndarray, wanted: int) -> int:
    """The least quota per server with which at least `wanted` are taken, or with which all are."""
    low, high = 0, int(waiting.max(initial=0))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if int(np.minimum(waiting, middle).sum()) >= wanted else (middle + 1, high)
    return low
