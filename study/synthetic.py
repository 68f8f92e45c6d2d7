"""A web made from a seed: pages with power-law in-links, hosts of power-law sizes, and URLs that tell a little.

How it is drawn:
- Hosts. The r-th largest has a share of all pages in proportion to r^-0.8. A fifth of them share a registered domain.
- Appeal. A page's appeal is Pareto with the exponent 1.1, so that in-links fall with the exponent 2.1 (Broder et al.,
  "Graph structure in the Web", 2000). The home page of a host has the largest appeal of the host.
- Links. Every page but the home page has a link from a page of its host with more appeal, so all of a host can be
  reached. Besides, pages have links, lognormal in number, to pages drawn by their appeal: four of five in the own host.
- URLs. A page looks as good as its appeal, mixed with chance: `noise` is the share of chance. Good looks make short
  paths of words; bad looks make deep paths, numbers and queries. That is the signal which a rank learned from URLs can
  find, beside the shortest URL of each host, its home page; names of hosts and words say nothing.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract.config import in_words
from study.graphs import Graph, Rows, join_links

PAGES_PER_HOST = 100
SIZES_FALL = 0.8  # the power of a host's place in the order of sizes
APPEAL_EXPONENT = 1.1
APPEAL_MAX_SHARE = 0.1  # of the number of pages: no page draws a large part of all links
LINKS_MEDIAN, LINKS_SIGMA = 8.0, 1.0  # of a page, besides those that make the host's tree
LINKLESS_SHARE = 0.2  # of pages: they have no links besides those
OWN_HOST_SHARE = 0.8  # of links
SHARED_DOMAIN_SHARE = 0.2  # of hosts
NOISE = 0.5
SEEDS = 10
LEVELS_MAX = 4  # path segments before the last one
WORDS = in_words("""
    about area art bank board book bridge camp case city class coast code course data day door earth east event face
    farm field film fire forest game garden gold group guide hall hand harbor health hill history home house idea
    island job kitchen lake language law letter life light line list market media money moon museum music news night
    north office order page paper park people plan plant point press price project radio rain report research river
    road rock room school science sea season service shop side snow song south space sport star station stone story
    street summer sun table team text time tour town trade train tree valley view village voice wall water week west
    wind winter wood word work world year
""")
SUFFIXES = ("com", "org", "net", "com.br", "it", "ru", "de")

Floats = npt.NDArray[np.float64]


def make_web(pages: int, seed: int, noise: float = NOISE) -> Graph:
    """The same graph for the same arguments. Pages of a host are neighbours, its home page first."""
    random = np.random.Generator(np.random.PCG64(seed))
    first = first_pages(pages)
    sizes = np.diff(first)
    host = np.repeat(np.arange(len(sizes)), sizes)
    appeal = draw_appeal(random, host)
    place = np.arange(pages) - first[host]  # within the host, the most appealing page first
    sources, targets = draw_links(random, first, host, place, appeal)
    lines = name_pages(random, host, place, appeal, noise)
    seeds = np.sort(first[random.choice(len(sizes), min(SEEDS, len(sizes)), replace=False)])
    return join_links(sources, targets, pages, lines, seeds)


def first_pages(pages: int) -> Rows:
    """The first page of each host, and the end."""
    hosts = max(pages // PAGES_PER_HOST, min(pages, SEEDS))
    share = np.arange(1, hosts + 1) ** -SIZES_FALL
    edges = np.concatenate(([0], np.cumsum(share / share.sum())))
    return np.arange(hosts + 1) + np.floor(edges * (pages - hosts) + 0.5).astype(np.int64)  # each has a page at least


def draw_appeal(random: np.random.Generator, host: Rows) -> Floats:
    """Of each page, falling within each host."""
    appeal = np.minimum(random.pareto(APPEAL_EXPONENT, len(host)) + 1, len(host) * APPEAL_MAX_SHARE)
    falling: Floats = appeal[np.lexsort((-appeal, host))]
    return falling


def draw_links(random: np.random.Generator, first: Rows, host: Rows, place: Rows, appeal: Floats) -> tuple[Rows, Rows]:
    """(sources, targets), in any order, with repeats."""
    pages = len(host)
    children = np.flatnonzero(place > 0)
    parents = first[host[children]] + (place[children] * random.random(len(children)) ** 2).astype(np.int64)
    counts = np.exp(np.log(LINKS_MEDIAN) + LINKS_SIGMA * random.standard_normal(pages)).astype(np.int64)
    counts[random.random(pages) < LINKLESS_SHARE] = 0
    sources = np.repeat(np.arange(pages), counts)
    mass = np.concatenate(([0.0], np.cumsum(appeal)))
    is_own = random.random(len(sources)) < OWN_HOST_SHARE
    low = np.where(is_own, mass[first[host[sources]]], 0.0)
    high = np.where(is_own, mass[first[host[sources] + 1]], mass[-1])
    drawn = low + (high - low) * random.random(len(sources))
    targets = np.clip(np.searchsorted(mass, drawn, "right") - 1, 0, pages - 1)
    return np.concatenate((parents, sources)), np.concatenate((children, targets))


def name_pages(random: np.random.Generator, host: Rows, place: Rows, appeal: Floats, noise: float) -> pa.Array:
    """The URL of each page, each with a newline; no two are the same."""
    pages = len(host)
    order = np.empty(pages)
    order[np.argsort(appeal, kind="stable")] = np.arange(pages) / max(pages, 1)
    looks = (1 - noise) * order + noise * random.random(pages)
    levels = np.minimum((LEVELS_MAX + 1) * (1 - looks), LEVELS_MAX).astype(np.int64)
    is_worded = random.random(pages) < looks
    has_query = random.random(pages) > (1 + looks) / 2
    folders = random.integers(0, len(WORDS), pages)
    servers = name_hosts(random, int(host.max(initial=-1)) + 1)
    lines = []
    for server, number, level, worded, query, folder in zip(
        *(column.tolist() for column in (host, place, levels, is_worded, has_query, folders))
    ):
        if not number:
            lines.append(f"{servers[server]}/\n")
            continue
        path = "".join(f"/{WORDS[(folder + 7 * step) % len(WORDS)]}" for step in range(level))
        name = spell(number) if worded else f"{10_000 + 37 * number}"
        lines.append(f"{servers[server]}{path}/index?id={name}\n" if query else f"{servers[server]}{path}/{name}\n")
    return pa.array(lines, pa.large_string()).cast(pa.large_binary())


def name_hosts(random: np.random.Generator, hosts: int) -> list[str]:
    """The server of each host."""
    shares = random.random(hosts) < SHARED_DOMAIN_SHARE
    suffix = random.integers(0, len(SUFFIXES), hosts).tolist()
    domains: list[str] = []
    servers = []
    for number in range(hosts):
        if shares[number] and domains:
            servers.append(f"http://{spell(number)}.{domains[int(random.integers(len(domains)))]}")
        else:
            domains.append(f"{spell(number)}.{SUFFIXES[suffix[number]]}")
            servers.append(f"http://www.{domains[-1]}")
    return servers


def spell(number: int) -> str:
    """A number in words, the digits of a system with as many as there are; two at least, and no two are the same."""
    number += len(WORDS)
    words = []
    while number:
        number, digit = divmod(number, len(WORDS))
        words.append(WORDS[digit])
    return "-".join(words)
