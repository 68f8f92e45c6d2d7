"""Pages that are visited again, whose links count once; links to other domains; duplicates that are not followed."""

from dataclasses import replace

import pytest

from contract import names
from contract.config import Config, Scheduler
from contract.policy_files import digest
from contract.tables import ANSWERED, EXTRACTED, REJECTED, UNKNOWN_DIGEST
from contract.trouble import TRUNCATED
from examine.cycle_books import check_links
from examine.findings import Findings
from storage.errors import Damaged
from storage.tables import read_table
from tests.extractor_lab import KEYS, Cycle, Tables, WarcFile, alone, coletor, configured, http, page_file
from tests.stages.test_extractor_cycle import HOME, SITE, assert_books

PAGE = b"<a href=/x>x</a><a href=http://www.example.com/y>y</a><a href=http://other.org/>o</a>"
TARGETS = {SITE + "/x", "http://www.example.com/y", "http://other.org/"}
NO_DUPLICATES = configured("extractor", follow_duplicates=False)


def given(tables: Tables, name: str) -> dict[str, int]:
    return {url: row[name] for url, row in tables.by_url(names.EXTRACTED).items()}


def assert_check_agrees(tables: Tables) -> None:
    """bin/check proves the books of links, and finds it out where one is wrong."""
    extracted, rejected = (
        read_table(tables.folder / name, schema)
        for name, schema in ((names.EXTRACTED, EXTRACTED), (names.REJECTED, REJECTED))
    )
    findings = Findings()
    check_links(tables.folder, extracted, rejected, tables.counts, findings)
    assert not findings.wrong and len(findings.checked) == 6
    for name in ("followed_again", "mentions_sum", "duplicate_page"):
        findings = Findings()
        check_links(tables.folder, extracted, rejected, {**tables.counts, name: tables.counts[name] + 1}, findings)
        assert findings.wrong, name


def test_a_counted_page_brings_urls_and_edges_and_gives_nothing(tmp_path):
    file = page_file({HOME: PAGE + b"<a href=/new>", SITE + "/b": PAGE})
    listed = {HOME: 0, SITE + "/b": 3}
    cycle = Cycle(tmp_path / "crawl", listed, file, cash=dict.fromkeys(listed, 1000), counted=frozenset([HOME]))
    tables = cycle.extract()
    assert_books(tables)
    assert_check_agrees(tables)
    assert given(tables, "links_in") == {**dict.fromkeys(TARGETS, 1), SITE + "/new": 0}
    assert given(tables, "mentions") == {**dict.fromkeys(TARGETS, 0), SITE + "/new": 0, "http://other.org/": 1}
    assert given(tables, "cash") == {**dict.fromkeys(TARGETS, 333), SITE + "/new": 0}
    assert set(given(tables, "depth").values()) == {1}, "a counted page is as near to a seed as before"
    collected = tables.by_url(names.COLLECTED)
    assert (collected[HOME]["cash_taken"], collected[SITE + "/b"]["cash_taken"]) == (0, 999)
    assert (tables.counts["followed"], tables.counts["followed_again"], tables.counts["mentions_sum"]) == (7, 4, 1)
    assert sum(row["followed"] for row in tables.rows(names.LINKS)) == 7


def test_a_page_gives_the_terms_of_its_text_and_reads_no_file_that_the_policy_has_for_others(tmp_path):
    """A file of ranks may have gigabytes, and its digest takes time in each cycle."""
    terms = b"drinking water\nwater\n"
    copy = tmp_path / "focused" / names.FILES / f"{digest(terms)}.txt"
    focused = replace(Config(), scheduler=Scheduler(policy="focused", terms_file=str(copy)))
    file = page_file({HOME: b"<p>Drinking water <a href=/x>", SITE + "/b": b"<p>Nothing <a href=/x><a href=/y>"})
    cycle = Cycle(tmp_path / "focused", {HOME: 0, SITE + "/b": 3}, file, config=focused)
    with pytest.raises(Damaged, match=copy.name):
        cycle.extract()
    copy.parent.mkdir()
    copy.write_bytes(terms)
    assert given(cycle.extract(), "relevance") == {SITE + "/x": 2, SITE + "/y": 0}
    ranked = replace(Config(), scheduler=Scheduler(policy="pagerank", ranks_file=f"/lost/{digest(b'')}.npy"))
    tables = Cycle(tmp_path / "ranked", {HOME: 0}, page_file({HOME: PAGE}), config=ranked).extract()
    assert set(given(tables, "relevance").values()) == {0}


def test_a_page_mentions_other_registered_domains_only(tmp_path):
    tables = alone(tmp_path, page_file({HOME: PAGE, "http://www.example.com/": PAGE, "http://a.co.uk/": PAGE}))
    assert given(tables, "mentions") == {
        SITE + "/x": 0,
        "http://a.co.uk/x": 0,
        "http://www.example.com/x": 0,
        "http://www.example.com/y": 1,
        "http://other.org/": 3,
    }


def test_links_are_counted_by_registered_domain(tmp_path):
    html = (
        PAGE + b"<a href=http://other.org/#t>twice</a><a href=http://bad.org/>out of scope</a>"
        b"<a rel=nofollow href=http://third.org/>n</a><img src=http://fourth.org/i.png><a href='mailto:a'>"
        b"<img src=http://www.example.com/i.png>"
    )
    config = configured("scope", reject_domains=("bad.org",))
    row = alone(tmp_path, page_file({HOME: html}), config=config).by_url(names.METADATA)[HOME]
    assert (row["links_inside"], row["links_outside"]) == (1, 6)
    assert (row["links_own_domain"], row["links_other_domains"]) == (3, 2), "other.org and bad.org"
    config = configured("extractor", obey_nofollow=False)
    row = alone(tmp_path, page_file({HOME: html}), config=config, out="all").by_url(names.METADATA)[HOME]
    assert row["links_other_domains"] == 3, "third.org too"


def test_sitemaps_of_robots_txt_are_mentions_of_other_domains(tmp_path):
    file = WarcFile().robots(SITE, b"Sitemap: http://other.org/map.xml\nSitemap: http://www.example.com/map.xml\n")
    assert given(alone(tmp_path, file), "mentions") == {
        "http://other.org/map.xml": 1,
        "http://www.example.com/map.xml": 0,
    }


# --- answers to revisits ---


def test_answers_to_revisits(tmp_path):
    """A changed page, one that was truncated, one whose reader fails, and one that is gone."""
    file = WarcFile().answer(HOME, http(PAGE))
    file.add(
        "response",
        SITE + "/cut",
        http(b"<a href=/whole></a><a href=/ha"),
        WARC_Truncated="length",
        **coletor(ANSWERED, "", 30, True, "", ""),
    )
    file.answer(SITE + "/gone", http(b"<a href=/y>", 404))
    listed = dict.fromkeys((HOME, SITE + "/cut", SITE + "/gone"), 0)
    tables = Cycle(tmp_path / "crawl", listed, file, counted=frozenset(listed)).extract()
    assert_books(tables)
    metadata = tables.by_url(names.METADATA)
    assert {url: (row["parsed"], row["revisit"], row["trouble"]) for url, row in metadata.items()} == {
        HOME: (True, False, ""),
        SITE + "/cut": (True, False, TRUNCATED),
        SITE + "/gone": (False, False, ""),
    }
    assert all(row["content_digest"] != UNKNOWN_DIGEST for row in metadata.values())
    assert set(given(tables, "links_in").values()) == {0} and SITE + "/whole" in given(tables, "links_in")
    assert tables.counts["followed_again"] == tables.counts["followed"] > 3 and tables.counts["links_in_sum"] == 0


# --- duplicates ---


def test_links_of_a_page_whose_content_came_before_are_not_followed(tmp_path):
    pages = {HOME: b"<a href=a>", SITE + "/1/": b"<a href=b>", SITE + "/2/": b"<a href=a>", SITE + "/3/": b"<a href=b>"}
    cycle = Cycle(tmp_path / "crawl", dict.fromkeys(pages, 0), page_file(pages), config=NO_DUPLICATES)
    tables = cycle.extract()
    assert_books(tables)
    assert_check_agrees(tables)
    assert set(given(tables, "links_in")) == {SITE + "/a", SITE + "/1/b"}
    assert (tables.counts["followed"], tables.counts["duplicate_page"]) == (2, 2)
    edges = {(row["from_key"], row["to_key"]): row["followed"] for row in tables.rows(names.LINKS)}
    assert edges == {
        (KEYS.of(HOME), KEYS.of(SITE + "/a")): True,
        (KEYS.of(SITE + "/1/"), KEYS.of(SITE + "/1/b")): True,
        (KEYS.of(SITE + "/2/"), KEYS.of(SITE + "/2/a")): False,
        (KEYS.of(SITE + "/3/"), KEYS.of(SITE + "/3/b")): False,
    }


def test_by_default_duplicates_are_followed(tmp_path):
    tables = alone(tmp_path, page_file({SITE + f"/{number}/": b"<a href=a>" for number in range(3)}))
    assert (tables.counts["followed"], tables.counts["duplicate_page"]) == (3, 0)


def test_without_a_crawl_only_earlier_pages_are_known(tmp_path):
    pages = {SITE + f"/{number}/": b"<a href=a>" for number in range(3)}
    config = configured("extractor", follow_duplicates=False, keep_links="all")
    tables = alone(tmp_path, page_file(pages), config=config)
    assert (tables.counts["followed"], tables.counts["duplicate_page"]) == (1, 2)
    assert {row["url"] for row in tables.rows(names.TARGETS)} == {SITE + "/1/a", SITE + "/2/a"}


def test_a_content_that_another_page_of_the_block_has_is_known(tmp_path):
    pages = {HOME: b"<a href=a>", SITE + "/1/": b"<a href=b>", SITE + "/2/": b"<a href=c>", SITE + "/3/": b"<a href=d>"}
    known = {
        "http://elsewhere.org/": pages[HOME],
        SITE + "/1/": pages[SITE + "/1/"],  # itself
        SITE + "/2/": b"as it was",  # changed
        SITE + "/old": b"<a href=z>",
    }
    cycle = Cycle(
        tmp_path / "crawl", dict.fromkeys(pages, 0), page_file(pages), config=NO_DUPLICATES, known_pages=known
    )
    tables = cycle.extract()
    assert_books(tables)
    assert set(given(tables, "links_in")) == {SITE + "/1/b", SITE + "/2/c", SITE + "/3/d"}
    assert tables.counts["duplicate_page"] == 1


def test_a_page_that_is_answered_again_with_its_own_content_is_followed_beside_its_copies(tmp_path):
    known = dict.fromkeys((HOME, "http://copy.org/"), b"<a href=a>")
    file = page_file({HOME: b"<a href=a>", SITE + "/new/": b"<a href=a>"})
    tables = Cycle(
        tmp_path / "crawl", {HOME: 0, SITE + "/new/": 0}, file, config=NO_DUPLICATES, known_pages=known
    ).extract()
    assert set(given(tables, "links_in")) == {SITE + "/a"} and tables.counts["duplicate_page"] == 1


def test_redirects_errors_and_empty_pages_are_no_duplicates(tmp_path):
    file = WarcFile()
    for path in ("/1", "/2"):
        file.answer(SITE + path, http(b"", 301, "text/html", f"Location: {path}/moved"))
        file.answer(SITE + path + "e", http(b"", 200, "text/html", f"Link: <{path}/next>; rel=next"))
    tables = alone(tmp_path, file, config=NO_DUPLICATES)
    assert set(given(tables, "links_in")) == {
        SITE + f"/{number}/{word}" for number in (1, 2) for word in ("moved", "next")
    }


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.sampled(1)
def test_the_same_bytes_with_any_number_of_workers(tmp_path, workers):
    pages = {SITE + f"/{number}/": b"<a href=a>%d" % (number % 40) for number in range(200)}
    files = [page_file(dict(list(pages.items())[start::3])) for start in range(3)]
    results = []
    for count in (1, workers):
        config = configured("extractor", follow_duplicates=False, workers=count)
        tables = alone(tmp_path, *files, config=config, out=f"out{len(results)}")
        assert (tables.counts["followed"], tables.counts["duplicate_page"]) == (40, 160)
        results.append({name: data for name, data in tables.files().items() if name.endswith(".parquet")})
    assert results[0] == results[1]


def test_a_damaged_generation_is_named(tmp_path):
    known = {f"http://h{number}.org/": b"%d" % number for number in range(50)}
    cycle = Cycle(tmp_path / "crawl", {HOME: 0}, page_file({HOME: PAGE}), config=NO_DUPLICATES, known_pages=known)
    path = cycle.crawl.path / names.generation(0, 2) / "collected_content_digest.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(Damaged, match="collected_content_digest"):
        cycle.extract()
