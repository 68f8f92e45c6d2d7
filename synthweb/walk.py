"""Walks the web as a correct and polite crawler must, over the links that the generator intended."""

from dataclasses import dataclass, field

from synthweb.page import Page
from synthweb.rules import Rules
from synthweb.server import Server
from synthweb.url import Url

# A crawler asks a failing URL three times: one that fails more often is given up.
FAILURES_MAX = 2


@dataclass
class Walk:
    """Canonical URLs by their fate. `collected` has their depth, in hops from the seeds."""

    collected: dict[str, int] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)  # by robots.txt: never to be asked for
    unasked: set[str] = field(default_factory=set)  # their server gives no robots.txt: never to be asked for
    failing: set[str] = field(default_factory=set)  # asked for in vain, three times
    refused: dict[str, str] = field(default_factory=dict)  # by a rule, with its name: never to be asked for


def walk_web(servers: dict[str, Server], seeds: list[Url], port: int, rules: Rules) -> Walk:
    walk = Walk()
    seen: set[Url] = set(seeds)
    depth, frontier = 0, seeds
    while frontier:
        following: list[Url] = []
        for url in frontier:
            page = _visit(walk, servers[url.host], url, url.text(port), depth, rules)
            for target in page.targets() if page else ():
                if target not in seen:
                    seen.add(target)
                    following.append(target)
        depth, frontier = depth + 1, following
    return walk


def _visit(walk: Walk, server: Server, url: Url, text: str, depth: int, rules: Rules) -> Page | None:
    """File one URL under its fate; its page if links of it are to be followed."""
    refusal = rules.refusal(text)
    if refusal:
        walk.refused[text] = refusal
    elif server.is_dead() or not server.robots.is_reachable():
        walk.unasked.add(text)
    elif not server.robots.allows(url.target()):
        walk.forbidden.add(text)
    else:
        page = server.page(url.target())
        if page.failures > FAILURES_MAX:
            walk.failing.add(text)
        else:
            walk.collected[text] = depth
            return page
    return None
