"""A web of a few pages, the blocks of its domain keys, and what a crawl of it must come to know.

A row of a table of URLs is (url, collected, attempts, links_in). All three numbers are counts that
merging adds up, so a URL taken twice shows: `collected` becomes 2, `links_in` too large.
"""

from functools import cache
from typing import NamedTuple

BITS = 3  # of a domain key: enough for 8 domains and 8 blocks


class Web(NamedTuple):
    keys: dict  # url: domain key
    links: dict  # url: the urls that its page names
    seeds: dict  # inbox name: the urls in that file; a name that begins with r is a decision to reconsider them
    poison: frozenset = frozenset()  # urls that kill the fetcher that asks them


@cache
def block_of(key, n):
    """Top k bits, reversed, k = ceil(log2 n); if that is >= n, one bit less (design, section 4, rule 6)."""
    bits = (n - 1).bit_length()
    number = reverse(key, bits)
    return number if number < n else reverse(key, bits - 1)


def reverse(key, bits):
    top = key >> (BITS - bits)
    return sum(1 << (bits - 1 - i) for i in range(bits) if top >> i & 1)


def victim(n):
    """The block that is split when n becomes n + 1."""
    return n - (1 << (n.bit_length() - 1))


def merge(*tables):
    """One table of the rows of many, sorted by URL, counts added."""
    sums = {}
    for table in tables:
        for url, *counts in table:
            before = sums.get(url, (0, 0, 0))
            sums[url] = tuple(a + b for a, b in zip(before, counts))
    return tuple((url, *sums[url]) for url in sorted(sums))


def found(web, pages):
    """The rows that these records give: each link once per page."""
    return merge(*(((target, 0, 0, 1),) for page in pages if page >= 0 for target in web.links[page]))


def charge(url):
    """The record of a URL that killed its fetcher; an answered one is the URL itself."""
    return -1 - url


def outcomes(pages):
    """The rows that these records are for their own URLs: collected, or one failed attempt."""
    return [(url, 1, 0, 0) if url >= 0 else (charge(url), 0, 1, 0) for url in pages]


def take_back(rows, urls):
    """The rows, those of these URLs without their failed attempts, unless they are collected."""
    return tuple(
        (url, collected, attempts if collected or url not in urls else 0, links)
        for url, collected, attempts, links in rows
    )


def closure(web, urls):
    known, fresh = set(urls), list(urls)
    while fresh:
        for target in web.links[fresh.pop()]:
            if target not in known:
                known.add(target)
                fresh.append(target)
    return known


# One link from block to block: the least that uses AUX.
LINE = Web(keys={0: 0, 1: 7}, links={0: (1,), 1: ()}, seeds={"s0": (0,)})
# The same, with a second seed that comes while the first is at work.
LATE = LINE._replace(links={0: (1,), 1: (0,)}, seeds={"s0": (0,), "s1": (1,)})
# Both blocks have work from the start, and each finds a URL of the other: the least that overlaps.
MIRROR = Web(keys={0: 0, 1: 7}, links={0: (1,), 1: (0,)}, seeds={"s0": (0, 1)})
# One page in each of three domains, links that cross and come back: merges have rows of the own
# block, of the other, and of URLs that are known already.
SMALL = Web(keys={0: 0, 1: 7, 2: 3}, links={0: (1, 2), 1: (0, 2), 2: (1,)}, seeds={"s0": (0,)})
# One page finds enough for a split of the other block, and a URL that is born into the new one.
SPLIT = Web(keys={0: 0, 1: 7, 2: 3, 3: 5}, links={0: (), 1: (2, 3), 2: (), 3: ()}, seeds={"s0": (0, 1)})
# Enough for four blocks, with seeds that come late.
LARGE = Web(
    keys={0: 0, 1: 7, 2: 3, 3: 5, 4: 2},
    links={0: (1, 2), 1: (0, 3), 2: (4, 0), 3: (1, 2, 4), 4: (3,)},
    seeds={"s0": (0,), "s1": (4, 1)},
)
# A page that kills its fetcher, in the half of block 0 that a split takes away, and a decision to ask it again.
POISONED = Web(
    keys={0: 0, 1: 7, 2: 3, 3: 5},
    links={0: (2,), 1: (3, 0), 2: (), 3: (1,)},
    seeds={"s0": (2, 1), "r0": (2,), "r1": (2,), "r2": (2,)},
    poison=frozenset({2}),
)
