"""graph rank: ranks the pages, servers or domains of a graph, and writes a file that the scheduler reads.

  bin/graph rank [--crawl DIR] [--by MEASURE] [--level LEVEL] [--out FILE]

  pagerank      the share of time of a surfer who follows links, and jumps elsewhere with 1 - damping. On servers and
                domains a link counts once per edge between their pages. --preferred FILE: jumps only to the URLs
                (servers, domains) of that file, one per line
  authorities   HITS (Kleinberg 1999), over the whole graph, or with --roots FILE over the base set of the URLs of that
  hubs          file, one per line: other pages get no line
  harmonic      the sum of 1 / distance over all that lead there; of servers and domains. Above 100,000 of them it is
                estimated by HyperBall; the file says how far off its counts are

The file gets a line per page: its URL, a blank, its rank. Its first lines begin with #: they name graph and crawl.
[scheduler] ranks_file takes ranks of pages and of servers. Ranks of pagerank, authorities and hubs have the sum 1.
Without a graph, make one first: bin/graph build.

Example: bin/graph rank --crawl demo/crawl
"""

from argparse import Namespace
from pathlib import Path

import numpy as np

from contract.command import at_least, file_to_write, make_parser
from contract.errors import BadInput, Usage
from contract.lines import say
from contract.rank_files import crawl_line
from contract.units import count
from graph.base_set import base_of, induce
from graph.folder import LEVELS, PAGES, RANKS, SERVERS, Level, add_graph_option, choose_graph, expect_no_file_of_a_crawl
from graph.harmonic import harmonic
from graph.matrices import transpose
from graph.pagerank import DAMPING, hits, pagerank
from graph.products import Values
from storage.arrays import Rows
from storage.publish import make_folder, putting

MIB = 1 << 20
DAMPING_MAX = 0.999
MEASURES = ("pagerank", "authorities", "hubs", "harmonic")


def main(words: list[str]) -> None:
    parser = make_parser("graph rank", __doc__)
    parser.add_argument(
        "--out",
        type=file_to_write,
        metavar="FILE",
        help="the file of ranks (default: graph/ranks/LEVEL-MEASURE.txt); replaced",
    )
    parser.add_argument(
        "--by",
        choices=MEASURES,
        default=MEASURES[0],
        metavar="MEASURE",
        help="pagerank (default), authorities, hubs or harmonic",
    )
    parser.add_argument(
        "--level", choices=LEVELS, default=PAGES, metavar="LEVEL", help="pages (default), servers or domains"
    )
    parser.add_argument(
        "--damping", type=read_damping, default=DAMPING, metavar="X", help="of pagerank (default: 0.85)"
    )
    parser.add_argument("--preferred", type=Path, metavar="FILE", help="of pagerank: where the surfer jumps to")
    parser.add_argument("--roots", type=Path, metavar="FILE", help="of authorities and hubs: the roots of a base set")
    parser.add_argument(
        "--memory-mib",
        type=at_least(64),
        default=1024,
        metavar="N",
        help="for the counters of harmonic (default: 1024)",
    )
    add_graph_option(parser)
    arguments = parser.parse_args(words)
    if arguments.preferred is not None and arguments.by != "pagerank":
        raise Usage(f"--preferred is for pagerank, not for {arguments.by}")
    if arguments.roots is not None and arguments.by not in ("authorities", "hubs"):
        raise Usage(f"--roots is for authorities and hubs, not for {arguments.by}")
    if arguments.by == "harmonic" and arguments.level == PAGES:
        raise Usage("harmonic is for servers and domains: add --level servers or --level domains")
    if arguments.out is not None:
        expect_no_file_of_a_crawl(arguments.out)
    graph = choose_graph(arguments)
    level = graph.level(arguments.level)
    nodes = None
    if arguments.roots is not None:
        nodes = base_of(read_nodes(level, arguments.roots), level.links, level.backlinks)
    ranks, remark = rank(level, arguments, nodes)
    about = f"# {arguments.by} of {level.name}{remark}, of the graph {graph.manifest['made_of']}\n"
    if graph.is_partial:
        about += f"# PARTIAL: without cycle {', '.join(graph.manifest['missing'])}\n"
    out = arguments.out
    if out is None:
        out = graph.folder.parent / RANKS / f"{level.name}-{arguments.by}.txt"
        make_folder(out.parent)
    write_ranks(out, level, nodes, ranks, about.encode() + crawl_line(graph.manifest["crawl_id"]))
    say(f"{out}: {arguments.by} of {count(len(ranks), level.name[:-1])}{remark}")


def read_damping(text: str) -> float:
    """A number from 0 to DAMPING_MAX: with 1 the method need not end."""
    return at_least(0.0, DAMPING_MAX)(text)


def rank(level: Level, arguments: Namespace, nodes: Rows | None) -> tuple[Values, str]:
    """The ranks of all nodes, or of these, and what to say about them."""
    if arguments.by == "harmonic":
        found = harmonic(level.backlinks, arguments.memory_mib * MIB)
        return found.values, f", estimated with a relative error of {found.error:.1%} per count" if found.error else ""
    if arguments.by == "pagerank":
        preferred = None if arguments.preferred is None else read_nodes(level, arguments.preferred)
        ranks = pagerank(level.links, level.backlinks, arguments.damping, preferred=preferred)
        return ranks, f", damping {arguments.damping:g}" + (
            f", from {len(preferred)} preferred" if preferred is not None else ""
        )
    links, backlinks = level.links, level.backlinks
    if nodes is not None:
        links = induce(nodes, level.links)
        backlinks = transpose(links)
    hubs, authorities = hits(links, backlinks)
    return (hubs if arguments.by == "hubs" else authorities), " of a base set" * (nodes is not None)


def read_nodes(level: Level, path: Path) -> Rows:
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
        raise BadInput(f"{path}: expected one of the {level.name} per line, found none")
    return np.unique(found)


def write_ranks(path: Path, level: Level, nodes: Rows | None, ranks: Values, about: bytes) -> None:
    end = "/" if level.name == SERVERS else ""
    with putting(path) as file:
        file.write(about)
        first = 0
        for texts in level.texts.pieces() if nodes is None else [level.texts.read(nodes)]:
            values = ranks[first : first + len(texts)].tolist()
            lines = [f"{text.removesuffix(end)} {value:.9g}\n" for text, value in zip(texts, values)]
            file.write("".join(lines).encode())
            first += len(texts)
