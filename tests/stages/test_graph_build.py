"""bin/graph build: from tables of links to a graph on disk, compared with one that is made the slow way."""

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contract.crawl_folder import open_folder
from contract.errors import BadConfiguration, BadInput, Usage
from graph import build as graph_build
from graph.build import Bounds, build
from graph.build_command import main as build_command
from graph.export_command import main as export_command
from graph.filters import Filters
from graph.folder import open_graph, open_locked
from graph.look_command import main as look_command
from graph.rank_command import main as rank_command
from storage.publish import verify
from tests.graph_crawl import LinkCrawl, expect_graph, texts_of

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "crawl"
A, B, C, D = "http://a.br/1", "http://a.br/2", "https://www.b.example.br:8443/?q=1", "http://a.br-x.com/"


def made(crawl: LinkCrawl, filters: Filters = Filters(), root: Path | None = None, allow_partial: bool = False):
    root = root or crawl.folder / "graph"
    build(crawl.crawl, root, filters, 1024, allow_partial, lambda *_: None)
    return open_graph(root)


def domain_of(crawl: LinkCrawl):
    return lambda server: crawl.crawl.keys().server(server).domain


def random_links(seed: int, count: int) -> list[tuple[str, str]]:
    chance = random.Random(seed)
    urls = [f"http://s{number % 13}.d{number % 5}.com.br/{chance.random()}" for number in range(count // 5)]
    urls += [f"http://s{number % 7}.br/{'x' * chance.randrange(300)}" for number in range(count // 20)]
    popular = urls[:5]
    return [(chance.choice(urls), chance.choice(popular if chance.random() < 0.5 else urls)) for _ in range(count)]


@pytest.fixture
def tiny_memory(monkeypatch):
    """So little that every step sorts outside of memory, cuts files again, and merges runs in several passes."""
    monkeypatch.setattr(graph_build, "bounds_of", lambda _: Bounds(urls=50, links=64))
    monkeypatch.setattr("graph.sorted_urls.FAN_IN", 3)


def test_a_graph_is_that_of_its_links(tmp_path, tiny_memory):
    crawl = LinkCrawl(tmp_path / "crawl")
    links = random_links(1, 2_000)
    for cycle in range(5):
        crawl.add(links[cycle * 400 : (cycle + 1) * 400])
    graph = made(crawl)
    urls = {end for link in links for end in link}
    expect_graph(graph, urls, links, domain_of(crawl))
    assert graph.manifest["counts"]["rows"] == sum(
        len(set(links[start : start + 400])) for start in range(0, 2_000, 400)
    )
    assert not (tmp_path / "crawl/graph/sort").exists()


def test_bytes_do_not_depend_on_memory_nor_on_what_was_built_before(tmp_path, monkeypatch):
    crawl = LinkCrawl(tmp_path / "crawl")
    links = random_links(2, 1_000)
    crawl.add(links[:500])
    first = made(crawl)
    crawl.add(links[500:])
    later = made(crawl)
    assert first.folder != later.folder and not first.folder.exists()
    monkeypatch.setattr(graph_build, "bounds_of", lambda _: Bounds(urls=50, links=64))
    other = made(crawl, root=tmp_path / "other")
    assert other.manifest == later.manifest
    for name in later.manifest["files"]:
        assert (later.folder / name).read_bytes() == (other.folder / name).read_bytes()


def test_a_build_keeps_the_version_that_a_command_reads(tmp_path):
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.add([(A, B)])
    made(crawl)
    read = open_locked(crawl.folder / "graph", is_verified=False)
    crawl.add([(B, C)])
    made(crawl)
    assert texts_of(read.pages) == [A, B] and read.folder.exists()
    del read
    crawl.add([(C, D)])
    made(crawl)
    assert sorted(os.listdir(crawl.folder / "graph")) == ["00000002", "lock"]


def test_targets_without_a_text_are_left_out_and_counted(tmp_path):
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.add([(A, B), (A, C)], unknown=[C])
    graph = made(crawl)
    expect_graph(graph, {A, B}, {(A, B)}, domain_of(crawl))
    assert graph.manifest["counts"] == {
        "filtered": 0,
        "link_sources": 0,
        "no_page": 0,
        "no_target": 1,
        "repeated": 0,
        "rows": 2,
    }
    crawl.add([(B, D)], targets=[C])  # a later cycle knows its text
    expect_graph(made(crawl), {A, B, C, D}, {(A, B), (A, C), (B, D)}, domain_of(crawl))


def test_a_key_of_two_urls_is_reported(tmp_path):
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.forged = {D: crawl.key(B)}
    crawl.add([(A, B)])
    crawl.add([(A, D)])
    graph = made(crawl)
    assert graph.manifest["keys_shared"] == 1
    ((key, first, second),) = graph.manifest["shared"]
    assert int(key) == crawl.key(B) and graph.pages.texts.read([first, second]) == [D, B] == sorted([B, D])


def test_filters(tmp_path):
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.add([(A, B), (A, C), (A, D)], nofollow=[(A, B)], kinds={(A, C): 1 << 6, (A, D): 1 << 6 | 1}, at_ms=10)
    crawl.add([(B, A)], targets=["http://out.com/"], at_ms=20)
    crawl.add([(A, B)], at_ms=30, unchanged=[B])
    out, every = "http://out.com/", {(A, B), (A, C), (A, D), (B, A)}
    for filters, urls, links in [
        (Filters(), {A, B, C, D, out}, every),
        (Filters(in_scope=True), {A, B, C, D}, every),
        (Filters(collected=True), {A, B}, {(A, B), (B, A)}),
        (Filters(nofollow=False, until_ms=20), {A, B, C, D, out}, {(A, C), (A, D), (B, A)}),
        (Filters(kinds=1 << 6), {A, B, C, D, out}, {(A, C), (A, D)}),
        (Filters(until_ms=10), {A, B, C, D, out}, {(A, B), (A, C), (A, D)}),
        (Filters(newest=True), {A, B, C, D, out}, {(A, B), (B, A)}),
        (Filters(newest=True, until_ms=20), {A, B, C, D, out}, every),
    ]:
        expect_graph(made(crawl, filters), urls, links, domain_of(crawl))


@pytest.mark.parametrize(
    "text", ["http://a.br", "", "x", "http://a.br/\n", "http://a.br/\x1b[2J", "http://ä.br/", "http://[::1/"]
)
def test_texts_that_are_no_urls_are_refused(tmp_path, monkeypatch, text):
    crawl = LinkCrawl(tmp_path / "crawl")
    monkeypatch.setattr(LinkCrawl, "keyed", lambda self, urls: {"url": [*urls, text], "url_key": [*self.keys(urls), 7]})
    crawl.add([(A, B)])
    with pytest.raises(BadInput, match="expected canonical URLs"):
        made(crawl)


@pytest.mark.parametrize("links", [[], [(A, A)]])
def test_crawls_without_links_and_with_one(tmp_path, links):
    crawl = LinkCrawl(tmp_path / "crawl")
    expect_graph(made(crawl), [], [], domain_of(crawl))
    crawl.add(links)
    expect_graph(made(crawl), [A] if links else [], links, domain_of(crawl))


def test_a_damaged_cycle_ends_the_build_or_is_left_out_and_named(tmp_path):
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.add([(A, B)])
    crawl.add([(B, C)])
    (crawl.last / "Ligacoes.parquet").write_bytes(b"no table")
    with pytest.raises(BadInput, match=r"cycle 1: .*Ligacoes.parquet.*expected \d+ bytes.*--allow-partial"):
        made(crawl)
    graph = made(crawl, allow_partial=True)
    expect_graph(graph, {A, B}, {(A, B)}, domain_of(crawl))
    assert graph.is_partial and "Ligacoes" in graph.manifest["missing"]["1"]
    shutil.rmtree(crawl.last)
    with pytest.raises(BadInput, match="cycle 1: .* has no manifest.json"):
        made(crawl)


def command(crawl: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "graph", "build", "--crawl", str(crawl), *words]


def test_no_graph_lies_among_the_files_of_a_crawl(tmp_path):
    """A build deletes the numbered folders beside the graph: in `cycles` these were the pages of the crawl."""
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.add([(A, B)])
    before = sorted(crawl.folder.rglob("*"))
    (tmp_path / "link").symlink_to(crawl.folder / "cycles")
    for out in (crawl.folder / "cycles", crawl.folder / "new", crawl.folder, tmp_path / "link"):
        with pytest.raises(Usage, match="crawl folder"):
            build_command(["--crawl", str(crawl.folder), "--out", str(out)])
        with pytest.raises(Usage, match="crawl folder"):
            export_command(["--crawl", str(crawl.folder), "--format", "snap", "--out", str(out)])
    with pytest.raises(Usage, match="crawl folder"):
        rank_command(["--crawl", str(crawl.folder), "--out", str(crawl.folder / "crawl.json")])
    (tmp_path / "exports" / "00000001").mkdir(parents=True)
    with pytest.raises(Usage, match=r"holds other files \(00000001\)"):
        build_command(["--crawl", str(crawl.folder), "--out", str(tmp_path / "exports")])
    assert sorted(crawl.folder.rglob("*")) == before and (tmp_path / "exports" / "00000001").is_dir()


def test_without_a_graph_the_command_names_what_to_run(tmp_path):
    crawl = LinkCrawl(tmp_path / "crawl")
    for words, expected in (
        ([], f"make it with bin/graph build --crawl {crawl.folder}$"),
        (["--graph", str(tmp_path / "g")], f"make it with bin/graph build --crawl {crawl.folder} --out {tmp_path}/g$"),
    ):
        with pytest.raises(BadInput, match=expected):
            look_command(["0", "--crawl", str(crawl.folder), *words])
    with pytest.raises(BadConfiguration, match="is no crawl folder"):
        look_command(["0", "--crawl", str(tmp_path / "none")])


@pytest.mark.long
def test_the_command_builds_the_golden_crawl(tmp_path):
    done = subprocess.run(command(GOLDEN, "--out", str(tmp_path / "g")), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "pages: 24, edges: 29" in done.stdout and "servers: 2, edges: 2" in done.stdout
    assert "http://" not in done.stderr
    nothing = subprocess.run(command(tmp_path / "none"), capture_output=True, text=True)
    assert nothing.returncode == 78 and "is no crawl folder" in nothing.stderr
    unknown = subprocess.run(command(GOLDEN, "--kinds", "a,b"), capture_output=True, text=True)
    assert unknown.returncode == 64 and "found 'b'" in unknown.stderr


@pytest.mark.parametrize("place", [".", "log", "cycles", "R/0000", "R/0000/00000006"])
def test_a_build_deletes_nothing_that_is_no_graph(tmp_path, place):
    """Cycles and generations have numbers for names, as versions of a graph do."""
    crawl = Path(shutil.copytree(GOLDEN, tmp_path / "crawl"))
    before = sorted(crawl.rglob("*"))
    with pytest.raises(Usage, match="name a folder outside of it"):
        build(open_folder(crawl), crawl / place, Filters(), 1024, False, lambda *_: None)
    assert sorted(crawl.rglob("*")) == before


@pytest.mark.long
def test_a_build_that_is_killed_anywhere_is_made_by_the_same_command(tmp_path):
    """Killed at the n-th change of a file, for n that rise; what was published before stays readable."""
    crawl = LinkCrawl(tmp_path / "crawl")
    links = random_links(3, 600)
    crawl.add(links[:300])
    subprocess.run(command(crawl.folder), check=True, capture_output=True)
    before = open_graph(crawl.folder / "graph")
    crawl.add(links[300:])
    subprocess.run(command(crawl.folder, "--out", str(tmp_path / "whole")), check=True, capture_output=True)
    whole = open_graph(tmp_path / "whole")
    killed = 0
    for step in range(1, 300, 37):
        root = tmp_path / f"killed-{step}"
        shutil.copytree(crawl.folder / "graph", root)
        done = subprocess.run(
            [sys.executable, "-m", "tests.stages.killed_build", str(step), str(crawl.folder), str(root)],
            capture_output=True,
            text=True,
        )
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        killed += 1
        assert texts_of(open_graph(root).pages) in (texts_of(before.pages), texts_of(whole.pages))
        subprocess.run(command(crawl.folder, "--out", str(root)), check=True, capture_output=True)
        graph = open_graph(root)
        assert graph.manifest == whole.manifest
        assert sorted(os.listdir(root)) == [graph.folder.name, "lock"]
        for name, about in whole.manifest["files"].items():
            verify(graph.folder / name, about)
    assert killed > 3
