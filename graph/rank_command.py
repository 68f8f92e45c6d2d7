"""graph rank: ranks the pages, servers or domains of a graph, and writes a file that the scheduler reads.

  bin/graph rank --out FILE [--by MEASURE] [--level LEVEL] [--crawl DIR]

  pagerank      the share of time of a surfer who follows links, and jumps elsewhere with 1 - damping. On servers and
                domains links count as often as their pages have them. --preferred FILE: jumps only to the URLs
                (servers, domains) of that file, one per line
  authorities, hubs       HITS, over the whole graph
  harmonic      the sum of 1 / distance over all that lead there; of servers and domains. Above 100,000 of them it is
                estimated by HyperBall; the file says how far off its counts are

FILE gets a line per page: its URL, a blank, its rank. [scheduler] ranks_file takes that of pages and of servers. Ranks
of pagerank, authorities and hubs have the sum 1. Without a graph, make one first: bin/graph build.

Example: bin/graph rank --crawl demo/crawl --out /tmp/ranks.txt
"""

from argparse import Namespace
from pathlib import Path

import numpy as np

from contract.command import at_least, make_parser
from contract.errors import BadInput, Usage
from contract.lines import say
from contract.units import count
from graph.folder import LEVELS, PAGES, SERVERS, Level, add_graph_option, choose_graph
from graph.harmonic import harmonic
from graph.matrices import EDGE_BYTES, Values
from graph.pagerank import DAMPING, hits, pagerank
from storage.arrays import Rows
from storage.publish import putting

MIB = 1 << 20
DAMPING_MAX = 0.999
MEASURES = ("pagerank", "authorities", "hubs", "harmonic")


def main(words: list[str]) -> None:
    parser = make_parser("graph rank", __doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file of ranks; replaced")
    parser.add_argument("--by", choices=MEASURES, default=MEASURES[0], metavar="MEASURE", help=", ".join(MEASURES))
    parser.add_argument("--level", choices=LEVELS, default=PAGES, metavar="LEVEL", help="pages, servers or domains")
    parser.add_argument(
        "--damping", type=read_damping, default=DAMPING, metavar="X", help="of pagerank (default: 0.85)"
    )
    parser.add_argument("--preferred", type=Path, metavar="FILE", help="of pagerank: where the surfer jumps to")
    parser.add_argument(
        "--memory-mib", type=at_least(64), default=1024, metavar="N", help="for edges in memory (default: 1024)"
    )
    add_graph_option(parser)
    arguments = parser.parse_args(words)
    if arguments.preferred is not None and arguments.by != "pagerank":
        raise Usage(f"--preferred is for pagerank, not for {arguments.by}")
    if arguments.by == "harmonic" and arguments.level == PAGES:
        raise Usage("harmonic is for servers and domains: add --level servers or --level domains")
    graph = choose_graph(arguments)
    level = graph.level(arguments.level)
    ranks, remark = rank(level, arguments)
    about = f"# {arguments.by} of {level.name}{remark}, of the graph {graph.manifest['made_of']}\n"
    if graph.is_partial:
        about += f"# PARTIAL: without cycle {', '.join(graph.manifest['missing'])}\n"
    write_ranks(arguments.out, level, ranks, about)
    say(f"{arguments.out}: {arguments.by} of {count(level.nodes, level.name[:-1])}{remark}")


def read_damping(text: str) -> float:
    """A number from 0 to DAMPING_MAX: with 1 the method need not end."""
    return at_least(0.0, DAMPING_MAX)(text)


def rank(level: Level, arguments: Namespace) -> tuple[Values, str]:
    edges_at_once = arguments.memory_mib * MIB // EDGE_BYTES
    if arguments.by == "harmonic":
        found = harmonic(level.backlinks, arguments.memory_mib * MIB)
        return found.values, f", estimated with a relative error of {found.error:.1%} per count" if found.error else ""
    if arguments.by == "pagerank":
        preferred = None if arguments.preferred is None else read_preferred(level, arguments.preferred)
        ranks = pagerank(
            level.links, level.backlinks, arguments.damping, preferred=preferred, edges_at_once=edges_at_once
        )
        return ranks, f", damping {arguments.damping:g}" + (
            f", from {len(preferred)} preferred" if preferred is not None else ""
        )
    hubs, authorities = hits(level.links, level.backlinks, edges_at_once=edges_at_once)
    return (hubs if arguments.by == "hubs" else authorities), ""


def read_preferred(level: Level, path: Path) -> Rows:
    """The numbers of the nodes in a file, one per line; BadInput where one is not in the graph."""
    found = []
    for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1):
        name = line.strip()
        if not name or name.startswith("#"):
            continue
        node = level.texts.find(f"{name.rstrip('/')}/" if level.name == SERVERS else name)
        if node is None:
            raise BadInput(
                f"{path}: line {number}: expected one of the {level.name} of the graph, found {name[:100]!r}"
            )
        found.append(node)
    if not found:
        raise BadInput(f"{path}: expected a line for each preferred node, found none")
    return np.unique(found)


def write_ranks(path: Path, level: Level, ranks: Values, about: str) -> None:
    end = "/" if level.name == SERVERS else ""
    with putting(path) as file:
        file.write(about.encode())
        first = 0
        for texts in level.texts.pieces():
            values = ranks[first : first + len(texts)].tolist()
            lines = [f"{text.removesuffix(end)} {value:.9g}\n" for text, value in zip(texts, values)]
            file.write("".join(lines).encode())
            first += len(texts)
