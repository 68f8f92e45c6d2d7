"""A block whose configuration was changed: its next turn computes what it lacks, and judges known URLs again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contract import names
from contract.config import Blocks, Budget, Config, Priority, Scheduler, Scope, Verifier
from contract.generation import open_generation, read_generation_manifest, read_urls
from contract.log import CRAWL
from contract.policies import FEATURES, POLICIES, describe
from contract.policy_files import adopt, files_of
from examine.tables.views import Views
from stages.verifier import preparation, walk
from stages.verifier.__main__ import work
from stages.verifier.rebuild import rebuild_block
from storage.publish import read_manifest
from storage.tables import column
from tests.small_crawl import Page, SmallCrawl

HOSTS = [f"http://www.h{number}.test" for number in range(6)]
PAGES = [f"{host}/{path}" for host in HOSTS for path in ("", "a", "a/b", "a/b/c?x=1", "news/2", "image.gif")]
PATHS = [f"/p{number}" for number in range(40)]
# What files of policies hold; others are not given.
FILES = {"scheduler.ranks_file": f"{HOSTS[1]}/a 0.5\n{HOSTS[0]} 0.25\n", "scheduler.terms_file": "news\n"}
SHORTEST = Config(verifier=Verifier(prescheduled_max=3, prescheduled_refill=2))


def with_policy(policy: str, config: Config = SHORTEST, **more) -> Config:
    return replace(config, scheduler=replace(config.scheduler, policy=policy, **more))


def make(folder: Path, config: Config = SHORTEST) -> SmallCrawl:
    """A block with some hundred URLs: one host has many more than may be prescheduled."""
    crawl = SmallCrawl(folder, 1, config)
    crawl.config = adopt(crawl.crawl, config)
    crawl.seed([f"{host}/" for host in HOSTS])
    crawl.absorb_all()
    turn(crawl, [*PAGES, *(HOSTS[0] + path for path in PATHS)])
    return crawl


def turn(crawl: SmallCrawl, links: list[str]) -> dict:
    plan = crawl.plan(CRAWL, 0)
    crawl.harvest(plan, {url: Page(links=links) for url in crawl.schedule(plan)[:2]})
    return crawl.verify(plan)


def folder_of(crawl: SmallCrawl, block: int = 0) -> Path:
    return crawl.crawl.path / names.generation(block, crawl.crawl_state.log.generation(block))


def prepared(crawl: SmallCrawl, block: int = 0) -> dict:
    return read_generation_manifest(folder_of(crawl, block))["prepared"]


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def states(crawl: SmallCrawl) -> dict[str, str]:
    return {url: row["state"] for url, row in crawl.rows().items()}


def features(crawl: SmallCrawl) -> dict[str, dict[str, int]]:
    """Of each known URL of block 0 its features."""
    generation = open_generation(crawl.crawl.path, 0, crawl.crawl_state.log.generation(0))
    urls = read_urls(crawl.crawl.path, generation, np.arange(len(generation)))
    columns = {name: generation.rows[name].tolist() for name in FEATURES}
    return {url: {name: columns[name][row] for name in columns} for row, url in enumerate(urls)}


@pytest.fixture(scope="module")
def before(tmp_path_factory) -> SmallCrawl:
    return make(tmp_path_factory.mktemp("before") / "crawl")


def test_generations_say_what_they_are_prepared_for(before):
    assert prepared(before) == describe(SHORTEST, {})
    assert "prepared" not in before.copy(before.crawl.path.with_name("again")).absorb(0)


@pytest.mark.parametrize("policy", [name for name in POLICIES if name not in ("shortest-path", "pagerank")])
def test_a_change_of_policy_and_back(before, tmp_path, policy):
    """The turn computes what a crawl under that policy would have; back, all is as before."""
    crawl, given = before.copy(tmp_path / "crawl"), with_policy(policy)
    for section, _, name in (file.key.partition(".") for file in POLICIES[policy].files if file.key in FILES):
        (tmp_path / name).write_text(FILES[f"{section}.{name}"])
        given = with_policy(policy, given, **{name: str(tmp_path / name)})
    crawl.config = adopt(crawl.crawl, given)
    report = crawl.absorb(0)
    needed = sorted(feature.name for feature in POLICIES[policy].features)
    missing = [name for name in needed if name != "levels"]  # which shortest-path needs too
    assert report["prepared"] == {"features": missing, "judged_again": 0, "refused_again": 0, "waiting_again": 0}
    assert prepared(crawl) == describe(crawl.config, files_of(crawl.crawl.path, crawl.config))
    for url, values in features(crawl).items():
        assert [name for name, value in values.items() if value] in ([], needed), url
    if policy not in ("fifo", "spread", "new-domains"):  # they depend on when a URL came, or close domains
        assert features(crawl) == features(make(tmp_path / "other", given))
    crawl.config = SHORTEST
    report = crawl.absorb(0)
    assert report["prepared"]["features"] == ([] if "levels" in needed else ["levels"])
    assert crawl.rows() == before.rows()
    assert "prepared" not in crawl.absorb(0)


def test_pageranks_come_from_the_crawls_own_copy(before, tmp_path):
    crawl = before.copy(tmp_path / "crawl")
    ranks = tmp_path / "ranks.txt"
    ranks.write_text(f"{HOSTS[1]}/a\t0.5\n{HOSTS[0]}/\t0.25\n")
    crawl.config = adopt(crawl.crawl, with_policy("pagerank", ranks_file=str(ranks)))
    ranks.unlink()
    crawl.absorb(0)
    assert prepared(crawl) == describe(crawl.config, files_of(crawl.crawl.path, crawl.config))
    assert {url for url, row in features(crawl).items() if row["rank"]} == {f"{HOSTS[1]}/a", f"{HOSTS[0]}/"}
    kept = content(folder_of(crawl))
    for path in folder_of(crawl).glob("rank*"):
        path.write_bytes(b"damaged")
    rebuild_block(crawl.crawl, crawl.history(), 0)
    assert content(folder_of(crawl)) == kept


@pytest.mark.parametrize("policy", ["spread", "new-domains", "in-links", "fifo"])
@pytest.mark.sampled(2)
def test_a_rerun_and_any_number_of_pieces_give_the_same_bytes(before, tmp_path, monkeypatch, policy):
    """A crawl turn takes in new URLs while the block is prepared; then one more turn."""
    found = []
    for number, (read_at_once, row_bytes) in enumerate([(1 << 18, walk.ARRIVED_ROW_BYTES), (7, 1 << 26)]):
        monkeypatch.setattr(preparation, "READ_AT_ONCE", read_at_once)
        monkeypatch.setattr(walk, "ARRIVED_ROW_BYTES", row_bytes)
        crawl = before.copy(tmp_path / str(number))
        crawl.config = with_policy(policy)
        pieces = []
        for turns in range(2):
            plan = crawl.plan(CRAWL, 0)
            crawl.harvest(
                plan,
                {
                    url: Page(links=PAGES + [f"{HOSTS[2]}/{turns}/{n}" for n in range(9)])
                    for url in crawl.schedule(plan)
                },
            )
            again = tmp_path / f"again{number}-{turns}"
            work(crawl.crawl, again, plan, crawl.crawl_state.log)
            pieces.append(crawl.verify(plan)["pieces"])
            assert content(again / names.generation(0, plan.cycle)) == content(folder_of(crawl))
        assert (max(pieces) > 1) == bool(number)
        found.append(content(folder_of(crawl)))
    assert found[0] == found[1]


def test_spread_counts_what_was_known_before_the_turn(tmp_path):
    crawl = make(tmp_path / "crawl", with_policy("spread"))
    known = crawl.rows()
    new = [f"{HOSTS[0]}/new/{number}" for number in range(3)]
    turn(crawl, new)
    rows = features(crawl)
    domain = crawl.domain(f"{HOSTS[0]}/")
    others = sum(crawl.domain(url) % 257 == domain % 257 for url in known)
    ranked = sorted(rows[url]["spread"] for url in new)
    assert ranked == [100 * (others + number) + 2 for number in range(3)]


def test_children_of_a_split_are_prepared_like_their_parent(before, tmp_path):
    crawl = before.copy(tmp_path / "crawl")
    had = prepared(crawl)
    crawl.config = with_policy("fifo")
    crawl.grow(0)
    assert prepared(crawl, 0) == prepared(crawl, 1) == had
    assert crawl.absorb(0)["prepared"]["features"] == ["added"]


def test_a_rebuild_prepares_as_the_turns_did(before, tmp_path):
    crawl = before.copy(tmp_path / "crawl")
    for policy in ("new-domains", "spread"):
        crawl.config = with_policy(policy)
        turn(crawl, PAGES)
    kept = content(folder_of(crawl))
    (folder_of(crawl) / names.MANIFEST).unlink()
    for path in folder_of(crawl).glob("spread*"):
        path.unlink()
    rebuild_block(crawl.crawl, crawl.history(), 0)
    assert content(folder_of(crawl)) == kept


def test_the_scope_is_narrowed_and_widened(before, tmp_path):
    crawl = before.copy(tmp_path / "crawl")
    had = states(crawl)
    narrow = replace(SHORTEST, scope=replace(Scope(), reject_patterns=("/news/",), hops_max=1))
    crawl.config = replace(narrow, scope=replace(narrow.scope, hops_max=0))
    report = crawl.absorb(0)["prepared"]
    waiting = {url for url, state in had.items() if state in ("waiting", "prescheduled")}
    seeds = {url for url, row in crawl.rows().items() if row["depth"] == 0}
    assert report["refused_again"] == len(waiting - seeds) and report["waiting_again"] == 0
    assert {url for url, state in states(crawl).items() if state == "refused_by_rule"} == waiting - seeds
    with Views(crawl.crawl) as views:
        rows = list(views.query("select url, reason, cycle from refused").rows)
    assert {url for url, *_ in rows} == waiting - seeds and {tuple(why) for _, *why in rows} == {("scope", None)}
    crawl.config = narrow
    report = crawl.absorb(0)["prepared"]
    refused = {url for url in waiting - seeds if "/news/" in url or url.endswith(".gif")}
    assert {url for url, state in states(crawl).items() if state == "refused_by_rule"} == refused
    assert report == {
        "features": [],
        "judged_again": len(waiting - seeds),
        "refused_again": 0,
        "waiting_again": len(waiting - seeds - refused),
    }
    crawl.config = replace(SHORTEST, scope=Scope(reject_extensions=()))
    crawl.absorb(0)
    assert states(crawl) == states(before)


def test_requisites_are_not_lost(before, tmp_path):
    crawl = before.copy(tmp_path / "crawl")
    scope = Scope(accept_domains=("elsewhere.test",), reject_extensions=())
    crawl.config = replace(SHORTEST, scope=scope, extractor=replace(SHORTEST.extractor, requisites=("image",)))
    assert crawl.absorb(0)["prepared"]["refused_again"] == 0
    crawl.config = replace(SHORTEST, scope=scope)
    assert crawl.absorb(0)["prepared"]["refused_again"] > 0


def test_the_best_are_chosen_anew_when_scores_vary(before, tmp_path):
    crawl = before.copy(tmp_path / "crawl")
    crawl.config = with_policy("in-links")
    crawl.absorb(0)
    for _ in range(3):
        turn(crawl, [f"{HOSTS[0]}/p39", f"{HOSTS[0]}/p17"])
        rows = crawl.rows()
        on_host = {url: row["links_in"] for url, row in rows.items() if url.startswith(f"{HOSTS[0]}/")}
        chosen = {url for url in on_host if states(crawl)[url] == "prescheduled"}
        waiting = [on_host[url] for url in on_host if states(crawl)[url] == "waiting"]
        assert len(chosen) == 3 and min(on_host[url] for url in chosen) >= max(waiting)


def test_mentions_of_servers_are_those_of_their_rows(before, tmp_path):
    crawl = before.copy(tmp_path / "crawl")
    turn(crawl, [f"{HOSTS[1]}/a", f"{HOSTS[1]}/new"])
    generation = open_generation(crawl.crawl.path, 0, crawl.crawl_state.log.generation(0))
    wanted: dict[str, int] = {}
    for url, row in crawl.rows().items():
        server = url[: url.index("/", 8)]
        wanted[server] = wanted.get(server, 0) + row["mentions"]
    named = dict(zip(generation.servers.column("server").to_pylist(), column(generation.servers, "mentions").tolist()))
    assert named == wanted and sum(wanted.values()) > 0


def test_priorities_and_budgets_are_features_too(before, tmp_path):
    crawl = before.copy(tmp_path / "crawl")
    rules = {
        "priority": (Priority(pattern="/news/", weight=9.0),),
        "budget": (Budget(surt="test,h0,", urls=50), Budget(pattern="/a/", urls=9)),
    }
    crawl.config = replace(SHORTEST, **rules)
    assert crawl.absorb(0)["prepared"]["features"] == ["budget", "rule"]
    rows = features(crawl)
    assert {url for url, row in rows.items() if row["rule"]} == {url for url in rows if "/news/" in url}
    on_host = {url for url in rows if "h0.test" in url}
    assert {url for url, row in rows.items() if row["budget"] == 1} == on_host
    manifest = read_manifest(folder_of(crawl))
    assert {"budget", "rule"} <= set(manifest["prepared"]["features"])
    report = turn(crawl, [f"{HOSTS[0]}/more/{number}" for number in range(20)])
    assert report["refused_by_rule"]["rule_budget"] == 20 - (50 - len(on_host))


def test_a_block_that_knows_nothing_is_prepared_by_its_plan(tmp_path):
    crawl = SmallCrawl(tmp_path / "crawl", 1, replace(SHORTEST, blocks=Blocks(first=1)))
    assert "prepared" not in crawl.absorb(0)
    crawl.config = replace(SHORTEST, scheduler=Scheduler(policy="opic"))
    assert "prepared" not in crawl.absorb(0)
    assert prepared(crawl) == describe(crawl.config, {})
