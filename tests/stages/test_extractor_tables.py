"""Tables that options bring or that several pages make together.

Repeats, Alvos, anchors, fingerprints, what was rejected, and bin/check.
"""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contract import names
from contract.config import Config
from contract.log import CRAWL
from contract.plan import Plan
from contract.tables import REJECTED, TARGETS
from storage.frames import skippable
from storage.publish import describe, encode_json, publishing, read_manifest
from storage.tables import read_table, write_table
from tests.extractor_lab import Tables, WarcFile, alone, configured, http, page_file
from tests.small_crawl import SmallCrawl
from tests.unit.test_extractor_answer import REDIRECTS

ROOT = Path(__file__).resolve().parents[2]
SITE = "http://example.com"


def run(program: str, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run([ROOT / "bin" / program, *map(str, arguments)], capture_output=True, text=True)


def targets_of(tables: Tables) -> set[str]:
    return {url.removeprefix(SITE) for url in tables.by_url(names.EXTRACTED)}


def test_validators_have_no_dictionary(tmp_path):
    """The scheduler reads them of many tables, and they hardly repeat."""
    alone(tmp_path, page_file({SITE + "/": "<a href=/a>A</a>"}))
    (path,) = tmp_path.rglob(names.METADATA)
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    plain = {column.path_in_schema for column in columns if not column.has_dictionary_page}
    assert {"url_key", "url", "etag", "payload_digest"} <= plain and "type" not in plain


def test_a_page_that_links_to_itself_is_not_linked_by_that(tmp_path):
    """Most pages name themselves as canonical: none of these would ever be forgotten."""
    page = "<link rel=canonical href=/r><a href=/r#top>top</a><a href=/q>q</a>"
    rows = alone(tmp_path, page_file({SITE + "/r": page, SITE + "/s": "<a href=/q>q</a>"})).by_url(names.EXTRACTED)
    assert not rows[SITE + "/r"]["linked_day"] and rows[SITE + "/q"]["linked_day"]


def test_a_url_that_is_answered_twice_counts_once(tmp_path):
    """In one chunk and in another file, as files of other people have it.

    Anchors and all columns of links stay with their pages.
    """
    first = page_file({SITE + "/": "<a href=/a>A</a>", SITE + "/x": "<a href=/b>B</a>"})
    first.answer(SITE + "/", http(b"<a href=/second>S</a><a href=/third>T</a><a href=/x.zip>")).answer(
        SITE + "/y", http(b"<img src=/i><a href=/c>C</a>")
    )
    second = page_file({SITE + "/x": "<a href=/fourth>F</a>", SITE + "/z": "<a href=/a>Z</a>"})
    tables = alone(tmp_path, first, second, config=configured("extractor", anchor_text=True))
    assert (
        tables.counts["repeated_finals"] == 2
        and tables.counts["metadata"] == 4
        and tables.counts["link_occurrences"] == 5
    )
    assert (
        tables.counts["rejected"] == dict.fromkeys(tables.counts["rejected"], 0) and tables.rows(names.REJECTED) == []
    )
    assert targets_of(tables) == {"/a", "/b", "/c"} and tables.by_url(names.EXTRACTED)[SITE + "/a"]["links_in"] == 2
    by_key = {
        row["url_key"]: row["url"].removeprefix(SITE)
        for name in (names.METADATA, names.EXTRACTED)
        for row in tables.rows(name)
    }
    links = [
        (by_key[row["from_key"]], by_key.get(row["to_key"], "/i"), row["anchor"], row["kinds"], row["followed"])
        for row in tables.rows(names.LINKS)
    ]
    assert sorted(links) == [
        ("/", "/a", "A", 1, True),
        ("/x", "/b", "B", 1, True),
        ("/y", "/c", "C", 1, True),
        ("/y", "/i", "", 1 << 6, False),
        ("/z", "/a", "Z", 1, True),
    ]


def test_texts_that_only_a_left_out_page_told(tmp_path):
    """A worker tells the text of a URL once.

    What it told of a page or a chunk that does not count, others still need.
    """
    first = page_file({SITE + "/": "", SITE + "/x": "<a href=/b>"}).answer(SITE + "/", http(b"<a href=/needed>"))
    broken = page_file({f"{SITE}/{number}": f"<a href=/also{number}>" for number in range(200)})
    place = len(broken.members) // 4
    broken.members[place] = (
        broken.members[place][:-3] + b"???"
    )  # its frame ends where it should, and its checksum is wrong
    third = page_file({SITE + "/z": "<a href=/needed><a href=/also0><a href=/also199>"})
    tables = alone(tmp_path, first, broken, third, config=configured("extractor", workers=1))
    assert {"/needed", "/also0", "/also199", "/b"} < targets_of(tables) and "/also150" not in targets_of(tables)
    assert tables.counts["damaged_files"] == 1


def test_duplicates_are_marked(tmp_path):
    """Of the rows with the same content all but the first; revisits, whose content is not known, repeat nothing."""
    file = page_file({f"{SITE}/{name}": b"the same" for name in "abc"} | {SITE + "/d": b"another"})
    for name in "ef":
        file.add("revisit", f"{SITE}/{name}", http(b"", 304), Coletor_Final="yes", Coletor_Outcome="answered")
    rows = alone(tmp_path, file).rows(names.METADATA)
    same = [row["duplicate"] for row in rows if row["url"][-1] in "abc"]
    assert same == [False, True, True] and not any(row["duplicate"] for row in rows if row["url"][-1] in "def")


def test_targets_out_of_scope_are_kept(tmp_path):
    page = (
        "<a href=/a>A</a><a href=/b.zip>B</a><a href=http://o.org/>O</a><a href=http://o.org/ "
        "rel=nofollow>again</a><img src=/c.png><a href=mailto:x>"
    )
    pages = {SITE + "/": page, SITE + "/2": "<a href=http://o.org/><a href=http://p.org/x>"}
    for keep, links in (("in_scope", 1), ("all", 6)):
        config = replace(
            configured("scope", accept_suffixes=("com",)), extractor=replace(Config().extractor, keep_links=keep)
        )
        tables = alone(tmp_path, page_file(pages), config=config, out=keep)
        assert tables.counts["links_rows"] == len(tables.rows(names.LINKS)) == links
        assert tables.counts["followed"] == 1 and targets_of(tables) == {"/a"}
    targets = read_table(tables.folder / names.TARGETS, TARGETS).to_pylist()
    assert {row["url"] for row in targets} == {SITE + "/b.zip", "http://o.org/", SITE + "/c.png", "http://p.org/x"}
    assert [row["key"] for row in targets] == sorted(row["key"] for row in targets)
    known = {row["key"] for row in targets} | {row["url_key"] for row in tables.rows(names.EXTRACTED)}
    assert {row["to_key"] for row in tables.rows(names.LINKS)} == known
    assert not (tmp_path / "in_scope" / names.TARGETS).exists()


def test_what_was_rejected_adds_up(tmp_path):
    pages = {
        f"{SITE}/{number}": (
            "<a href=/x.zip><a href=/x.zip><a href=http://o.org/1><a href=http://o.org/2><a href=/a/a/a/a/a/a/>"
        )
        for number in range(3)
    }
    tables = alone(tmp_path, page_file(pages), config=configured("scope", accept_suffixes=("com",)))
    rows = read_table(tables.folder / names.REJECTED, REJECTED).to_pylist()
    assert [(row["server"], row["rule"], row["links"], row["example"]) for row in rows] == [
        (SITE, "reject_extensions", 3, SITE + "/x.zip"),
        (SITE, "segment_repeats_max", 3, SITE + "/a/a/a/a/a/a/"),
        ("http://o.org", "accept", 6, "http://o.org/1"),
    ]
    sums = {rule: sum(row["links"] for row in rows if row["rule"] == rule) for rule in tables.counts["rejected"]}
    assert (
        sums == tables.counts["rejected"]
        and sum(sums.values()) == tables.counts["out_of_scope"] + tables.counts["trap"]
    )


def test_near_duplicates_from_pages_to_clusters(tmp_path):
    words = [f"word{number * 7919 % 1000}" for number in range(300)]
    pages = {f"{SITE}/{name}": f"<p>{' '.join([*words, name])}</p>" for name in ("one", "two", "three")}
    pages |= {SITE + "/other": "<p>" + " ".join(f"else{number}" for number in range(300)), SITE + "/empty": ""}
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.warc.zst").write_bytes(page_file(pages).data())
    ran = run(
        "extractor", tmp_path / "pages", "--set", "extractor.near_duplicates=true", "--set", "extractor.workers=2"
    )
    assert ran.returncode == 0, ran.stderr
    rows = Tables(tmp_path / "pages" / "extractor").by_url(names.METADATA)
    assert rows[SITE + "/empty"]["fingerprint"] == 0 and rows[SITE + "/other"]["fingerprint"]
    assert all(
        (rows[SITE + "/one"]["fingerprint"] ^ rows[f"{SITE}/{name}"]["fingerprint"]).bit_count() <= 3
        for name in ("two", "three")
    )
    shown = run("show", tmp_path / "pages" / "extractor" / names.METADATA, "--near-duplicates")
    assert shown.returncode == 0, shown.stderr
    assert (
        all(f"{SITE}/{name}" in shown.stdout for name in ("one", "two", "three"))
        and f"{SITE}/other" not in shown.stdout
    )
    assert set(alone(tmp_path, page_file(pages)).by_url(names.METADATA)[SITE + "/one"].items()) >= {("fingerprint", 0)}


def test_duckdb_reads_every_table(tmp_path):
    config = replace(
        configured("scope", accept_suffixes=("com",)),
        extractor=replace(Config().extractor, keep_links="all", anchor_text=True),
    )
    tables = alone(tmp_path, page_file({SITE + "/": "<a href=/a>A</a><a href=http://o.org/>O</a>"}), config=config)
    files = sorted(tables.folder.glob("*.parquet"))
    assert len(files) == 8
    for path in files:
        rows = duckdb.sql(f"SELECT * FROM '{path}'").fetchall()
        assert bool(rows) == (path.name != names.FAILURES), path
        assert rows == [tuple(row.values()) for row in pq.read_table(path).to_pylist()], path


def test_files_with_odd_names(tmp_path):
    pages = tmp_path / "pa ges"
    pages.mkdir()
    for place, name in enumerate(
        ("ção 'x'\n.warc.zst", "-x.warc.zst", "%s.warc.gz.warc.zst", "é" * 100 + ".warc.zst", "A.WARC.ZST")
    ):
        (pages / name).write_bytes(page_file({f"{SITE}/{place}": f"<a href=/l{place}>"}).data())
    (pages / "empty.warc.zst").touch()
    (pages / "note.warc.zst").write_bytes(skippable(b"nothing"))
    ran = run("extractor", pages)
    assert ran.returncode == 0 and "4 answered" in ran.stdout, ran.stderr
    assert {row["file"][:2] for row in Tables(pages / "extractor").rows(names.METADATA)} == {"çã", "-x", "%s", "éé"}
    (pages / b"\xff\xfe.warc.zst".decode("utf-8", "surrogateescape")).touch()
    ran = run("extractor", pages, "--out", tmp_path / "again")
    assert ran.returncode == 64 and "expected a name in UTF-8" in ran.stderr and "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    "date",
    [
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "0001-01-01",
        "9999-12-31T23:59:59",
        "x",
        "",
        "1969-01-01T00:00:00Z",
    ],
)
@pytest.mark.sampled(3)
def test_dates_that_no_calendar_has(tmp_path, date):
    file = WarcFile()
    file.members = []
    file.add("response", SITE + "/", http(b"<a href=/2020/01/01/>"), WARC_Date=date)
    assert alone(tmp_path, file).counts["answered"] == 1


@pytest.fixture
def committed(tmp_path) -> Path:
    """A crawl with a cycle of pages that the extractor and the verifier took."""
    crawl = SmallCrawl(tmp_path / "crawl", 1, config=configured("scope", accept_suffixes=("test",)))
    crawl.seed([f"http://s{number}.test/" for number in range(4)])
    crawl.absorb_all()
    plan = crawl.plan(CRAWL, 0)
    fetch(crawl, plan, crawl.schedule(plan))
    ran = run("extractor", "--crawl", crawl.crawl.path, "--cycle", plan.cycle)
    assert ran.returncode == 0, ran.stderr
    crawl.verify(plan)
    return crawl.crawl.path / names.cycle(plan.cycle) / names.EXTRACTOR


def fetch(crawl: SmallCrawl, plan: Plan, listed: list[str]) -> None:
    folder = crawl.crawl.path / names.cycle(plan.cycle) / names.FETCHER
    with publishing(folder) as manifest:
        (folder / names.PAGES).mkdir()
        file = page_file({url: f"<a href=/a><a href={url}b><a href=/c.zip><a href=http://o.org/>" for url in listed})
        (folder / names.PAGES / "00000.warc.zst").write_bytes(file.data())
        manifest["counts"] = {"listed": len(listed)}


def test_the_check_accepts_a_cycle_and_rejects_other_sums(committed):
    crawl = committed.parents[2]
    ran = run("check", "--crawl", crawl)
    assert ran.returncode == 0 and "all books agree" in ran.stdout, ran.stdout + ran.stderr
    table = read_table(committed / names.REJECTED, REJECTED)
    assert table.num_rows > 1
    links = table.column("links").to_pylist()
    links[0] += 1
    place = table.schema.get_field_index("links")
    write_table(
        committed / names.REJECTED,
        table.set_column(place, REJECTED.field("links"), pa.array(links, REJECTED.field("links").type)),
    )
    ran = run("check", "--crawl", crawl)
    assert ran.returncode == 65 and names.REJECTED in ran.stdout
    manifest = read_manifest(committed)
    manifest["files"][names.REJECTED] = describe(committed / names.REJECTED)
    (committed / names.MANIFEST).unlink()
    (committed / names.MANIFEST).write_bytes(encode_json(manifest))
    ran = run("check", "--crawl", crawl)
    assert ran.returncode == 65 and "out of scope + trap = sum of links over UrlsRejeitadas" in ran.stdout, (
        ran.stdout + ran.stderr
    )
    assert json.loads((committed / names.MANIFEST).read_bytes())["counts"]["out_of_scope"] == sum(links) - 1


def test_sitemaps_that_a_robots_txt_names_are_its_links(tmp_path):
    """Whatever their server; once for a robots.txt that is asked for twice, and by the same scope as other links."""
    text = (
        f"Sitemap: {SITE}/map.xml\nUser-agent: *\nSitemap: "
        f"https://maps.example/all.xml.gz\nSitemap: {SITE}/map.zip\nSitemap: /relative\n"
    ).encode()
    file = WarcFile().robots(SITE, text).robots(SITE, text).robots("http://none.example", b"", 404)
    tables = alone(tmp_path, file.answer(SITE + "/", http(b"<a href=/map.xml>")))
    assert {url: row["links_in"] for url, row in tables.by_url(names.EXTRACTED).items()} == {
        SITE + "/map.xml": 2,
        "https://maps.example/all.xml.gz": 1,
    }
    assert {row["depth"] for row in tables.rows(names.EXTRACTED)} == {1} and len(tables.rows(names.METADATA)) == 1
    assert tables.counts["rejected"]["reject_extensions"] == 1 and tables.counts["link_occurrences"] == 4
    (tmp_path / "other").mkdir()
    unread = alone(tmp_path / "other", file, config=configured("extractor", follow=("a",)))
    assert [row["url"] for row in unread.rows(names.EXTRACTED)] == [SITE + "/map.xml"]


def test_redirects_are_told_in_the_table(tmp_path):
    file = WarcFile()
    for number, (location, status, _) in enumerate(REDIRECTS):
        url = f"http://example.com/dir/{number}"
        file.answer(url, http(b"", status, "text/html; charset=iso-8859-1", f"Location: {location}"))
    told = alone(tmp_path, file).by_url(names.METADATA)
    for number, (_, _, redirect_to) in enumerate(REDIRECTS):
        assert told[f"http://example.com/dir/{number}"]["redirect_to"] == redirect_to.replace("page.html", str(number))
