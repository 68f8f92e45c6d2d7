"""bin/export: what it writes is what the crawl has, other tools read it, and a killed export is continued."""

import fcntl
import gzip
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import zipfile
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from contract import names
from contract.errors import EX_DATAERR, EX_USAGE, Locked, Usage
from contract.tables import METADATA
from contract.trouble import UNDECODED
from contract.url import server_of
from contract.warc import ROBOTS_FOR, PageReader, format_date, format_second, parse_response
from examine.export import kinds
from examine.export.__main__ import main
from examine.export.cdxj import merge_files
from examine.export.filters import Filters
from examine.export.folder import LOCK, ExportFolder
from examine.export.main_text import DIED, TextReader
from examine.export.page_rows import read_html
from examine.export.selection import Selection
from storage.errors import Damaged
from storage.publish import ASIDE, is_published, read_manifest
from storage.tables import read_table
from tests.stages.test_warc_tools import Wayback, run_tool

DAY_MS = 86_400_000
GOLDEN = Path(__file__).parent.parent / "golden" / "crawl"


def export(kind: str, out: Path, *options, crawl: Path = GOLDEN) -> dict:
    """Runs the command in this process; returns its manifest."""
    sys.argv = ["export", kind, "--crawl", str(crawl), "--out", str(out), *map(str, options)]
    main()
    return read_manifest(out)


def run_export(*words) -> subprocess.CompletedProcess:
    command = [sys.executable, "-P", "-m", "examine.export", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def visits_of(crawl: Path = GOLDEN) -> list[dict]:
    rows = []
    for folder in sorted((crawl / names.CYCLES).iterdir()):
        path = folder / names.EXTRACTOR / names.METADATA
        if path.exists():
            rows += [{**row, "cycle": int(folder.name)} for row in read_table(path, METADATA).to_pylist()]
    return rows


VISITS = visits_of()
CYCLES = sorted({row["cycle"] for row in VISITS})
SOME_CYCLE = CYCLES[1]
S1 = next(server_of(row["url"]) for row in VISITS if "//s1.test" in row["url"])
MOMENT_S = sorted(row["fetched_at_ms"] for row in VISITS)[len(VISITS) // 2] // 1000
REVISITED = next(row["url"].split("/")[2] for row in VISITS if row["revisit"])
LAST_DAY = max(row["fetched_at_ms"] for row in VISITS) // DAY_MS


def day(number: int) -> str:
    return f"{date(1970, 1, 1) + timedelta(days=number)}"


def records_of(folder: Path) -> list:
    return [record for path in sorted(folder.glob("*.warc.gz")) for record in PageReader(path).records()]


def records_of_crawl() -> list:
    paths = (GOLDEN / names.CYCLES).glob(f"*/{names.FETCHER}/{names.PAGES}/*.warc.zst")
    return [record for path in sorted(paths) for record in PageReader(path).records()]


@pytest.fixture(scope="module")
def warc(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("export") / "warc"
    export("warc", out)
    return out


@pytest.fixture
def crawl(tmp_path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "crawl"))


def test_warc_has_the_records_of_all_visits_and_of_robots_txt_as_they_were(warc):
    stored = {record.get("WARC-Record-ID"): record for record in records_of_crawl()}
    written = [record for record in records_of(warc) if record.type != "warcinfo"]
    for record in written:
        original = stored[record.get("WARC-Record-ID")]
        assert (record.headers, record.block) == (original.headers, original.block)
    answers = [record for record in written if record.type != "request"]
    pages = sorted((record.url, record.type == "revisit") for record in answers if not record.get(ROBOTS_FOR))
    assert pages == sorted((row["url"], row["revisit"]) for row in VISITS) and len(pages) > len(set(pages))
    assert any(record.get(ROBOTS_FOR) for record in answers)
    pairs = [(record, after) for record, after in zip(written, written[1:]) if record.type == "request"]
    assert len(pairs) == len(answers)
    assert all(after.get("WARC-Concurrent-To") == before.get("WARC-Record-ID") for before, after in pairs)


def test_warcio_and_fastwarc_read_the_files_and_find_every_digest_right(warc):
    for path in sorted(warc.glob("*.warc.gz")):
        expected = [(record.type, record.get("WARC-Record-ID")) for record in PageReader(path).records()]
        with open(path, "rb") as file:
            found = []
            for record in ArchiveIterator(file, check_digests="raise"):
                found.append((record.rec_type, record.rec_headers.get_header("WARC-Record-ID")))
                record.content_stream().read()
        assert found == expected and found[0][0] == "warcinfo"
        with open(path, "rb") as file:
            fast = list(FastIterator(file, verify_digests=True, parse_http=False))
            assert [record.record_id for record in fast] == [name for _, name in expected]


def test_the_index_is_sorted_and_points_at_every_answer(warc):
    lines = (warc / "index.cdxj").read_bytes().splitlines()
    assert lines == sorted(lines)
    found = []
    for line in lines:
        about = json.loads(line.split(b" ", 2)[2])
        record = PageReader(warc / about["filename"]).record_at(int(about["offset"]))
        assert (record.url, record.length) == (about["url"], int(about["length"]))
        assert str(parse_response(record.block).status) == about["status"]
        assert (about["mime"] == "warc/revisit") == (record.type == "revisit")
        found.append(record.get("WARC-Record-ID"))
    assert sorted(found) == sorted(
        record.get("WARC-Record-ID") for record in records_of(warc) if record.type in ("response", "revisit")
    )


def test_the_index_of_the_crawl_itself_points_into_its_files(tmp_path):
    export("cdxj", tmp_path / "out")
    lines = (tmp_path / "out" / "index.cdxj").read_bytes().splitlines()
    assert lines == sorted(lines) and len(lines) == len(VISITS)
    for line in lines:
        about = json.loads(line.split(b" ", 2)[2])
        assert PageReader(GOLDEN / about["filename"]).record_at(int(about["offset"])).url == about["url"]


def test_many_sorted_files_are_merged_in_rounds(tmp_path, monkeypatch):
    monkeypatch.setattr("examine.export.cdxj.OPEN_AT_ONCE", 3)
    chance = random.Random(1)
    lines = [b"%06d\n" % chance.randrange(1_000_000) for _ in range(200)]
    paths = []
    for number in range(20):
        paths.append(tmp_path / f"{number}")
        paths[-1].write_bytes(b"".join(sorted(lines[number::20])))
    assert list(merge_files(paths, tmp_path / "work-")) == sorted(lines)


@pytest.mark.long
def test_pywb_takes_the_index_and_replays_pages_byte_for_byte(warc, tmp_path):
    server = Wayback(tmp_path, [])
    try:
        collection = tmp_path / "collections" / "pages"
        for path in warc.iterdir():
            shutil.copy(path, collection / ("indexes" if path.suffix == ".cdxj" else "archive"))
        server.wait_until_ready()
        answers = [record for record in records_of(warc) if record.type == "response"]
        for record in answers:
            status, _, body = server.replay(record)
            response = parse_response(record.block)
            assert (status, body) == (response.status, response.body)
        revisit = next(
            record for record in records_of(warc) if record.url.endswith("/body") and record.type == "revisit"
        )
        first = next(record for record in answers if record.url == revisit.url)
        assert server.replay(revisit)[2] == parse_response(first.block).body
    finally:
        server.end()


def test_wacz_has_the_warc_files_with_index_pages_and_checksums(warc, tmp_path):
    export("wacz", tmp_path / "out")
    assert sorted(files_of(tmp_path / "out")) == ["collection.wacz", "manifest.json"]
    with zipfile.ZipFile(tmp_path / "out" / "collection.wacz") as package:
        entries = {about.filename: package.read(about) for about in package.infolist()}
    for path in warc.glob("*.warc.gz"):
        assert entries[f"archive/{path.name}"] == path.read_bytes()
    assert gzip.decompress(entries["indexes/index.cdx.gz"]) == (warc / "index.cdxj").read_bytes()
    pages = [json.loads(line) for line in entries["pages/pages.jsonl"].splitlines()][1:]
    brought = [row for row in VISITS if row["type"] == "text/html" and not row["revisit"]]
    assert sorted((page["url"], page["ts"]) for page in pages) == sorted(
        (row["url"], format_date(row["fetched_at_ms"])) for row in brought
    )
    about = json.loads(entries["datapackage.json"])
    assert {resource["path"] for resource in about["resources"]} == {
        name for name in entries if not name.startswith("datapackage")
    }
    for resource in about["resources"]:
        assert resource["hash"] == f"sha256:{hashlib.sha256(entries[resource['path']]).hexdigest()}"
    digest = json.loads(entries["datapackage-digest.json"])["hash"]
    assert digest == f"sha256:{hashlib.sha256(entries['datapackage.json']).hexdigest()}"


@pytest.mark.long
def test_the_validator_of_wacz_and_pywb_take_the_package(tmp_path):
    export("wacz", tmp_path / "out")
    path = tmp_path / "out" / "collection.wacz"
    checked = run_tool("wacz", "validate", "-f", path)
    assert checked.returncode == 0 and "WACZ is valid" in checked.stdout, checked.stdout + checked.stderr
    (tmp_path / "wayback").mkdir()
    server = Wayback(tmp_path / "wayback", [path, "--unpack-wacz"])
    try:
        server.wait_until_ready()
        for record in records_of_crawl():
            if record.type == "response" and not record.get(ROBOTS_FOR):
                status, _, body = server.replay(record)
                assert (status, body) == (parse_response(record.block).status, parse_response(record.block).body)
    finally:
        server.end()


def test_the_blocks_of_a_large_index_are_found_by_their_first_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("examine.export.wacz.LINES_PER_BLOCK", 3)
    export("wacz", tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "out" / "collection.wacz") as package:
        index, packed = package.read("indexes/index.idx"), package.read("indexes/index.cdx.gz")
    head, *blocks = index.splitlines()
    assert head.startswith(b"!meta 0 ") and len(blocks) > 3
    for line in blocks:
        place = json.loads(line[line.index(b"{") :])
        lines = gzip.decompress(packed[place["offset"] : place["offset"] + place["length"]]).splitlines()
        assert lines[0].startswith(line[: line.index(b"{")]) and len(lines) <= 3


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
        for url in selection.rows(cycle, ()).column("url").to_pylist():
            assert url not in found
            found[url] = cycle
    assert found == {row["url"]: row["cycle"] for row in VISITS if not row["revisit"]}


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


def test_filters_of_servers_hold_for_robots_txt_too(tmp_path):
    export("warc", tmp_path / "out", "--server", "revisited.test")
    assert {record.url.split("/")[2] for record in records_of(tmp_path / "out") if record.url} == {REVISITED}
    assert any(record.get(ROBOTS_FOR) for record in records_of(tmp_path / "out"))


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


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["warc", "wacz", "urls"])
def test_an_export_that_stopped_anywhere_is_continued_with_the_same_result(tmp_path, monkeypatch, kind):
    export(kind, tmp_path / "whole")
    steps = 0

    def stop(number: int):
        """Every rename, note and removal counts as a step; at this one the process would have died."""

        def step(event, _):
            nonlocal steps
            if is_armed and event in ("os.rename", "os.link", "os.remove", "open"):
                steps += 1
                if steps == number:
                    raise KeyboardInterrupt

        return step

    is_armed, hooks = False, []
    sys.addaudithook(lambda event, arguments: hooks[0](event, arguments) if hooks else None)
    finished = number = 0
    while not finished:
        number += 7
        out, steps = tmp_path / f"out-{number}", 0
        hooks[:] = [stop(number)]
        is_armed = True
        try:
            export(kind, out)
            finished = number
        except KeyboardInterrupt:
            pass
        finally:
            is_armed = False
            hooks.clear()
        if not finished:
            assert not is_published(out) or files_of(out) != {}
            export(kind, out)
        assert files_of(out) == files_of(tmp_path / "whole")
        shutil.rmtree(out)
    assert finished > 7 * 5, "it was stopped at many moments"


@pytest.mark.long
def test_a_killed_export_is_continued(tmp_path):
    export("warc", tmp_path / "whole")
    chance = random.Random(0)
    was_killed = 0
    for number in range(4):
        out = tmp_path / f"out-{number}"
        command = [sys.executable, "-P", "-m", "examine.export", "warc", "--crawl", GOLDEN, "--out", out]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        target = chance.randrange(4)
        while process.poll() is None and len(list(out.glob("*.warc.gz")) if out.exists() else []) < target:
            pass
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        was_killed += not is_published(out)
        export("warc", out)
        assert files_of(out) == files_of(tmp_path / "whole")
    assert was_killed


def test_an_export_covers_what_was_committed_when_it_began(tmp_path, crawl):
    export("cdxj", tmp_path / "early", crawl=crawl)
    last = len(list((crawl / names.LOG).iterdir())) - 1
    entry = (crawl / names.LOG).joinpath(names.log_entry(last))
    later = entry.read_bytes()
    entry.unlink()
    export("cdxj", tmp_path / "short", crawl=crawl)
    lines = [len((tmp_path / name / "index.cdxj").read_bytes().splitlines()) for name in ("early", "short")]
    assert lines[1] < lines[0] and read_manifest(tmp_path / "short")["export"]["log_length"] == last
    entry.write_bytes(later)
    export("cdxj", tmp_path / "short", crawl=crawl)  # it is whole already
    assert len((tmp_path / "short" / "index.cdxj").read_bytes().splitlines()) == lines[1]


@pytest.mark.parametrize("newest", [[], ["--newest"]])
@pytest.mark.parametrize("lost", ["cycle", "table", "pages", "record"])
def test_what_is_missing_ends_the_export_or_is_named(tmp_path, crawl, lost, newest):
    folder = crawl / names.cycle(SOME_CYCLE)
    pages = folder / names.FETCHER / names.PAGES / "00000.warc.zst"
    whole = export("warc", tmp_path / "whole", crawl=crawl)
    if lost == "cycle":
        shutil.rmtree(folder)
    elif lost == "table":
        (folder / names.EXTRACTOR / names.METADATA).write_bytes(b"no table")
    elif lost == "pages":
        pages.unlink()
    else:
        damaged = np.fromfile(pages, np.uint8)
        damaged[-100] ^= 255
        damaged.tofile(pages)
    with pytest.raises(Damaged, match=names.cycle(SOME_CYCLE)):
        export("warc", tmp_path / "out", *newest, crawl=crawl)
    assert not is_published(tmp_path / "out")
    partial = export("warc", tmp_path / "out", "--allow-partial", *newest, crawl=crawl)
    assert partial["is_partial"] and names.cycle(SOME_CYCLE) in partial["missing"][0] and not whole["is_partial"]
    assert 0 < partial["counts"]["responses"] < whole["counts"]["responses"]


@pytest.mark.parametrize("kind", ["pages", "ufmg", "wacz"])
def test_other_kinds_leave_out_what_a_damaged_file_of_pages_has_lost(tmp_path, crawl, kind):
    path = crawl / names.cycle(SOME_CYCLE) / names.FETCHER / names.PAGES / "00000.warc.zst"
    damaged = np.fromfile(path, np.uint8)
    damaged[-100] ^= 255
    damaged.tofile(path)
    with pytest.raises(Damaged, match=names.cycle(SOME_CYCLE)):
        export(kind, tmp_path / "out", crawl=crawl)
    partial = export(kind, tmp_path / "out", "--allow-partial", crawl=crawl)
    assert partial["is_partial"] and len(partial["missing"]) == 1
    export(kind, tmp_path / "whole")
    assert sum(partial["counts"].values()) < sum(read_manifest(tmp_path / "whole")["counts"].values())


def test_what_was_missing_and_is_there_again_is_exported(tmp_path, crawl, monkeypatch):
    path = crawl / names.cycle(SOME_CYCLE) / names.EXTRACTOR / names.METADATA
    content = path.read_bytes()
    path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(ExportFolder, "publish", lambda *_: pytest.fail("stopped here", pytrace=False))
        with pytest.raises(pytest.fail.Exception):
            export("cdxj", tmp_path / "out", "--allow-partial", crawl=crawl)
    path.write_bytes(content)
    assert not export("cdxj", tmp_path / "out", crawl=crawl)["is_partial"]
    export("cdxj", tmp_path / "whole", crawl=crawl)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def test_a_body_that_cannot_be_decoded_is_no_text():
    row = {"offset": 0, "charset": "utf-8"}
    block = b"HTTP/1.1 200 OK\r\nContent-Encoding: secret\r\n\r\n\x01\x02"
    reader = SimpleNamespace(record_at=lambda _: SimpleNamespace(block=block))
    assert read_html(reader, row) == (None, UNDECODED)
    plain = SimpleNamespace(record_at=lambda _: SimpleNamespace(block=b"HTTP/1.1 200 OK\r\n\r\n\xefcido"))
    assert read_html(plain, {**row, "charset": "windows-1252"}) == ("ïcido", "")
    assert read_html(plain, {**row, "charset": "no such"}) == ("\ufffdcido", "")


def test_damage_is_exit_65_without_a_traceback(tmp_path, crawl):
    (crawl / names.cycle(SOME_CYCLE) / names.EXTRACTOR / names.METADATA).unlink()
    done = run_export("pages", "--crawl", crawl, "--out", tmp_path / "out")
    assert done.returncode == EX_DATAERR and "expected a file, found none" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_void_entry_of_the_log_changes_nothing(tmp_path, crawl):
    export("cdxj", tmp_path / "before", crawl=crawl)
    last = len(list((crawl / names.LOG).iterdir())) - 1
    shutil.copy(crawl / names.LOG / names.log_entry(last), crawl / names.LOG / names.log_entry(last + 1))
    export("cdxj", tmp_path / "after", crawl=crawl)
    index = [(tmp_path / name / "index.cdxj").read_bytes() for name in ("before", "after")]
    assert index[0] == index[1] and read_manifest(tmp_path / "after")["export"]["log_length"] == last + 2


def test_two_exports_into_one_folder_do_not_meet(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with open(out / LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Locked):
            export("urls", out)
    export("urls", out)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(Usage, match="name a new folder"):
        export("urls", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    export("urls", tmp_path / "out")
    with pytest.raises(Usage, match="other options"):
        export("urls", tmp_path / "out", "--state", "waiting")


@pytest.mark.parametrize(
    "kind, options",
    [
        ("urls", ["--newest"]),
        ("warc", ["--state", "waiting"]),
        ("pages", ["--format", "csv"]),
        ("warc", ["--from", "x"]),
        ("warc", ["--status", "1xxx"]),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, kind, options):
    with pytest.raises((Usage, SystemExit)) as error:
        export(kind, tmp_path / "out", *options)
    assert EX_USAGE in (getattr(error.value, "exit_code", None), getattr(error.value, "code", None))
    assert not (tmp_path / "out").exists()


def test_nothing_unfinished_is_left(warc):
    assert not [path for path in warc.iterdir() if path.name.startswith(ASIDE)]
    assert run_tool("warcio", "check", next(iter(sorted(warc.glob("*.warc.gz"))))).returncode == 0
    assert set(kinds.FORMS) == set(kinds.COLUMNS) | {kinds.URLS}
