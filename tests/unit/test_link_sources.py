"""Link sources: which URLs they are, that the scope accepts them, and how blocks count them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from contract import names
from contract.config import Config, Extractor, Scope
from contract.config_check import from_tables
from contract.errors import BadConfiguration
from contract.generation import open_generation
from contract.policies import columns_read, describe, features_of
from contract.scope import rules
from contract.scope.link_sources import LinkSources
from contract.scope.requisites import Requisites
from contract.tables import STATES
from contract.url import Keys
from examine.findings import Findings
from examine.link_source_books import KNOWN, check_known
from examine.link_sources import leave_out, mark_collected
from examine.tables.link_sources import IsLinkSource
from storage.publish import encode_json, read_json
from tests.small_crawl import Page, SmallCrawl
from tests.visited_pages import find_wrong, manifests, turn

KEYS = Keys(17)
HOME, ABROAD, FOLDER = "https://a.br/x", "http://www.dir.org/list?page=2", "https://big.com/links/br/3"
SOURCES = ("org,dir,", "com,big)/links/")
NATIONAL = Scope(accept_suffixes=("br",), link_sources=SOURCES)


def config_of(scope: Scope = NATIONAL) -> Config:
    return replace(Config(), scope=scope)


def count_states(**counts: int) -> dict[str, int]:
    return dict.fromkeys(STATES, 0) | counts


@pytest.mark.parametrize(
    "url, is_named",
    [
        (ABROAD, True),
        ("http://dir.org:8080/", True),
        ("http://mydir.org/", False),
        (FOLDER, True),
        ("http://big.com/links/", True),
        ("http://big.com/link", False),
        ("http://www.big.com/links/", False),
        (HOME, False),
    ],
)
def test_prefixes_and_seeds(url, is_named):
    sources = LinkSources(NATIONAL)
    assert sources and sources.names(url) == sources.takes(url, 0) == sources.takes(url, 3) == is_named
    with_seeds = LinkSources(replace(NATIONAL, seeds_are_link_sources=True))
    assert with_seeds.takes(url, 0) and with_seeds.takes(url, 1) == is_named
    of_seeds = LinkSources(Scope(seeds_are_link_sources=True))
    assert of_seeds and of_seeds.takes(url, 0) and not of_seeds.takes(url, 1)
    assert with_seeds.mark([url, url], [0, 1]).tolist() == [True, is_named]
    assert not LinkSources(Scope(accept_suffixes=("br",)))


def test_servers_and_paths():
    sources = LinkSources(NATIONAL)
    assert sources.takes_server("http://www.dir.org") and not sources.takes_server("https://big.com")
    assert sources.paths_of("https://big.com") == ("/links/",) and sources.paths_of("https://a.br") == ()


@pytest.mark.parametrize(
    "url, settings, rule",
    [
        (ABROAD, {}, ""),
        (FOLDER, {}, ""),
        ("https://big.com/", {}, "accept"),
        ("https://c.com/", {}, "accept"),
        (HOME, {}, ""),
        (ABROAD, {"accept_suffixes": ()}, ""),
        ("https://c.com/", {"accept_suffixes": ()}, ""),  # no accept_ list: everything, not link sources alone
        ("https://big.com/", {"accept_suffixes": ()}, ""),
        (FOLDER, {"accept_suffixes": (), "accept_patterns": ("/x$",)}, ""),
        (HOME, {"accept_suffixes": (), "accept_patterns": ("/x$",)}, ""),
        ("https://big.com/", {"accept_suffixes": (), "accept_patterns": ("/x$",)}, "accept"),
        (ABROAD, {"reject_domains": ("dir.org",)}, "reject_domains"),
        (FOLDER, {"reject_surts": ("com,big)/links/br/",)}, "reject_surts"),
        ("http://dir.org/x.zip", {}, "reject_extensions"),
        ("http://dir.org/2087/05/", {}, "calendar_years_max"),
    ],
)
def test_the_scope_accepts_them_and_all_that_rejects_holds(url, settings, rule):
    assert rules.Scope(replace(NATIONAL, **settings), KEYS, 2026).judge(url) == rule


def test_a_link_source_has_no_requisites():
    config = replace(config_of(), extractor=Extractor(requisites=("image",)))
    requisites = Requisites(config, rules.Scope(config.scope, KEYS), KEYS, 2026)
    assert requisites.kinds_from(HOME, 1) and not requisites.kinds_from(ABROAD, 1)


@pytest.mark.parametrize(
    "table, told",
    [
        ({"link_sources": ["org.dir"]}, r"\[scope\] link_sources: expected SURT prefixes, as in .*, found 'org.dir'"),
        ({"link_sources": "org,dir,"}, r"\[scope\] link_sources: expected a list of strings"),
        ({"link_source": ["org,dir,"]}, r"\[scope\] link_source: no such key; did you mean link_sources\?"),
        ({"seeds_are_link_sources": 1}, r"\[scope\] seeds_are_link_sources: expected true or false, found 1"),
    ],
)
def test_bad_settings_are_told_as_those_of_accept_surts(table, told):
    with pytest.raises(BadConfiguration, match=told):
        from_tables({"scope": table}, "mine.toml")


def test_what_a_block_is_prepared_for():
    """A crawl without link sources is prepared as it was before there were any, and has no column more."""
    plain, named = config_of(Scope(accept_suffixes=("br",))), config_of()
    assert "link_source" not in repr(plain.scope)
    described = [describe(one, {}) for one in (plain, named)]
    assert described[0]["scope"] != described[1]["scope"]
    assert {one.name for one in features_of(named)} - {one.name for one in features_of(plain)} == {"link_source"}
    assert columns_read(named) == columns_read(plain), "no score reads it"
    other = describe(config_of(replace(NATIONAL, link_sources=SOURCES[:1])), {})
    assert other["features"] != described[1]["features"]
    of_seeds = describe(config_of(Scope(accept_suffixes=("br",), seeds_are_link_sources=True)), {})
    assert of_seeds["scope"] != described[0]["scope"] and of_seeds["features"] == described[0]["features"]


@pytest.fixture
def small(tmp_path) -> SmallCrawl:
    """A seed of the collection, and a directory that leads to two pages of it and to one of its own."""
    crawl = SmallCrawl(tmp_path / "crawl", 1, config_of())
    crawl.seed([HOME, ABROAD])
    crawl.absorb_all()
    links = ["https://a.br/y", "https://b.br/", "http://www.dir.org/list?page=3"]
    turn(crawl, {HOME: Page(), ABROAD: Page(links=links)})
    return crawl


def test_blocks_count_them_by_state(small):
    (manifest,) = manifests(small)
    assert manifest["known"] == 5 and manifest["link_sources"] == count_states(prescheduled=1, collected=1)
    figures = leave_out(manifest)
    assert {name: figures[name] for name in ("known", "collected", "waiting")} == {
        "known": 3,
        "collected": 1,
        "waiting": 2,
    }
    assert sum(figures["states"].values()) == 3 and figures["link_sources"]["known"] == 2
    assert find_wrong(small) == {} == wrong_counts(small)


def test_a_page_that_is_chosen_among_too_many_counts_as_prescheduled(tmp_path):
    config = config_of()
    config = replace(config, verifier=replace(config.verifier, prescheduled_max=2, prescheduled_refill=1))
    crawl = SmallCrawl(tmp_path / "crawl", 1, config)
    crawl.seed([f"http://dir.org/{number}" for number in range(5)])
    crawl.absorb_all()
    (manifest,) = manifests(crawl)
    assert manifest["link_sources"] == manifest["states"] == count_states(prescheduled=2, waiting=3)


def test_the_present_configuration_decides(small):
    """Each change is another preparation; without any, no column and no count is left."""
    counted = {}
    for name, scope in {
        "fewer": replace(NATIONAL, link_sources=("org,dir,www)/list?page=2",)),
        "seeds too": replace(NATIONAL, seeds_are_link_sources=True),
        "seeds alone": Scope(accept_suffixes=("br", "org"), seeds_are_link_sources=True),
        "none": Scope(accept_suffixes=("br",)),
    }.items():
        small.config = config_of(scope)
        small.crawl_state.wanted = describe(small.config, {})
        assert not small.crawl_state.is_prepared(0)
        small.absorb(0)
        assert small.crawl_state.is_prepared(0) and find_wrong(small) == {} == wrong_counts(small)
        (manifest,) = manifests(small)
        counted[name] = manifest.get("link_sources"), manifest["states"]["refused_by_rule"]
    assert counted == {
        "fewer": (count_states(collected=1), 1),  # page 3 is out of scope now
        "seeds too": (count_states(prescheduled=1, collected=2), 0),
        "seeds alone": (count_states(collected=2), 0),
        "none": (None, 1),
    }
    folder = small.crawl.path / names.generation(0, small.crawl_state.log.generation(0))
    assert not list(folder.glob("link_source*")), "a column of zeros has no file"


def test_a_split_and_a_block_that_forgets_count_them(small):
    revisit = replace(Config().revisit, policy="uniform", forget_after_days=20)
    small.config = replace(small.config, revisit=revisit)
    small.absorb(0)
    small.forget(0, 1_800_000_000_000 + 30 * 86_400_000)
    (manifest,) = manifests(small)
    assert manifest["known"] == 2 and manifest["link_sources"] == count_states(collected=1), "only seeds stay"
    small.grow(0)
    halves = manifests(small)
    assert len(halves) == 2 and wrong_counts(small) == {}
    assert sum(half["link_sources"]["collected"] for half in halves) == 1


def test_books_find_other_counts(small):
    path = small.crawl.path / names.generation(0, small.crawl_state.log.generation(0)) / names.MANIFEST
    content = read_json(path)
    content["link_sources"]["collected"] += 1
    path.write_bytes(encode_json(content))
    assert list(wrong_counts(small)) == [KNOWN]


def wrong_counts(small: SmallCrawl) -> dict[str, list[str]]:
    findings = Findings()
    for block in range(small.crawl_state.log.blocks):
        number = small.crawl_state.log.generation(block)
        generation = open_generation(small.crawl.path, block, number)
        check_known(small.crawl.path, generation, small.crawl.path / names.generation(block, number), findings)
    return findings.wrong


def test_questions_know_seeds_by_their_keys(small):
    scope = Scope(seeds_are_link_sources=True)
    urls, keyed = [HOME, "https://b.br/", ABROAD], [small.keyed(url) for url in (HOME, "https://b.br/", ABROAD)]
    columns = [pa.array([row[name] for row in keyed], pa.uint64()) for name in ("domain_key", "url_key")]
    judge = IsLinkSource(small.crawl.path, {0: small.crawl_state.log.generation(0)}, LinkSources(scope))
    assert judge(pa.array(urls), *columns).to_pylist() == [True, False, True]
    assert judge(pa.array([], pa.string()), *(values.slice(0, 0) for values in columns)).to_pylist() == []


def test_what_the_list_did_not_have_counts_as_no_seed():
    row = {"url": HOME, "depth": 0, "foreign": False}
    table = pa.Table.from_pylist([row, {**row, "foreign": True}, {**row, "depth": 1}])
    assert mark_collected(LinkSources(Scope(seeds_are_link_sources=True)), table).tolist() == [True, False, False]


def test_rows_are_marked_by_column_and_depth():
    named, depths = np.array([0, 1, 0, 1], np.uint8), np.array([0, 0, 2, 2], np.uint8)
    assert LinkSources(NATIONAL).mark_rows(named, depths).tolist() == [False, True, False, True]
    with_seeds = LinkSources(replace(NATIONAL, seeds_are_link_sources=True))
    assert with_seeds.mark_rows(named, depths).tolist() == [True, True, False, True]
