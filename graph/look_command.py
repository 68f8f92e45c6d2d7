"""graph look: prints a node of the graph with its neighbours: what it links to, and what links to it.

  bin/graph look URL [--crawl DIR] [--level LEVEL] [--most N] [--json]

The node is named by its URL (a server, a domain) or by its number. A look reads a few pages of disk, however large the
graph is. Each neighbour has its number before its name; a server or domain has before that the weight of the edge: how
many edges between pages it stands for. --json prints one JSON object. Exit 65 if the graph does not have the node.

Example: bin/graph look 0 --crawl demo/crawl
"""

import json
from typing import Any

import numpy as np

from contract.command import at_least, make_parser
from contract.errors import BadInput
from contract.lines import say
from contract.units import count
from graph.csr import Csr
from graph.folder import LEVELS, PAGES, SERVERS, Level, add_graph_option, choose_graph

SHOWN = 20


def main(words: list[str]) -> None:
    parser = make_parser("graph look", __doc__)
    parser.add_argument("node", metavar="URL", help="a URL, a server or a domain; or the number of one")
    parser.add_argument(
        "--level", choices=LEVELS, default=PAGES, metavar="LEVEL", help="pages (default), servers or domains"
    )
    parser.add_argument(
        "--most", type=at_least(0), default=SHOWN, metavar="N", help=f"neighbours to print each way (default: {SHOWN})"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_graph_option(parser)
    arguments = parser.parse_args(words)
    graph = choose_graph(arguments, is_verified=True)
    level = graph.level(arguments.level)
    node = find_node(level, arguments.node)
    found: dict[str, Any] = {"level": level.name, "number": node, "name": name_of(level, level.texts[node])}
    if level.name == PAGES:
        found["collected"] = bool(graph.collected[node])
    for way, csr in (("links", level.links), ("backlinks", level.backlinks)):
        found[way] = int(csr.offsets[node + 1] - csr.offsets[node])
        found[f"first_{way}"] = neighbours(level, csr, node, arguments.most)
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    remark = "" if found.get("collected", True) else ", not collected"
    say(f"{level.name[:-1]} {node:,} of {level.nodes:,}{remark}: {found['name']}")
    for way, words_of_way in (("links", "links to"), ("backlinks", "linked from")):
        say(f"{words_of_way} {count(found[way], level.name[:-1])}")
        for other in found[f"first_{way}"]:
            weight = f"{other['weight']:>10,} " if "weight" in other else ""
            say(f"  {weight}{other['number']:>10} {other['name']}")
        if (more := found[way] - len(found[f"first_{way}"])) > 0:
            say(f"  ... {more:,} more: --most {found[way]}")


def find_node(level: Level, name: str) -> int:
    """The number of a node that is named or numbered; BadInput where the graph does not have it."""
    if name.isascii() and name.isdigit():
        node = int(name) if len(name) < 20 else level.nodes
        if node >= level.nodes:
            raise BadInput(f"expected a number below {level.nodes:,}, the number of {level.name}; found {name[:100]}")
        return node
    found = level.texts.find(f"{name.rstrip('/')}/" if level.name == SERVERS else name)
    if found is None:
        raise BadInput(
            f"{name[:500]!r} is none of the {level.name} of the graph. Is it spelt as the crawl spells it, or a link "
            "source (bin/why prints both)? Was it found after the last bin/graph build?"
            + " A server or domain needs --level."
            * (level.name == PAGES)
        )
    return found


def neighbours(level: Level, csr: Csr, node: int, most: int) -> list[dict[str, Any]]:
    """The first neighbours by number, with their names."""
    low = int(csr.offsets[node])
    part = slice(low, min(int(csr.offsets[node + 1]), low + most))
    numbers = np.asarray(csr.targets[part]).astype(np.int64)
    rows = [
        {"number": number, "name": name_of(level, name)}
        for number, name in zip(numbers.tolist(), level.texts.read(numbers))
    ]
    if csr.weights is not None:
        for row, weight in zip(rows, csr.weights[part].tolist()):
            row["weight"] = weight
    return rows


def name_of(level: Level, text: str) -> str:
    return text.removesuffix("/") if level.name == SERVERS else text
