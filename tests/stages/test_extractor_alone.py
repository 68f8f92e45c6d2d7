"""Without a crawl: folders and files of pages from anybody, exit codes, and records that other programs wrote."""

import io
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from contract import command, crawl_folder, names
from contract.config import Config
from contract.errors import Usage
from contract.log import ABSORB, CRAWL
from contract.plan import Plan, write_plan
from contract.tables import ANSWERED, FAILED
from stages.extractor.__main__ import extract_cycle, extract_pages, main
from storage.frames import Gzip
from storage.publish import publishing
from tests.extractor_lab import NOW_MS, PAGE, Tables, WarcFile, alone, configured, http, page_file

ROOT = Path(__file__).resolve().parents[2]


def run(capsys, *arguments) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the command."""
    with patch.object(sys, "argv", ["extractor", *map(str, arguments)]), pytest.raises(SystemExit) as ended:
        command.run(main, "extractor")
    return ended.value.code or 0, *capsys.readouterr()


def test_manual_and_exit_codes(tmp_path, capsys):
    code, manual, _ = run(capsys, "--help")
    assert code == 0 and "Example:" in manual and "UrlsExtraidas" in manual
    assert (
        run(capsys)[0]
        == run(capsys, tmp_path, "--cycle", 3)[0]
        == run(capsys, "--cycle", 3, "--set", "fetcher.agent=x")[0]
        == 64
    )
    (tmp_path / "one.warc.zst").write_bytes(page_file({PAGE: "<a href=x><a href=y>"}).data())
    code, told, _ = run(capsys, tmp_path)
    assert code == 0 and "1 answered" in told and "2 followed" in told
    code, _, problem = run(capsys, tmp_path)
    assert code == 64 and str(tmp_path / "extractor") in problem and "remove" in problem
    code, _, problem = run(capsys, tmp_path, "--out", tmp_path / "bad", "--set", "scope.reject_patterns=['(']")
    assert code == 78 and "reject_patterns" in problem and not (tmp_path / "bad").exists()


def test_exit_codes_of_cycles(tmp_path, capsys):
    crawl = crawl_folder.create(tmp_path / "crawl", 1)
    absorb, plan = (Plan(cycle, kind, 0, 1, None, NOW_MS, Config()) for cycle, kind in ((1, ABSORB), (2, CRAWL)))
    write_plan(crawl.path, plan)
    with pytest.raises(Usage, match="absorb"):
        extract_cycle(crawl, absorb, None)
    code, _, problem = run(capsys, "--crawl", crawl.path, "--cycle", 2)  # keeps the lock until this process ends
    assert code == 65 and "scheduler" in problem
    assert run(capsys, "--crawl", crawl.path, "--cycle", 2)[0] == 75


def test_tables_are_the_same_with_the_compiled_scanner(tmp_path):
    """Above [extractor] scan_from_bytes it is loaded; of these pages it reads all but the last."""
    pages = {
        f"http://a.test/{number}/": (
            f"<title>{number} &amp;</title><base href=/b/><a href='x{number}#f'>t</a>"
            f"<IMG src=i><a rel=nofollow href=y>u</a>"
        )
        for number in range(9)
    }
    (tmp_path / "one.warc.zst").write_bytes(
        page_file(pages | {PAGE: "<table><a href=x><p>t</a></table><unknown href=y>"}).data()
    )
    for name, least in (("tree", 1 << 40), ("scan", 0)):
        ran = subprocess.run(
            [
                ROOT / "bin" / "extractor",
                tmp_path,
                "--out",
                tmp_path / name,
                "--set",
                f"extractor.scan_from_bytes={least}",
            ],
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
    files = sorted(path.name for path in (tmp_path / "tree").iterdir())
    assert len(files) == 8 and all(
        (tmp_path / "tree" / name).read_bytes() == (tmp_path / "scan" / name).read_bytes() for name in files
    )


def test_as_a_program(tmp_path):
    (tmp_path / "one.warc.gz").write_bytes(WarcFile(Gzip()).answer(PAGE, http(b"<a href=x>")).data())
    ran = subprocess.run([ROOT / "bin" / "extractor", tmp_path], capture_output=True, text=True)
    assert ran.returncode == 0 and "1 followed" in ran.stdout, ran.stderr


def test_a_folder_that_the_fetcher_wrote(tmp_path):
    pages = tmp_path / "pages"
    with publishing(pages) as manifest:
        (pages / names.PAGES).mkdir()
        (pages / names.PAGES / "00000.warc.zst").write_bytes(page_file({PAGE: "<a href=x>"}).data())
        (pages / names.PAGES / "00001.warc.zst").write_bytes(page_file({PAGE + "2": "<a href=y>"}).data())
        manifest["counts"] = {}
    extract_pages(pages, None, Config())
    tables = Tables(pages / "extractor")
    row = tables.by_url(names.METADATA)[PAGE]
    assert row["file"] == "Repositorio_de_Paginas/00000.warc.zst" and tables.counts["damaged_files"] == 0
    collected = tables.by_url(names.COLLECTED)
    assert [(row["depth"], row["foreign"]) for row in collected.values()] == [(0, False)] * 2
    assert tables.counts["listed"] == tables.counts["answered"] == 2
    (pages / names.PAGES / "00001.warc.zst").unlink()
    (pages / names.PAGES / "00000.warc.zst").open("ab").write(page_file({PAGE + "3": ""}).data())
    extract_pages(pages, tmp_path / "again", Config())
    again = Tables(tmp_path / "again")
    assert again.counts["damaged_files"] == 2 and set(again.by_url(names.COLLECTED)) == {PAGE, PAGE + "3"}


def test_one_file(tmp_path):
    (tmp_path / "page.warc.zst").write_bytes(page_file({PAGE: ""}).data())
    extract_pages(tmp_path / "page.warc.zst", None, Config())
    assert Tables(tmp_path / "extractor").rows(names.METADATA)[0]["file"] == "page.warc.zst"
    for nothing in (tmp_path / "not there", tmp_path / "extractor"):
        with pytest.raises(Usage):
            extract_pages(nothing, tmp_path / "x", Config())


def test_damage_is_told_and_what_comes_before_it_used(tmp_path, capsys):
    torn, whole = page_file({PAGE: "<a href=x>", PAGE + "2": "<a href=y>"}), page_file({PAGE + "3": "<a href=z>"})
    torn.members[-1] = torn.members[-1][:-5]
    tables = alone(tmp_path, torn, whole)
    assert set(tables.by_url(names.COLLECTED)) == {PAGE, PAGE + "3"} and tables.counts["damaged_files"] == 1
    assert "00000.warc.zst at byte" in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == ["00000.warc.zst", "00001.warc.zst"]


def test_the_same_bytes_again(tmp_path):
    files = (
        page_file({PAGE: "<a href=x><a href=y>", "http://b.org/": "<a href=/>"}),
        WarcFile(Gzip()).answer(PAGE + "2", http()),
    )
    assert alone(tmp_path, *files).files() == alone(tmp_path, *files, out="again").files()


def test_records_of_another_program(tmp_path):
    stream = io.BytesIO()
    writer = WARCWriter(stream, gzip=True)
    for url, status, body in (
        (PAGE, "200 OK", b"5\r\n<a hr\r\n8\r\nef=next>\r\n0\r\n\r\n"),
        ("http://Example.com/a b", "503 No", b""),
        ("http://example.com/none", "404 Not Found", b""),
        ("dns:example.com", "200 OK", b""),
    ):
        headers = StatusAndHeaders(
            status, [("Content-Type", "text/html"), ("Transfer-Encoding", "chunked")], protocol="HTTP/1.1"
        )
        writer.write_record(writer.create_warc_record(url, "response", payload=io.BytesIO(body), http_headers=headers))
        writer.write_record(
            writer.create_warc_record(url, "metadata", payload=io.BytesIO(b"x: y"), warc_content_type="text/plain")
        )
    (tmp_path / "other.warc.gz").write_bytes(stream.getvalue())
    extract_pages(tmp_path, None, Config())
    tables = Tables(tmp_path / "extractor")
    assert {
        url: (row["outcome"], row["reason"], row["status"]) for url, row in tables.by_url(names.COLLECTED).items()
    } == {
        PAGE: (ANSWERED, "", 200),
        "http://example.com/a%20b": (FAILED, "http_5xx", 503),
        "http://example.com/none": (ANSWERED, "", 404),
    }
    assert (
        set(tables.by_url(names.EXTRACTED)) == {"http://example.com/dir/next"} and tables.counts["skipped_records"] == 1
    )


def test_depth_scope_and_the_books(tmp_path):
    pages = {
        PAGE: (
            "<a href=x.zip><a href=//o.org/><a href=y><img src=i.png><a "
            "href='javascript:x'><a href='http://['><a href=y>"
        )
    }
    tables = alone(tmp_path, page_file(pages), config=configured("scope", accept_suffixes=("com",)))
    wanted = {
        "out_of_scope": 2,
        "kind_not_followed": 1,
        "other_scheme": 1,
        "unparsable": 1,
        "followed": 1,
        "repeated_in_page": 1,
        "link_occurrences": 7,
    }
    assert {name: tables.counts[name] for name in wanted} == wanted
    rejected = {name: number for name, number in tables.counts["rejected"].items() if number}
    assert rejected == {"reject_extensions": 1, "accept": 1}
    assert tables.rows(names.EXTRACTED)[0]["depth"] == 1 and tables.counts["links_rows"] == 1


def test_odd_answers_end_no_extraction(tmp_path):
    file = WarcFile()
    blocks = [
        b"",
        b"HTTP/1.1",
        b"HTTP/1.1 200\r\n\r\n",
        b"\xff\xfe\0\0",
        b"HTTP/1.1 999 X\r\nContent-Type: \xff\r\nLocation: \xff\r\n\r\n",
        http(b"<a href=x>", 200, "text/html", "ETag: " + "e" * 5000, "Content-Encoding: gzip"),
        http(b"\0" * 100, 200, None),
        http(b"x", 302, None, "Location: http://[", "Location: /y"),
    ]
    for number, block in enumerate(blocks):
        file.answer(f"http://example.com/{number}", block)
    file.add("revisit", PAGE, http(), Coletor_Final="yes", Coletor_Outcome="unheard")
    file.add("resource", PAGE, b"").add("", PAGE, b"")
    tables = alone(tmp_path, file)
    assert len(tables.by_url(names.COLLECTED)) == len(blocks) + 1
    assert tables.counts["link_occurrences"] == tables.counts["unparsable"] == 1
    assert max(len(row["etag"]) for row in tables.rows(names.METADATA)) == 0


def test_what_is_kept_of_a_page(tmp_path):
    html = (
        b"<html lang=pt><title>T</title><base href=/b/><link rel=canonical href=c?utm_source=x>"
        b"<meta name=robots content=noindex><a href=//o.org/>"
    )
    file = WarcFile().answer(PAGE, http(html))
    file.answer(PAGE + "2", http(html, 200, "text/html; charset=latin1", "X-Robots-Tag: nofollow"))
    file.answer(
        PAGE + "3", http(b"see http://o.org/x", 200, "text/plain", 'Link: <h>; rel="canonical"', "Content-Language: en")
    )
    tables = alone(tmp_path, file, config=configured("extractor", near_duplicates=True))
    kept = (
        "reader",
        "trouble",
        "charset",
        "title",
        "language",
        "canonical",
        "noindex",
        "nofollow",
        "links_inside",
        "links_outside",
    )
    rows = tables.by_url(names.METADATA)
    assert {url.removeprefix(PAGE): tuple(row[name] for name in kept) for url, row in rows.items()} == {
        "": ("html", "", "utf-8", "T", "pt", "http://example.com/b/c", True, False, 1, 1),
        "2": ("html", "", "windows-1252", "T", "pt", "http://example.com/b/c", True, True, 1, 1),
        "3": ("text", "", "utf-8", "", "en", "http://example.com/dir/h", False, False, 1, 1),
    }
    assert sum(row["duplicate"] for row in rows.values()) == 1 and not rows[PAGE + "3"]["duplicate"]
    assert tables.counts["nofollow"] == 2 and tables.counts["pages_in_trouble"] == 0
