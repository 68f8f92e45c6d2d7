"""bin/export warc, cdxj, wacz: records are what the crawl has, and other tools read them."""

import gzip
import hashlib
import json
import random
import shutil
import zipfile
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from contract.warc import ROBOTS_FOR, PageReader, format_date, parse_response
from examine.export.cdxj import merge_files
from tests.export_lab import GOLDEN, REVISITED, VISITS, export, files_of, records_of, records_of_crawl
from tests.pipeline.test_supervisor import Crawl
from tests.stages.test_warc_tools import Wayback, run_tool


@pytest.fixture(scope="module")
def warc(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("export") / "warc"
    export("warc", out)
    return out


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


def test_filters_of_servers_hold_for_robots_txt_too(tmp_path):
    export("warc", tmp_path / "out", "--server", "revisited.test")
    assert {record.url.split("/")[2] for record in records_of(tmp_path / "out") if record.url} == {REVISITED}
    assert any(record.get(ROBOTS_FOR) for record in records_of(tmp_path / "out"))


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


@pytest.mark.long
def test_a_crawl_with_gzip_is_exported_too_and_pywb_replays_its_own_files(synthetic_web, tmp_path):
    crawl = Crawl(tmp_path, *synthetic_web(8, 4), servers=4)
    assert crawl.run("run-cycle", "--set", "fetcher.warc_compression=gzip").returncode == 0
    export("warc", tmp_path / "warc", crawl=crawl.path)
    export("cdxj", tmp_path / "cdxj", crawl=crawl.path)
    paths = sorted((crawl.path / "cycles").glob("*/fetcher/Repositorio_de_Paginas/*.warc.gz"))
    originals = {record.get("WARC-Record-ID"): record for path in paths for record in PageReader(path).records()}
    copies = [record for record in records_of(tmp_path / "warc") if record.type != "warcinfo"]
    assert copies and all(record.block == originals[record.get("WARC-Record-ID")].block for record in copies)
    (tmp_path / "wayback").mkdir()
    server = Wayback(tmp_path / "wayback", [])
    try:
        collection = tmp_path / "wayback" / "collections" / "pages"
        shutil.copy(tmp_path / "cdxj" / "index.cdxj", collection / "indexes")
        (collection / "archive").rmdir()
        (collection / "archive").symlink_to(crawl.path)  # names of the index are paths in the crawl folder
        server.wait_until_ready()
        pages = [record for record in copies if record.type == "response" and not record.get(ROBOTS_FOR)]
        for record in pages[:20]:
            status, _, body = server.replay(record)
            assert (status, body) == (parse_response(record.block).status, parse_response(record.block).body)
    finally:
        server.end()
