"""graph export: writes a graph in a format that other tools read.

  bin/graph export --format FORMAT --out FOLDER [--crawl DIR] [--level LEVEL]

  parquet          edges.parquet (from, to; weight of servers and domains) and nodes.parquet (number, url)
  webgraph         graph.graph, graph.offsets, graph.properties: WebGraph's compressed form (BVGraph), a few bits per
                   edge, without weights; for its Java and Rust libraries
  webgraph-ascii   graph.graph-txt: the number of nodes, then a line of targets per node (WebGraph's ASCIIGraph)
  snap             graph.txt: two numbers per line (SNAP, NetworkX, igraph)
  npz              graph.npz: a CSR matrix for scipy.sparse.load_npz
  graphml, gexf    for NetworkX and Gephi; of servers and domains only
  raw, mini        words of the Padova thesis: MD5 of 128 bits, or numbers of 32 bits least significant byte first; the
                   top bit marks the page, its targets follow

All but parquet, graphml and gexf have the URLs in urls.txt, one per line: line n + 1 is that of node n. FOLDER must be
new or empty; it gets a manifest.json last, with the checksum of each file.

Example: bin/graph export --crawl demo/crawl --format snap --out /tmp/demo-snap
"""

from pathlib import Path

from contract.command import make_parser
from contract.lines import say
from contract.stage import expect_ours
from graph.bvgraph import FILES as WEBGRAPH_FILES
from graph.folder import LEVELS, PAGES, add_graph_option, choose_graph, expect_no_file_of_a_crawl
from graph.formats import FILES, FORMATS, check_format
from graph.padova import FILES as PADOVA_FILES
from storage.publish import publishing


def main(words: list[str]) -> None:
    parser = make_parser("graph export", __doc__)
    parser.add_argument("--format", choices=FORMATS, required=True, metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the files are written")
    parser.add_argument(
        "--level", choices=LEVELS, default=PAGES, metavar="LEVEL", help="pages (default), servers or domains"
    )
    add_graph_option(parser)
    arguments = parser.parse_args(words)
    check_format(arguments.format, arguments.level)
    expect_no_file_of_a_crawl(arguments.out)
    graph = choose_graph(arguments)
    level = graph.level(arguments.level)
    expect_ours(arguments.out, (*FILES, *WEBGRAPH_FILES, *PADOVA_FILES))
    with publishing(arguments.out) as manifest:
        manifest |= {"made_of": graph.manifest["made_of"], "level": level.name, "missing": graph.manifest["missing"]}
        FORMATS[arguments.format](arguments.out, level)
    say(f"{arguments.out}: {arguments.format} of {level.nodes:,} {level.name} and {level.edges:,} edges")
