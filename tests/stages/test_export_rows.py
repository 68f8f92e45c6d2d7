"""bin/export pages, ufmg, urls, and the filters: which visits are taken, and what is written of them."""

import json
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from contract import names
from contract.trouble import UNDECODED
from contract.warc import PageReader, format_date, format_second, parse_response
from examine.export.filters import Filters
from examine.export.page_rows import read_html
from examine.export.selection import Selection
from examine.text_reader import DIED, TextReader
from tests.export_lab import CYCLES, DAY_MS, GOLDEN, LAST_DAY, MOMENT_S, S1, VISITS, day, export


def test_newest_takes_the_last_visit_that_brought_a_page(tmp_path):
    export("pages", tmp_path / "out", "--newest", "--format", "jsonl")
    rows = [json.loads(line) for path in sorted((tmp_path / "out").glob("*.jsonl")) for line in open(path)]
    expected = {}
    for row in VISITS:  # in the order of cycles
        if not row["revisit"]:
            expected[row["url"]] = row["fetched_at_ms"]
    found = {row["url"]: row["time"] for row in rows}
    assert len(rows) == len(found) == len(expected)
    assert not any(row["revisit"] for row in rows)
    changed = next(url for url in found if url.endswith("/changed"))
    assert found == {url: format_date(at_ms) for url, at_ms in expected.items()}
    assert len([row for row in VISITS if row["url"] == changed]) == 2
    assert [row["text"] for row in rows if row["url"] == changed] != [None]


@pytest.mark.parametrize("rows_at_once", [3, 1000])
def test_newest_is_the_same_in_one_pass_and_in_many(rows_at_once):
    selection = Selection(GOLDEN, list(CYCLES), Filters(newest=True))
    selection.find_newest(rows_at_once)
    found = {}
    for cycle in CYCLES:
        for url in selection.rows(cycle, ())[0].column("url").to_pylist():
            assert url not in found
            found[url] = cycle
    assert found == {row["url"]: row["cycle"] for row in VISITS if not row["revisit"]}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "options, takes",
    [
        (["--status", "3xx"], lambda row: row["status"] == 304),
        (["--type", "text/plain"], lambda row: row["type"] == "text/plain"),
        (["--type", "text/*", "--status", "200"], lambda row: row["status"] == 200),
        (["--server", S1], lambda row: "//s1.test:" in row["url"]),
        (["--server", "s1.test", "--server", "other.test"], lambda row: "//s1.test:" in row["url"]),
        (["--suffix", "visited.test"], lambda row: False),
        (["--suffix", "revisited.test"], lambda row: "//revisited.test:" in row["url"]),
        (["--suffix", "test"], lambda row: True),
        (["--from", format_second(MOMENT_S)], lambda row: row["fetched_at_ms"] >= MOMENT_S * 1000),
        (["--until", format_second(MOMENT_S)], lambda row: row["fetched_at_ms"] < MOMENT_S * 1000),
        (["--until", day(LAST_DAY - 1)], lambda row: row["fetched_at_ms"] < LAST_DAY * DAY_MS),
        (["--until", day(LAST_DAY)], lambda row: True),
        (["--from", day(LAST_DAY + 1)], lambda row: False),
        (["--language", "pt"], lambda row: False),
    ],
)
def test_filters(tmp_path, options, takes):
    export("cdxj", tmp_path / "out", *options)
    path = tmp_path / "out" / "index.cdxj"
    lines = path.read_bytes().splitlines() if path.exists() else []
    found = sorted((json.loads(line.split(b" ", 2)[2])["url"], line.split(b" ")[1]) for line in lines)
    expected = [row for row in VISITS if takes(row)]
    assert [url for url, _ in found] == sorted(row["url"] for row in expected)


def test_languages_are_compared_without_case_and_region():
    takes = Filters(languages=("pt",))._takes_language
    assert [takes(text) for text in ("pt", "PT-br", "pt_BR", "ptx", "en", "")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


def test_pages_as_parquet_have_texts_of_html(tmp_path):
    manifest = export("pages", tmp_path / "out")
    rows = pq.read_table(list((tmp_path / "out").glob("*.parquet"))).to_pylist()
    visits = VISITS
    assert len(rows) == len(visits) == manifest["counts"]["pages"]
    for row in rows:
        is_html = row["type"] == "text/html" and not row["revisit"]
        assert (row["text"] is not None) == is_html and row["text_trouble"] == ""
    assert {(row["url"], row["status"], row["title"]) for row in rows} == {
        (row["url"], row["status"], row["title"]) for row in visits
    }


@pytest.mark.long
def test_a_page_that_hangs_its_reader_or_kills_it_has_no_text():
    texts = TextReader(processes=2, page_max_s=1)
    nested = "<div>" * 40_000 + "never read"  # takes a time that grows with the square
    good = "<html><body><main><p>Uma página comum, com um texto em português que se pode ler bem.</p></main>"
    try:
        found = list(texts.read_each([(0, good), (1, nested), (2, None), (3, "\0\ud800" + good), (4, good)]))
    finally:
        texts.close()
    assert [tag for tag, _ in found] == [0, 1, 2, 3, 4]
    assert found[1][1] == (None, "", DIED) and found[2][1] == (None, "", "")
    assert found[0][1] == found[4][1] and "página comum" in found[0][1].text and found[0][1].language == "pt"
    assert "página comum" in found[3][1].text


def test_a_body_that_cannot_be_decoded_is_no_text():
    row = {"offset": 0, "charset": "utf-8"}
    block = b"HTTP/1.1 200 OK\r\nContent-Encoding: secret\r\n\r\n\x01\x02"
    reader = SimpleNamespace(record_at=lambda _: SimpleNamespace(block=block))
    assert read_html(reader, row) == (None, UNDECODED)
    plain = SimpleNamespace(record_at=lambda _: SimpleNamespace(block=b"HTTP/1.1 200 OK\r\n\r\n\xefcido"))
    assert read_html(plain, {**row, "charset": "windows-1252"}) == ("ïcido", "")
    assert read_html(plain, {**row, "charset": "no such"}) == ("\ufffdcido", "")


def test_ufmg_has_no_bar_but_its_own(tmp_path):
    manifest = export("ufmg", tmp_path / "out")
    text = "".join(path.read_text("utf-8") for path in sorted((tmp_path / "out").glob("*.txt")))
    head, *pages = text.split("|||")
    assert head == "" and len(pages) == manifest["counts"]["pages"]
    read = {}
    for page in pages:
        url, html = page.split("|")
        read.setdefault(url.strip(), []).append(html.strip())
    visits = [row for row in VISITS if row["type"] == "text/html" and not row["revisit"]]
    assert sorted(read) == sorted({row["url"] for row in visits})
    for row in visits:
        path = GOLDEN / names.cycle(row["cycle"]) / names.FETCHER / row["file"]
        body = parse_response(PageReader(path).record_at(row["offset"]).block).body
        assert body.decode("utf-8-sig").replace("|", "").strip() in read[row["url"]]


def test_urls_are_all_that_are_known_with_their_states(tmp_path):
    manifest = export("urls", tmp_path / "text")
    lines = [line for path in (tmp_path / "text").glob("*.txt") for line in path.read_text().splitlines()]
    export("urls", tmp_path / "rows", "--format", "jsonl", "--state", "collected")
    rows = [json.loads(line) for path in (tmp_path / "rows").glob("*.jsonl") for line in open(path)]
    export("urls", tmp_path / "parquet", "--format", "parquet", "--suffix", "s1.test")
    table = pq.read_table(list((tmp_path / "parquet").glob("*.parquet")))
    assert len(lines) == len(set(lines)) == sum(manifest["counts"].values())
    assert {row["url"] for row in rows} == {row["url"] for row in VISITS} <= set(lines)
    assert sorted(table.column("url").to_pylist()) == sorted(line for line in lines if "//s1.test:" in line)


def test_the_last_day_that_can_be_written_ends_nothing(tmp_path):
    assert export("cdxj", tmp_path / "out", "--until", "9999-12-31")["counts"]["captures"] == len(VISITS)
