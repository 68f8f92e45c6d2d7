"""Link graphs and their files: what is read, what is refused and in which words; PageRank."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse

from contract import names
from contract.errors import BadInput
from contract.tables import ANSWERED, COLLECTED, LINKS
from storage.tables import read_table
from study.graph_files import open_graph
from study.graphs import Graph, breadth_first, join_links
from study.pagerank import pagerank
from tests.golden import GOLDEN

EDGES = [(0, 1), (0, 2), (1, 2), (2, 0), (2, 2), (0, 1)]  # one to itself, one twice


def pairs_of(graph: Graph) -> list[tuple[int, int]]:
    index, targets = graph.links_of(np.arange(len(graph)))
    return list(zip(index.tolist(), targets.tolist()))


def test_links_are_distinct_rising_and_lead_to_other_pages():
    sources, targets = np.array(EDGES).T
    graph = join_links(sources, targets, 4)
    assert pairs_of(graph) == [(0, 1), (0, 2), (1, 2), (2, 0)]
    assert (len(graph), graph.degrees.tolist()) == (4, [2, 1, 1, 0])
    index, found = graph.links_of(np.array([2, 3, 0]))
    assert (index.tolist(), found.tolist()) == ([0, 2, 2], [0, 1, 2])


def test_some_pages_of_a_graph_keep_links_urls_and_seeds():
    sources, targets = np.array(EDGES).T
    urls = pa.array([b"a\n", b"b\n", b"c\n", b"d\n"], pa.large_binary())
    part = join_links(sources, targets, 4, urls, np.array([1, 2])).take(np.array([2, 0, 3]))
    assert pairs_of(part) == [(0, 1), (1, 0)]
    assert part.urls.to_pylist() == [b"c\n", b"a\n", b"d\n"] and part.seeds.tolist() == [0]


def write_text(path, text):
    path.write_text(text)
    return path


def test_every_kind_of_file_holds_the_same_graph(tmp_path):
    sources, targets = np.array(EDGES).T
    expected = pairs_of(join_links(sources, targets, 3))
    matrix = scipy.sparse.csr_array((np.ones(len(EDGES)), (sources, targets)), shape=(3, 3))
    scipy.sparse.save_npz(tmp_path / "scipy.npz", matrix)
    np.savez(tmp_path / "plain.npz", offsets=[0, 3, 4, 6], targets=[1, 2, 1, 2, 0, 2])
    arrays = {"offsets": np.array([0, 3, 4, 6], np.uint64), "targets": np.array([1, 2, 1, 2, 0, 2], np.uint64)}
    np.savez(tmp_path / "unsigned.npz", **arrays)
    pa.parquet.write_table(pa.table({"from": sources, "to": targets, "weight": targets}), tmp_path / "links.parquet")
    for mark in " \t,":
        lines = "".join(f"{source}{mark}{target}\n" for source, target in EDGES)
        write_text(tmp_path / f"links{ord(mark)}.txt", f"# links\n# of a graph\n{lines}")
    found = {path.name: pairs_of(open_graph(path)) for path in tmp_path.iterdir()}
    assert len(found) == 7 and found == dict.fromkeys(found, expected)


def test_urls_are_canonical_and_numbered(tmp_path):
    graph = open_graph(write_text(tmp_path / "urls.txt", "http://a.br http://b.br/x\nHTTP://B.br/x http://a.br/\n"))
    assert graph.urls.to_pylist() == [b"http://a.br/\n", b"http://b.br/x\n"]
    assert pairs_of(graph) == [(0, 1), (1, 0)]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.npz", None, "found no file"),
        ("not.npz", b"text", "plain arrays"),
        ("empty.npz", {}, "offsets and targets"),
        ("half.npz", {"offsets": [0, 1]}, "found offsets"),
        ("pickled.npz", {"offsets": np.array([{}]), "targets": [0]}, "allow_pickle"),
        ("falling.npz", {"offsets": [0, 2, 1, 3], "targets": [0, 1, 2]}, "found 1 after 2 at 2"),
        ("short.npz", {"offsets": [0, 1, 2], "targets": [0, 1, 1]}, "from 0 to 3"),
        ("range.npz", {"offsets": [0, 1, 2], "targets": [0, 2]}, "page numbers from 0 to 1, found 2 at 1"),
        ("negative.npz", {"offsets": [0, 1], "targets": [-1]}, "found -1 at 0"),
        ("nan.npz", {"offsets": [0, 1], "targets": [np.nan]}, "whole numbers"),
        ("square.npz", {"offsets": [[0, 1]], "targets": [0]}, "in one dimension"),
        ("csc.npz", {"format": b"csc", "indptr": [0], "indices": [0]}, "csr"),
        ("columns.parquet", {"from": [0]}, "columns from and to"),
        ("null.parquet", {"from": [0, None], "to": [1, 1]}, "1 rows of none"),
        ("nan.parquet", {"from": [0.0], "to": [np.nan]}, "found double"),
        ("negative.parquet", {"from": [0], "to": [-7]}, "column to: expected page numbers"),
        ("huge.parquet", {"from": [0], "to": [1 << 40]}, "found 1099511627776"),
        ("no.parquet", b"text", "Parquet table"),
        ("one.txt", b"1\n", "line 1: expected two page numbers"),
        ("three.txt", b"# x\n1 2\n1 2 3\n", "Expected 2 columns, got 3"),
        ("words.txt", b"1 two\n", "found int64 and string"),
        ("empty.txt", b"", "expected two page numbers"),
        ("scheme.txt", b"ftp://a.br/ http://a.br/\n", "other_scheme"),
    ],
)
def test_a_broken_graph_is_named_with_what_was_expected(tmp_path, name, content, words):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None and name.endswith(".npz"):
        np.savez(path, **content)
    elif content is not None:
        pa.parquet.write_table(pa.table(content), path)
    with pytest.raises(BadInput) as caught:
        open_graph(path)
    assert str(caught.value).startswith(str(path)) and words in str(caught.value)


def test_damaged_arrays_never_end_in_another_error(tmp_path):
    path = tmp_path / "graph.npz"
    np.savez_compressed(path, offsets=np.arange(100), targets=np.zeros(99, np.int32))
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            open_graph(path)
        except BadInput:
            continue
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput):
        open_graph(path)


def test_breadth_first_takes_the_fewest_links_first():
    graph = join_links(np.array([3, 3, 0, 1, 4]), np.array([0, 1, 2, 2, 5]), 6)
    assert breadth_first(graph, np.array([3]), 10).tolist() == [3, 0, 1, 2]
    assert breadth_first(graph, np.array([3]), 2).tolist() == [3, 0]


def exact_ranks(graph: Graph, damping: float) -> np.ndarray:
    """By solving the equations; a page without links leads everywhere."""
    pages = len(graph)
    index, targets = graph.links_of(np.arange(pages))
    moves = np.zeros((pages, pages))
    moves[targets, index] = 1 / graph.degrees[index]
    moves[:, graph.degrees == 0] = 1 / pages
    return np.linalg.solve(np.eye(pages) - damping * moves, np.full(pages, (1 - damping) / pages))


@pytest.mark.parametrize("damping", [0.5, 0.85, 0.99])
def test_pagerank_solves_its_equations(damping):
    random = np.random.default_rng(1)
    graph = join_links(random.integers(0, 50, 150), random.integers(0, 60, 150), 60)
    assert (graph.degrees == 0).any()
    ranks = pagerank(graph, damping, 1e-12)
    assert ranks == pytest.approx(exact_ranks(graph, damping), abs=1e-12) and ranks.sum() == pytest.approx(1)


def test_pagerank_of_graphs_without_links_or_pages():
    assert pagerank(join_links(np.array([], int), np.array([], int), 4)).tolist() == [0.25] * 4
    assert len(pagerank(join_links(np.array([], int), np.array([], int), 0))) == 0


def test_a_crawl_folder_gives_what_it_collected():
    answered, links, seeds = {}, set(), set()
    for folder in sorted((GOLDEN / names.CYCLES).glob(f"*/{names.EXTRACTOR}")):
        for row in read_table(folder / names.COLLECTED, COLLECTED).to_pylist():
            if row["outcome"] == ANSWERED:
                answered[row["url_key"]] = row["url"]
                seeds |= {row["url"]} if row["depth"] == 0 else set()
        for row in read_table(folder / names.LINKS, LINKS).to_pylist():
            links |= {(row["from_key"], row["to_key"])} if row["followed"] else set()
    graph = open_graph(GOLDEN)
    urls = [line.decode().rstrip("\n") for line in graph.urls.to_pylist()]
    expected = {(answered[one], answered[two]) for one, two in links if one != two and {one, two} <= answered.keys()}
    assert sorted(urls) == sorted(answered.values()) and len(expected) > 5
    assert {(urls[one], urls[two]) for one, two in pairs_of(graph)} == expected
    assert {urls[page] for page in graph.seeds} == seeds


def test_a_folder_without_a_crawl_is_refused(tmp_path):
    with pytest.raises(BadInput, match="expected a crawl folder"):
        open_graph(tmp_path)
