"""The graph in formats that other tools read. Edges are written some at a time, so that any graph fits into memory.

Each writer gets an empty folder and a level of the graph. Nodes are numbered from 0 on, as in the graph; the texts of
the nodes are in a file of their own, or in the format itself where it has room for them.
"""

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from contract.errors import Usage
from graph.bvgraph import write_bvgraph
from graph.folder import PAGES, Level
from graph.padova import write_mini, write_raw, write_urls
from storage.errors import naming

EDGES_AT_ONCE = 1 << 20
ZIP_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that the format has: the same graph is the same bytes


def edge_tables(level: Level) -> Iterator[pa.Table]:
    """Columns from, to and, where edges have one, weight."""
    number = pa.uint32() if level.nodes <= 1 << 32 else pa.uint64()
    for sources, targets, weights in level.links.edge_pieces(EDGES_AT_ONCE):
        columns = {"from": pa.array(sources).cast(number), "to": pa.array(targets).cast(number)}
        yield pa.table(columns | ({} if weights is None else {"weight": pa.array(weights)}))


def write_parquet(folder: Path, level: Level) -> None:
    """edges.parquet with from, to and weight; nodes.parquet with number and text."""
    weight = [("weight", pa.uint32())] if level.is_weighted else []
    edges = pa.schema([("from", pa.uint32()), ("to", pa.uint32()), *weight])
    with pq.ParquetWriter(folder / "edges.parquet", edges, compression="zstd") as writer:
        for table in edge_tables(level):
            writer.write_table(table)
    nodes = pa.schema([("number", pa.uint32()), (text_name(level), pa.string())])
    with pq.ParquetWriter(folder / "nodes.parquet", nodes, compression="zstd") as writer:
        first = 0
        for texts in join_pieces(level.texts.pieces(), EDGES_AT_ONCE):
            numbers = np.arange(first, first + len(texts), dtype=np.uint32)
            writer.write_table(pa.table([pa.array(numbers), pa.array(texts, pa.string())], schema=nodes))
            first += len(texts)


def text_name(level: Level) -> str:
    return {"pages": "url", "servers": "server", "domains": "domain"}[level.name]


def join_pieces(pieces: Iterator[list[str]], most: int) -> Iterator[list[str]]:
    joined: list[str] = []
    for piece in pieces:
        joined += piece
        if len(joined) >= most:
            yield joined
            joined = []
    if joined:
        yield joined


def write_snap(folder: Path, level: Level) -> None:
    """graph.txt as the graphs of the Stanford Network Analysis Project: two numbers per line, a tab between them."""
    with open(folder / "graph.txt", "wb") as file, naming(folder / "graph.txt"):
        file.write(f"# Directed graph: {level.name} of a crawl\n# Nodes: {level.nodes} Edges: {level.edges}\n".encode())
        file.write(b"# FromNodeId\tToNodeId\n")
        options = pa.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
        for table in edge_tables(level):
            pa.csv.write_csv(table.select(["from", "to"]), file, options)
    write_urls(folder, level)


def write_webgraph_ascii(folder: Path, level: Level) -> None:
    """graph.graph-txt, the ASCII form of WebGraph: the number of nodes, then per node a line with its targets."""
    links = level.links
    with open(folder / "graph.graph-txt", "wb") as file, naming(folder / "graph.graph-txt"):
        file.write(f"{level.nodes}\n".encode())
        for start, stop in links.row_pieces(EDGES_AT_ONCE):
            low, high = int(links.offsets[start]), int(links.offsets[stop])
            numbers = pa.array(links.targets[low:high]).cast(pa.large_string())
            offsets = pa.array(np.asarray(links.offsets[start : stop + 1], np.int64) - low)
            lines = pc.binary_join(pa.LargeListArray.from_arrays(offsets, numbers), pa.scalar(" ", pa.large_string()))
            file.write("\n".join(lines.to_pylist()).encode() + b"\n")
    write_urls(folder, level)


def write_npz(folder: Path, level: Level) -> None:
    """graph.npz, which scipy.sparse.load_npz reads: a CSR matrix with 1, or the weight, where there is an edge."""
    links = level.links
    ones = np.broadcast_to(np.uint8(1), level.edges)
    arrays = {
        "indptr": links.offsets,
        "indices": links.targets,
        "format": np.array(b"csr"),
        "shape": np.array([level.nodes, level.nodes], np.int64),
        "data": ones if links.weights is None else links.weights,
    }
    with zipfile.ZipFile(folder / "graph.npz", "w") as archive, naming(folder / "graph.npz"):
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", ZIP_DATE), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
    write_urls(folder, level)


def write_graphml(folder: Path, level: Level) -> None:
    """graph.graphml for NetworkX, Gephi and others."""
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        '<key id="label" for="node" attr.name="label" attr.type="string"/>\n'
        '<key id="weight" for="edge" attr.name="weight" attr.type="long"/>\n<graph edgedefault="directed">\n'
    )
    node = '<node id="{0}"><data key="label">{1}</data></node>\n'
    edge = '<edge source="{0}" target="{1}"><data key="weight">{2}</data></edge>\n'
    write_xml(folder / "graph.graphml", level, head, node, "", edge, "</graph>\n</graphml>\n", escape)


def write_gexf(folder: Path, level: Level) -> None:
    """graph.gexf for Gephi and NetworkX."""
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n'
        '<graph defaultedgetype="directed">\n<nodes>\n'
    )
    node, edge = '<node id="{0}" label={1}/>\n', '<edge id="{3}" source="{0}" target="{1}" weight="{2}"/>\n'
    write_xml(
        folder / "graph.gexf",
        level,
        head,
        node,
        "</nodes>\n<edges>\n",
        edge,
        "</edges>\n</graph>\n</gexf>\n",
        quoteattr,
    )


def write_xml(
    path: Path, level: Level, head: str, node: str, middle: str, edge: str, tail: str, quote: Callable[[str], str]
) -> None:
    with open(path, "w", encoding="utf-8") as file, naming(path):
        file.write(head)
        number = 0
        for texts in level.texts.pieces():
            file.writelines(node.format(number + at, quote(text)) for at, text in enumerate(texts))
            number += len(texts)
        file.write(middle)
        number = 0
        for sources, targets, weights in level.links.edge_pieces(EDGES_AT_ONCE):
            each = np.ones(len(sources), np.uint32) if weights is None else weights
            rows = zip(sources.tolist(), targets.tolist(), each.tolist())
            file.writelines(edge.format(*row, number + at) for at, row in enumerate(rows))
            number += len(sources)
        file.write(tail)


FORMATS: dict[str, Callable[[Path, Level], None]] = {
    "parquet": write_parquet,
    "webgraph": write_bvgraph,
    "webgraph-ascii": write_webgraph_ascii,
    "snap": write_snap,
    "npz": write_npz,
    "graphml": write_graphml,
    "gexf": write_gexf,
    "raw": write_raw,
    "mini": write_mini,
}
FILES = (
    *("edges.parquet", "nodes.parquet", "graph.txt", "graph.graph-txt", "graph.npz"),
    *("graph.graphml", "graph.gexf"),
)
NOT_OF_PAGES = ("graphml", "gexf")  # XML of pages has hundreds of bytes per edge, and no tool opens it


def check_format(name: str, level: str) -> None:
    if level == PAGES and name in NOT_OF_PAGES:
        raise Usage(f"{name} is for servers and domains: add --level servers or --level domains")
