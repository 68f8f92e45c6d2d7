"""graph stats: what a graph looks like: degrees with fits, the bow-tie, links within and between domains and suffixes.

  bin/graph stats [--crawl DIR] [--json]

For pages, servers and registered domains: nodes and edges, degrees by powers of two with the power law that fits best
above some degree (its Kolmogorov-Smirnov distance says how well), and the bow-tie (Broder et al. 2000): the largest
set of nodes that all lead to each other, what leads to it, what it leads to, and the rest. The bow-tie is found in
memory; a level that does not fit into --memory-mib is left without. Then links by what their ends share, and by
public suffix. --json prints one JSON object.

Example: bin/graph stats --crawl demo/crawl
"""

import json
from collections.abc import Iterator
from typing import Any

from contract.command import at_least, make_parser
from contract.lines import say
from graph.folder import LEVELS, add_graph_option, choose_graph
from graph.statistics import describe_graph

MIB = 1 << 20


def main(words: list[str]) -> None:
    parser = make_parser("graph stats", __doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--memory-mib", type=at_least(64), default=1024, metavar="N", help="for the bow-tie (default: 1024)"
    )
    add_graph_option(parser)
    arguments = parser.parse_args(words)
    figures = describe_graph(choose_graph(arguments), arguments.memory_mib * MIB)
    if arguments.json:
        print(json.dumps(figures, indent=1))
        return
    for line in lines_of(figures):
        say(line)


def lines_of(figures: dict[str, Any]) -> Iterator[str]:
    for name in LEVELS:
        level = figures[name]
        yield f"{name}: {level['nodes']:,}, edges: {level['edges']:,}"
        if not level["nodes"]:
            continue
        for direction in ("links_out", "links_in"):
            yield from lines_of_degrees(direction.replace("_", " "), level[direction])
        tie = level["bow_tie"]
        if tie is None:
            yield "  bow-tie: not found, the graph does not fit into memory; see --memory-mib"
        else:
            parts = [f"{part} {tie[part]:,}" for part in ("core", "in", "out", "tendrils", "other")]
            yield f"  bow-tie: {', '.join(parts)}; {tie['strong_components']:,} strong components"
    each = figures["links_per_collected_page"]
    yield f"links per collected page: {'-' if each is None else each}"
    borders, total = figures["edges_of_pages"], max(sum(figures["edges_of_pages"].values()), 1)
    shares = [f"{name.replace('_', ' ')} {edges:,} ({edges / total:.1%})" for name, edges in borders.items()]
    yield f"edges of pages: {', '.join(shares)}"
    yield f"  {'suffix':16} {'domains':>10} {'pages':>12} {'within':>14} {'leaving':>14} {'arriving':>14}"
    for row in figures["suffixes"]:
        numbers = f"{row['domains']:>10,} {row['pages']:>12,} {row['within']:>14,} {row['leaving']:>14,}"
        yield f"  {row['suffix'] or '(address)':16} {numbers} {row['arriving']:>14,}"


def lines_of_degrees(name: str, degrees: dict[str, Any]) -> Iterator[str]:
    law = degrees["power_law"]
    fit = "no power law: too few nodes"
    if law is not None:
        fit = f"exponent {law['exponent']} from {law['least_degree']} on, distance {law['distance']}"
    yield f"  {name}: mean {degrees['mean']}, median {degrees['median']:g}, largest {degrees['max']:,}; {fit}"
    yield "    " + "  ".join(f"{degree}: {nodes:,}" for degree, nodes in degrees["distribution"].items())
