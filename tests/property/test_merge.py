"""The merge of real turns on real files against a model of Python sets and dictionaries."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from contract import names
from contract.blocks import block_of, block_to_split
from contract.config import Config, Verifier
from contract.log import ABANDON, CRAWL, Entry, commit
from contract.tables import ANSWERED, FAILED, REASON_ROBOTS, REFUSED
from contract.url import server_of
from stages.verifier import walk
from tests.sampling import sampling
from tests.small_crawl import Page, SmallCrawl

URLS = [
    f"http://{host}/{path}"
    for host in ("a.test", "www.a.test", "b.test", "c.test", "d.test", "e.test", "127.0.0.1", "f.co.uk")
    for path in ("", "x", "y/z", "q?1")
]
ATTEMPTS_MAX = 2
CONFIG = Config(verifier=Verifier(attempts_max=ATTEMPTS_MAX, prescheduled_max=200, prescheduled_refill=2))

urls = st.lists(st.sampled_from(URLS), max_size=6)
outcomes = st.sampled_from([ANSWERED, ANSWERED, ANSWERED, FAILED, REFUSED, "robots", "not reached"])


class Model:
    """Every URL ever brought: least depth, links in, state, failed attempts."""

    def __init__(self):
        self.known: dict[str, dict] = {}

    def bring(self, url: str, depth: int, links: int) -> None:
        row = self.known.setdefault(url, {"depth": depth, "links_in": 0, "state": "uncollected", "attempts": 0})
        row["depth"] = min(row["depth"], depth)
        row["links_in"] += links

    def take_back(self, url: str) -> None:
        if self.known[url]["state"] != "collected":
            self.known[url] |= {"state": "uncollected", "attempts": 0}

    def happen(self, url: str, outcome: str) -> None:
        row = self.known[url]
        if outcome == FAILED:
            row["attempts"] += 1
        if row["state"] != "collected":
            row["state"] = {
                ANSWERED: "collected",
                REFUSED: "refused_by_rule",
                "robots": "refused_by_robots",
                FAILED: "given_up" if row["attempts"] >= ATTEMPTS_MAX else "uncollected",
            }[outcome]


class Driver:
    def __init__(self, folder: Path, blocks: int):
        self.crawl = SmallCrawl(folder, blocks, CONFIG)
        self.model = Model()

    def seed(self, seeds: list[str]) -> None:
        if seeds:
            self.crawl.seed(seeds)
        for url in set(seeds):
            self.model.bring(url, 0, 0)
            self.model.take_back(url)

    def turn(self, data) -> None:
        due = [view.block for view in self.crawl.crawl_state.views() if view.waiting or view.pending]
        if not due:
            return
        plan = self.crawl.plan(CRAWL, data.draw(st.sampled_from(due)))
        listed = self.crawl.schedule(plan)
        if data.draw(st.booleans()) and data.draw(st.booleans()):
            commit(
                self.crawl.crawl.path,
                Entry(ABANDON, plan.cycle, plan.blocks, {plan.block: plan.generation}, reason="test"),
            )
            self.crawl.crawl_state.refresh()
            return  # charges nobody
        pages, depths = {}, {url: self.model.known[url]["depth"] for url in listed}
        foreign = frozenset(data.draw(urls)) - set(self.model.known)
        for url in [*listed, *sorted(foreign)]:
            outcome = data.draw(outcomes)
            if outcome != "not reached":
                links = data.draw(urls) if outcome == ANSWERED else []
                kind, reason = (REFUSED, REASON_ROBOTS) if outcome == "robots" else (outcome, "")
                pages[url] = Page(kind, reason, links)
        mine = {url for url in foreign if block_of(self.crawl.keyed(url)["domain_key"], plan.blocks) == plan.block}
        self.crawl.harvest(plan, pages, foreign)
        report = self.crawl.verify(plan)
        assert report["rows_merged"] == sum(
            report[name] for name in ("repeated", "already_collected", "collected_now", "known_uncollected", "new")
        )
        linked = {link for page in pages.values() for link in page.links}
        for url, page in pages.items():
            for link in set(page.links):
                self.model.bring(link, depths.get(url, 0) + 1, 1)
            if url in mine or url in foreign and url not in linked:  # spilled as a link where it is one
                self.model.bring(url, 0, 0)
            if url not in foreign or url in mine:  # what somebody else collected for another block is only known there
                self.model.happen(url, "robots" if page.reason == REASON_ROBOTS else page.outcome)

    def agree(self) -> None:
        self.crawl.absorb_all()
        rows = self.crawl.rows()
        assert set(rows) == set(self.model.known)
        for url, want in self.model.known.items():
            row = rows[url]
            state = "uncollected" if row["state"] in ("waiting", "prescheduled") else row["state"]
            assert {
                "depth": row["depth"],
                "links_in": row["links_in"],
                "state": state,
                "attempts": row["attempts"],
            } == want, url
            assert row["block"] == block_of(self.crawl.keyed(url)["domain_key"], self.crawl.crawl_state.log.blocks)
            assert row["server"] == server_of(url)


@settings(
    max_examples=sampling.examples(16), suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)  # shrinking a story of turns takes longer than reading it
@given(st.data())
def test_turns_agree_with_sets(monkeypatch, data):
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(
            walk, "ARRIVED_ROW_BYTES", data.draw(st.sampled_from([480, 400 << 20]))
        )  # a piece for each few rows
        driver = Driver(Path(folder) / "crawl", data.draw(st.integers(1, 4)))
        driver.seed(data.draw(st.lists(st.sampled_from(URLS), min_size=1, max_size=5)))
        for _ in range(data.draw(st.integers(1, 6))):
            action = data.draw(st.sampled_from(["turn", "turn", "turn", "seed", "grow", "delete"]))
            if action == "turn":
                driver.turn(data)
            elif action == "seed":
                driver.seed(data.draw(urls))
            elif action == "grow":
                driver.crawl.grow(block_to_split(driver.crawl.crawl_state.log.blocks))
            else:
                driver.crawl.delete(keep=data.draw(st.integers(0, 1)))
        driver.agree()


@pytest.mark.long
def test_text_segments_are_rewritten_as_one(tmp_path):
    """More than 16 turns with new texts in one block leave few segments, and every text is still that of its URL."""
    driver = Driver(tmp_path / "crawl", 1)
    for number in range(40):
        driver.seed([f"http://many{number}.test/"])
        driver.crawl.absorb(0)
        driver.crawl.delete()
    driver.agree()
    assert len(list((tmp_path / "crawl" / names.TEXT).iterdir())) <= 17


LAYERS, WIDTH, HOSTS = 6, 30, 12
BLOCKS_MOST = 16


def page_at(layer: int, number: int) -> str:
    return (
        f"http://h{(layer * 7 + number) % HOSTS}.test/{layer}/{number}" if layer else f"http://h{number % HOSTS}.test/"
    )


def web_links(layer: int, number: int) -> list[str]:
    """A page leads to the next layer, mostly on other servers, and back to seeds.

    All ways to a page are equally long. Were they not, its depth would depend on the order of turns: a page that is
    collected before a shorter way to it is found has handed on the longer one to its targets.
    """
    further = [page_at(layer + 1, (number * step + step) % WIDTH) for step in (1, 3, 7)] if layer < LAYERS else []
    return [*further, page_at(0, number), page_at(0, number + 5)]


def web_pages() -> dict[str, tuple[int, int]]:
    return {
        page_at(layer, number): (layer, number)
        for layer in range(LAYERS + 1)
        for number in range(WIDTH if layer else HOSTS)
    }


def answer(place: tuple[int, int], attempt: int) -> Page:
    layer, number = place
    kind = (layer * 31 + number * 17) % 23 if layer else 5
    if kind == 0 or kind == 1 and attempt == 0:  # never, and not at first
        return Page(FAILED, "timeout")
    if kind in (2, 3):
        return Page(REFUSED, REASON_ROBOTS if kind == 2 else "excluded_type")
    return Page(links=web_links(layer, number))


def play_web(crawl: SmallCrawl, grow_to: int) -> int:
    """Turns until nothing waits, the block that grows last split between turns; returns how many there were."""
    pages, attempts, turns = web_pages(), dict.fromkeys(web_pages(), 0), 0
    crawl.seed([page_at(0, number) for number in range(HOSTS)])
    while due := [view.block for view in crawl.crawl_state.views() if view.waiting or view.pending]:
        plan = crawl.plan(CRAWL, due[turns % len(due)])
        listed = crawl.schedule(plan)
        crawl.harvest(plan, {url: answer(pages[url], attempts[url]) for url in listed})
        crawl.verify(plan)
        for url in listed:
            attempts[url] += 1
        turns += 1
        assert turns < 1000, "it does not come to an end"
        if crawl.crawl_state.log.blocks < grow_to:
            crawl.grow(block_to_split(crawl.crawl_state.log.blocks))
    return turns


@pytest.mark.long
def test_crawls_with_other_numbers_of_blocks_agree(tmp_path):
    """A whole web, crawled by one block that is split again and again, and by 16 from the beginning."""
    found = []
    for blocks in (1, BLOCKS_MOST):
        crawl = SmallCrawl(tmp_path / str(blocks), blocks, CONFIG)
        assert play_web(crawl, BLOCKS_MOST) > LAYERS and crawl.crawl_state.log.blocks > (8 if blocks == 1 else 15)
        found.append(
            {
                url: tuple(row[name] for name in ("state", "attempts", "depth", "links_in", "server"))
                for url, row in crawl.rows().items()
            }
        )
    assert found[0] == found[1]
    pages = web_pages()
    assert {url: row[2] for url, row in found[0].items()} == {url: pages[url][0] for url in found[0]}, (
        "depth is the layer"
    )
    assert {row[0] for row in found[0].values()} == {"collected", "given_up", "refused_by_robots", "refused_by_rule"}
    linked = Counter(
        link for url, row in found[0].items() if row[0] == "collected" for link in set(web_links(*pages[url]))
    )
    assert {url: row[3] for url, row in found[0].items()} == {url: linked[url] for url in found[0]}
    assert set(found[0]) == set(linked) | {page_at(0, number) for number in range(HOSTS)}
