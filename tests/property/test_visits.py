"""The side set after real turns against a model of plain Python, and the books that count it again."""

import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from contract.blocks import block_of, block_to_split
from contract.config import Config, Revisit
from contract.generation import BLOCK_SERVERS
from contract.revisits import trust_of
from contract.tables import ANSWERED, FAILED, REFUSED
from contract.url import server_of
from stages.verifier import walk
from stages.verifier.server_table import ServerTable
from tests.sampling import sampling
from tests.small_crawl import NOW_MS, Page, SmallCrawl
from tests.visited_pages import claims_of, find_wrong, manifests, sides, turn

URLS = [f"http://{host}/{path}" for host in ("a.test", "b.test", "c.test", "d.test") for path in ("", "x", "y/z")]
REVISIT = Revisit(interval_s=7_200.0, interval_min_s=600.0, interval_max_s=20_000.0, shorten=0.7, lengthen=1.3)
NO_CONTENT = bytes(16)

pages = st.builds(
    Page,
    outcome=st.sampled_from([ANSWERED] * 6 + [FAILED, REFUSED]),
    status=st.sampled_from([200, 200, 200, 301, 404, 410]),
    digest=st.sampled_from([NO_CONTENT, b"1" * 16, b"2" * 16, b"2" * 16]),
    at_ms=st.integers(0, 10**8),  # after the cycle's own time, but 0: it has no time
    is_revisit=st.booleans(),
    is_parsed=st.booleans(),
    lastmods=st.dictionaries(st.sampled_from(URLS), st.integers(0, 2 * 10**5), max_size=4),  # after NOW_MS
)


class Model:
    """What is known of each collected page, told visit by visit."""

    def __init__(self, revisit: Revisit):
        self.revisit = revisit
        self.known: dict[str, dict] = {}
        self.lastmods: dict[str, int] = {}  # of each URL, in its block
        self.waiting: dict[str, int] = {}  # and what waits for its block
        self.claims: dict[str, list[int]] = {server_of(url): [0, 0] for url in URLS}  # tested and true ones

    def answer(self, url: str, page: Page, cycle: int) -> None:
        stored = {"cycle": cycle, "fetched_at_ms": page.at_ms, "content_digest": page.digest}
        gone = page.status in (404, 410)
        if url not in self.known:
            zeros = dict.fromkeys(("visited_at_ms", "changes", "unchanged_min", "changed_min", "period_min"), 0)
            self.known[url] = {**stored, **zeros, "visits": 1, "parsed": int(page.is_parsed), "misses": int(gone)}
            return
        row = self.known[url]
        minutes = math.floor((page.at_ms - max(row["fetched_at_ms"], row["visited_at_ms"])) / 60_000 + 0.5)
        is_changed = NO_CONTENT not in (page.digest, row["content_digest"]) and page.digest != row["content_digest"]
        row["changed_min" if is_changed else "unchanged_min"] += max(1, minutes)
        if self.lastmods.get(url, 0) * 1000 > max(row["fetched_at_ms"], row["visited_at_ms"]):
            claims = self.claims[server_of(url)]
            claims[0] += page.is_revisit or NO_CONTENT not in (page.digest, row["content_digest"])
            claims[1] += is_changed
        row["changes"] += is_changed
        row["visits"] += 1
        row["misses"] = row["misses"] + 1 if gone else 0
        row["parsed"] |= page.is_parsed
        row |= {"visited_at_ms": page.at_ms} if page.is_revisit else {**stored, "visited_at_ms": 0}
        if self.revisit.policy == "proportional":
            period = row["period_min"] * 60 or self.revisit.interval_s
            period *= self.revisit.shorten if is_changed else self.revisit.lengthen
            bounded = min(max(period, self.revisit.interval_min_s), self.revisit.interval_max_s)
            row["period_min"] = math.ceil(bounded / 60)

    def end_turn(self, block_urls: list[str], asked: dict[str, Page]) -> None:
        """Dates count from the next turn of their block on."""
        for page in asked.values():
            for url, lastmod_s in page.lastmods.items():
                self.waiting[url] = max(self.waiting.get(url, 0), lastmod_s)
        for url in block_urls:
            self.lastmods[url] = max(self.lastmods.get(url, 0), self.waiting.pop(url, 0))

    def miss(self, url: str, at_ms: int) -> None:
        if url in self.known:
            self.known[url]["misses"] += 1
            self.known[url]["visited_at_ms"] = at_ms


def complete(page: Page, cycle: int, is_known: bool) -> Page:
    """As the extractor writes it: with a time, and no content in a revisit record."""
    has_time = page.outcome == ANSWERED or page.at_ms % 2
    at_ms = NOW_MS + cycle * 10**7 + page.at_ms if has_time else 0
    is_revisit = page.is_revisit and is_known
    digest = NO_CONTENT if is_revisit else page.digest
    lastmods = {url: NOW_MS // 1000 + later_s for url, later_s in page.lastmods.items()}
    return replace(
        page,
        at_ms=at_ms,
        is_revisit=is_revisit,
        digest=digest,
        is_parsed=page.is_parsed and not is_revisit,
        links=list(lastmods),
        lastmods=lastmods,
    )


@settings(
    max_examples=sampling.examples(12), suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)  # shrinking a story of turns takes longer than reading it
@given(st.data())
def test_visits_agree_with_a_model(monkeypatch, data):
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(walk, "ARRIVED_ROW_BYTES", data.draw(st.sampled_from([480, 400 << 20])))
        monkeypatch.setattr(walk, "PARENT_ROW_BYTES", data.draw(st.sampled_from([50, 400 << 20])))
        policy = data.draw(st.sampled_from(["none", "uniform", "proportional", "optimal"]))
        config = Config(revisit=replace(REVISIT, policy=policy))
        small, model = SmallCrawl(Path(folder) / "crawl", data.draw(st.integers(1, 2)), config), Model(config.revisit)
        small.seed(URLS)
        small.absorb_all()
        for _ in range(data.draw(st.integers(2, 6))):
            blocks = small.crawl_state.log.blocks
            if data.draw(st.integers(0, 5)) == 0:
                small.grow(block_to_split(blocks))
                continue
            block, cycle = data.draw(st.integers(0, blocks - 1)), small.crawl_state.next_cycle()
            own = [url for url in URLS if block_of(small.keyed(url)["domain_key"], blocks) == block]
            asked = data.draw(st.dictionaries(st.sampled_from(own), pages)) if own else {}
            asked = {url: complete(page, cycle, url in model.known) for url, page in asked.items()}
            _, report = turn(small, asked, block)
            answered = {url: page for url, page in asked.items() if page.outcome == ANSWERED}
            again = {url: page for url, page in answered.items() if url in model.known}
            assert report["revisited"] == len(again) == report["changed"] + report["unchanged"]
            assert report["gone"] == sum(page.status in (404, 410) for page in again.values())
            assert report["missed"] == len((asked.keys() - answered.keys()) & model.known.keys())
            for url, page in asked.items():
                if url in answered:
                    model.answer(url, page, cycle)
                else:
                    model.miss(url, page.at_ms or NOW_MS)
            model.end_turn(own, asked)
        found = sides(small)
        assert {url: {**row, "row": 0, "duplicate": 0} for url, row in found.items()} == {
            url: {**row, "row": 0, "duplicate": 0} for url, row in model.known.items()
        }
        assert find_wrong(small) == {}
        rows = small.rows()
        assert {url: rows[url]["lastmod_s"] for url in model.lastmods} == model.lastmods
        assert claims_of(small) == {server: tuple(claims) for server, claims in model.claims.items()}
        assert sum(manifest["visits"] for manifest in manifests(small)) == sum(row["visits"] for row in found.values())
        assert sum(manifest["changes"] for manifest in manifests(small)) == sum(
            row["changes"] for row in found.values()
        )
        if policy == "none":
            assert {manifest["revisit_due_ms"] for manifest in manifests(small)} == {None}


@given(
    st.integers(0, 2**32 - 1).flatmap(lambda claims: st.tuples(st.just(claims), st.integers(0, claims))),
    st.lists(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=20), max_size=5),
    st.booleans(),
)
def test_counts_of_claims_keep_their_bounds(before, pieces, begins_full):
    """However many are tested: true <= all <= the largest of the column, and trust is between 0 and 1."""
    servers = ServerTable(BLOCK_SERVERS.empty_table(), np.arange(3, dtype=np.uint64), np.arange(3, dtype=np.uint64))
    most = 2**32 - 1
    servers["lastmod_claims"][0], servers["lastmod_true"][0] = (most, most - 2) if begins_full else before
    wanted = [[int(servers[name][server]) for server in range(3)] for name in ("lastmod_claims", "lastmod_true")]
    for piece in pieces:
        servers.add_claims(
            np.array([server for server, _ in piece], np.int32), np.array([is_true for _, is_true in piece], bool)
        )
        for server, is_true in piece:
            wanted[0][server] += 1
            wanted[1][server] += is_true
    claims, true = servers["lastmod_claims"], servers["lastmod_true"]
    assert [claims.tolist(), true.tolist()] == [[min(number, most) for number in column] for column in wanted]
    assert claims.dtype == true.dtype == np.uint32 and (true <= claims).all()
    trust = trust_of(claims, true)
    assert ((trust > 0) & (trust < 1)).all()


def test_every_outcome_of_a_revisit_moves_its_due_time(tmp_path):
    """Else the block would be due again at once, for the same page."""
    url, config = URLS[0], Config(revisit=replace(REVISIT, policy="uniform"))
    small = SmallCrawl(tmp_path / "crawl", 1, config)
    small.seed([url])
    small.absorb_all()
    turn(small, {url: Page(at_ms=NOW_MS - 10**9)})
    due = manifests(small)[0]["revisit_due_ms"]
    assert due <= NOW_MS
    for page in (
        Page(FAILED, "dns", at_ms=0),
        Page(REFUSED, "forbidden_address", at_ms=0),
        Page(at_ms=NOW_MS + 1, is_revisit=True, is_parsed=False),
        Page(at_ms=NOW_MS + 2, status=404),
        Page(at_ms=NOW_MS + 3),
    ):
        turn(small, {url: page})
        assert manifests(small)[0]["revisit_due_ms"] > NOW_MS
