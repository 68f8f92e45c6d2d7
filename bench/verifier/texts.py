"""Texts of URLs, about 60 bytes: host, two folders that neighbours share, two words, a number; made as columns."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

WORDS = 4096
FIRST_LETTERS, LAST_LETTERS = "bcdfglmnprstvz", "aeiou"
SUFFIXES = (
    ".com",
    ".com.br",
    ".org",
    ".net",
    ".de",
    ".co.uk",
    ".info",
    ".edu",
    ".gov.br",
    ".fr",
    ".io",
    ".it",
    ".nl",
    ".pl",
    ".eu",
    ".es",
)
HOSTS = ("www", "www", "www", "www", "www", "m", "pt", "web")
SUBDOMAINS = (
    "blog",
    "news",
    "shop",
    "forum",
    "docs",
    "wiki",
    "loja",
    "portal",
    "static",
    "help",
    "my",
    "old",
    "img",
    "en",
    "app",
    "mail",
)
ENDINGS = ("", "", ".html", ".html", ".htm", ".php", "/", ".aspx")
SHARED_BY = (256, 16)  # how many neighbouring numbers of a server share a first folder, and a second
SPREAD = np.uint64(0x9E3779B97F4A7C15)


def make_words() -> list[str]:
    """Distinct words of three syllables, six letters each: two in a row are read in one way only, so domains differ."""
    syllables = [first + last for first in FIRST_LETTERS for last in LAST_LETTERS]
    step = 65_521  # a prime: words that follow each other share nothing
    count = len(syllables)
    numbers = [number * step % count**3 for number in range(WORDS)]
    return [syllables[n % count] + syllables[n // count % count] + syllables[n // count**2] for n in numbers]


class Texts:
    def __init__(self, servers: int, domains: int):
        self._words = pa.array(make_words())
        self._endings = pa.array(ENDINGS)
        self.servers = self._make_servers(servers, domains)

    def urls(self, server: np.ndarray, number: np.ndarray, key: np.ndarray) -> pa.StringArray:
        """The URL of each pair; words are picked by the pair's `key` (u64). Equal pairs have equal texts."""
        number = number.astype(np.uint64)
        with np.errstate(over="ignore"):
            folders = [
                ((server.astype(np.uint64) << np.uint64(32)) + number // np.uint64(shared) + np.uint64(shared << 28))
                * SPREAD
                for shared in SHARED_BY
            ]
        digits = pc.cast(pa.array(number * np.uint64(16) + (key & np.uint64(15))), pa.string())
        return pc.binary_join_element_wise(
            pc.binary_join_element_wise(
                self.servers.take(pa.array(server)),
                self._word(folders[0] >> np.uint64(50)),
                self._word(folders[1] >> np.uint64(50)),
                "/",
            ),
            "/",
            self._word(key >> np.uint64(50)),
            "-",
            self._word(key >> np.uint64(36)),
            "-",
            digits,
            self._endings.take(pa.array(key >> np.uint64(33) & np.uint64(7))),
            "",
        )

    def _word(self, number: np.ndarray) -> pa.StringArray:
        return self._words.take(pa.array(number % np.uint64(WORDS)))

    def _make_servers(self, servers: int, domains: int) -> pa.StringArray:
        """Scheme and host of each server; the first server of a domain is its main one, the others are subdomains."""
        server = np.arange(servers, dtype=np.uint64)
        domain = server % np.uint64(domains)
        # An odd factor modulo a power of two: no two domains have the same pair of words.
        words = domain * np.uint64(10_368_889) % np.uint64(WORDS**2)
        picked = domain * SPREAD
        main = pa.array(HOSTS).take(pa.array(picked >> np.uint64(61)))
        turn = server // np.uint64(domains)
        other = pa.array(SUBDOMAINS).take(pa.array((picked >> np.uint64(40)) % np.uint64(16)))
        other = pc.if_else(
            pa.array(turn > 1), pc.binary_join_element_wise(other, pc.cast(pa.array(turn), pa.string()), ""), other
        )
        return pc.binary_join_element_wise(
            pc.if_else(pa.array(picked >> np.uint64(57) & np.uint64(1) == 1), "http://", "https://"),
            pc.if_else(pa.array(turn == 0), main, other),
            ".",
            self._word(words % np.uint64(WORDS)),
            self._word(words // np.uint64(WORDS)),
            pa.array(SUFFIXES).take(pa.array((picked >> np.uint64(30)) % np.uint64(16))),
            "",
        )
