"""A directory that is crawled for its links: all pages come through it, and no count or export has its own."""

import json
import re
import time
from pathlib import Path
from urllib.parse import urlsplit

from contract import names
from contract.crawl_folder import open_folder
from contract.totals import FETCHED
from examine.cycle_books import check_cycle
from examine.dashboard.fragments import show_run
from examine.findings import Findings
from examine.link_source_books import OF_CYCLE
from examine.report.figures import gather
from examine.report.progress import summarise
from examine.report.words import Words
from graph.folder import open_graph
from storage.publish import encode_json, read_json, read_manifest
from supervise.demo import SETTINGS
from synthweb import Web
from tests.graph_crawl import texts_of
from tests.pipeline.conftest import SMALL_SEED, SMALL_SERVERS
from tests.pipeline.judge import collected_urls, committed_cycles, run

DIRECTORY, OTHERS = "s2.test", ("s0.test", "s1.test")  # the only seed is of the directory


class Crawl:
    def __init__(self, folder: Path, state: Path, port: int):
        self.path, self.crawl, self._hosts = folder, folder / "crawl", state / "hosts"
        self.web = Web(SMALL_SEED, SMALL_SERVERS, port)

    def settings(self, sources: tuple[str, ...]) -> Path:
        """A configuration in whose scope are the other hosts; `sources` are crawled for their links."""
        surts = [",".join(reversed(host.split("."))) + "," for host in (*OTHERS, *sources)]
        scope = f"accept_surts = {surts[: len(OTHERS)]}\nlink_sources = {surts[len(OTHERS) :]}\nhops_max = 2"
        text = SETTINGS.format(hosts=self._hosts).replace('accept_suffixes = ["test"]', scope)
        (self.path / "mine.toml").write_text(text)
        return self.path / "mine.toml"

    def run(self, name: str, *more: object) -> str:
        done = run(name, "--crawl", self.crawl, *more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def status(self) -> dict:
        return json.loads(self.run("status", "--json"))

    def count(self, *hosts: str) -> int:
        """How many pages of these hosts were collected."""
        return sum(urlsplit(url).hostname in hosts for url in collected_urls(self.crawl))


def hosts_of(text: str) -> set[str]:
    return set(re.findall(r"https?://([^/:\s\"]+)", text))


def assert_counted(crawl: Crawl, printed: str) -> None:
    own, theirs = crawl.count(*OTHERS), crawl.count(DIRECTORY)
    assert own > 0 < theirs
    status = crawl.status()
    assert status["collected"] == status["fetched"]["answered"] == own
    found = status["link_sources"]
    assert found["collected"] == found["fetched"]["answered"] == theirs
    assert status["known"] == sum(status["states"].values()) and found["known"] == sum(found["states"].values())
    assert status["known"] == sum(block.get("known", 0) for block in status["by_block"])
    assert f": {own} pages" in printed and f"; besides, of link sources: {theirs} pages" in printed, printed
    assert f"{found['known']} link sources that the collection leaves out" in crawl.run("status")
    crawl.run("check")


def assert_pictured(crawl: Crawl) -> None:
    own, theirs = crawl.count(*OTHERS), crawl.count(DIRECTORY)
    figures = gather(open_folder(crawl.crawl), time.time_ns() // 1_000_000)
    assert figures.answers.pages == own == sum(row["pages"] for row in figures.answers.visits.rows())
    assert figures.answers.statuses.total() == own == figures.known.depths.sum() == figures.known.visits.counts.sum()
    assert {urlsplit(server).hostname for server, *_ in figures.known.servers.rows()} <= set(OTHERS)
    assert {urlsplit(url).hostname for url, _ in figures.known.linked.rows()} == set(OTHERS)
    assert sum(row["answered"] for row in figures.cycles.rows) == own == figures.cycles.rows[-1]["collected"]
    assert [urlsplit(seed.url).hostname for seed in figures.known.seeds] == [DIRECTORY], "seeds are named all the same"
    (summary,) = summarise(figures, Words()).parts
    assert dict(summary.rows)["known domains"] == len(OTHERS) == dict(summary.rows)["servers"]
    assert ("link sources, left out of all counts", figures.status["link_sources"]["known"]) in summary.rows
    assert f"<dt>link sources besides</dt><dd>{theirs}</dd>" in show_run(figures.status)


def assert_left_out(crawl: Crawl, folder: Path) -> None:
    urls, own, theirs = {}, crawl.count(*OTHERS), crawl.count(DIRECTORY)
    for name, more in (("without", ()), ("with", ("--link-sources",))):
        printed = crawl.run("export", "urls", "--state", "collected", "--out", folder / name, *more)
        urls[name] = "".join(path.read_text() for path in (folder / name).glob("*.txt"))
        assert (f"{theirs} link sources left out" in printed) == (name == "without"), printed
    assert hosts_of(urls["without"]) == set(OTHERS) and urls["without"].count("\n") == own
    assert hosts_of(urls["with"]) == {*OTHERS, DIRECTORY} and urls["with"].count("\n") == own + theirs
    printed = crawl.run("export", "warc", "--out", folder / "warc")
    assert f"{theirs} link sources left out" in printed, printed
    index = (folder / "warc" / "index.cdxj").read_text()
    assert hosts_of(index) == set(OTHERS), "no robots.txt of the directory either"
    crawl.run("export", "pages", "--format", "jsonl", "--out", folder / "pages")
    pages = [json.loads(line) for path in (folder / "pages").glob("*.jsonl") for line in path.open()]
    assert len(pages) == own and {urlsplit(page["url"]).hostname for page in pages} == set(OTHERS)
    asked = "select host, count(*) from pages where link_source group by host"
    assert crawl.run("sql", "--csv", asked).splitlines()[1:] == [f"{DIRECTORY},{theirs}"]
    assert "a link source" in crawl.run("why", crawl.web.seeds()[0])
    done = run("graph", "build", "--crawl", crawl.crawl)
    assert done.returncode == 0, done.stderr
    graph = open_graph(crawl.crawl / "graph")
    assert hosts_of("\n".join(texts_of(graph.pages))) == set(OTHERS) and graph.manifest["counts"]["link_sources"] > 0


def assert_present_configuration_decides(crawl: Crawl) -> None:
    """A turn of each block counts anew. What a cycle fetched stays counted as it was by its own plan."""
    before = crawl.status()
    crawl.run("crawl", "--until-done", "--config", crawl.settings((DIRECTORY, OTHERS[-1])), "--yes")
    status = crawl.status()
    assert status["collected"] == crawl.count(*OTHERS[:-1])
    assert status["link_sources"]["collected"] == crawl.count(DIRECTORY, OTHERS[-1])
    assert status["fetched"] == before["fetched"]
    crawl.run("check")


def assert_books_find_other_counts(crawl: Crawl) -> None:
    folders = [crawl.crawl / names.cycle(cycle) for cycle in committed_cycles(crawl.crawl)]
    folder = next(
        one for one in folders if any(read_manifest(one / names.EXTRACTOR)["counts"]["link_sources"].values())
    )
    path = folder / names.EXTRACTOR / names.MANIFEST
    content = path.read_bytes()
    keys = open_folder(crawl.crawl).keys()
    for name in FETCHED:
        manifest = read_json(path)
        manifest["counts"]["link_sources"][name] += 1
        path.write_bytes(encode_json(manifest))
        findings = Findings()
        check_cycle(crawl.crawl, int(folder.name), keys, findings)
        assert list(findings.wrong) == [OF_CYCLE]
        path.write_bytes(content)


def test_a_directory_is_crawled_for_its_links_alone(small_web, tmp_path):
    """One crawl for all of it: the crawl takes longer than the questions."""
    crawl = Crawl(tmp_path, *small_web)
    crawl.run("seed", "--config", crawl.settings((DIRECTORY,)), *crawl.web.seeds())
    assert_counted(crawl, crawl.run("crawl", "--until-done"))
    assert_pictured(crawl)
    assert_left_out(crawl, tmp_path)
    assert_books_find_other_counts(crawl)
    assert_present_configuration_decides(crawl)
