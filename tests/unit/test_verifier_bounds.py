"""What a hostile web may send: the verifier's turn stays within its memory also where URLs are long."""

from dataclasses import replace

from contract.config import Config
from contract.log import CRAWL
from stages.verifier.walk import ARRIVED_ROW_BYTES, PIECE_BYTES_LEAST
from tests.small_crawl import Page, SmallCrawl


def test_long_urls_make_smaller_pieces(tmp_path):
    links = [f"http://s{number % 7}.test/{number}/{'x' * 1900}" for number in range(12_000)]
    assert len(links) * ARRIVED_ROW_BYTES < PIECE_BYTES_LEAST < sum(map(len, links)), (
        "few enough to be one piece, by their number alone"
    )
    config = replace(Config(), verifier=replace(Config().verifier, memory_max_bytes=1 << 28))
    small = SmallCrawl(tmp_path / "crawl", 1, config)
    small.seed(["http://one.test/"])
    small.absorb_all()
    plan = small.plan(CRAWL, 0)
    small.harvest(plan, {url: Page(links=links) for url in small.schedule(plan)})
    report = small.verify(plan)
    assert report["new"] == len(links) and report["pieces"] >= sum(map(len, links)) // PIECE_BYTES_LEAST
    assert set(small.rows()) == {"http://one.test/", *links}
