"""bin/page: the stored bytes of pages, of any visit, and what it says where there are none."""

import json
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contract import names
from contract.errors import BadInput
from contract.tables import METADATA
from contract.warc import HTTP_RESPONSE, encode_record
from examine import page
from examine.page_text import decode, detect_language, is_textual, whole_text_of
from storage.frames import Zstd
from storage.tables import write_table
from tests.at_terminal import run_at_terminal
from tests.golden import GOLDEN, REVISITED
from tests.in_process import call

ROOT = Path(__file__).resolve().parent.parent.parent
ROWS = [
    row | {"cycle": int(path.parent.parent.name)}
    for path in sorted(GOLDEN.glob(f"{names.CYCLES}/*/{names.EXTRACTOR}/{names.METADATA}"))
    for row in pq.read_table(path).to_pylist()
]


@pytest.fixture
def show(capsysbinary):
    """Runs bin/page in this process: exit code, standard output, standard error."""

    def run_page(*arguments: object, crawl: Path = GOLDEN) -> tuple[int, bytes, str]:
        code = call(page.main, page.NAME, "--crawl", crawl, *arguments)
        shown = capsysbinary.readouterr()
        return code, shown.out, shown.err.decode()

    return run_page


def url_of(name: str) -> str:
    urls = [row["url"] for row in ROWS if row["url"].startswith(f"http://{REVISITED}")]
    return next(url for url in urls if url.endswith(name))


def test_the_body_is_that_of_the_last_full_answer(show):
    """What tests/golden/revisited_pages.py served, also where the newest visit was a 304."""
    code, body, said = show(url_of("/same"))
    assert (code, body) == (0, b"<title>the same</title><a href=/>0</a>")
    assert "visit 2" in said and "status 304" in said and "the page of visit 1" in said
    _, newest, _ = show(url_of("/changed"))
    _, first, said = show(url_of("/changed"), "--visit", 1)
    assert newest != first and b"<title>visit" in first and not said


def test_raw_is_the_record_and_text_has_no_tags(show):
    url = url_of("/same")
    _, record, said = show(url, "--raw", "--visit", 2)
    assert record.startswith(b"WARC/1.1\r\nWARC-Type: revisit") and not said
    _, record, _ = show(url, "--raw")
    assert record.endswith(show(url)[1] + b"\r\n\r\n") and b"WARC-Type: response" in record
    assert show(url_of("/changed"), "--text")[1] == b"2\n", "the title is not in the body"


def test_the_list_has_every_visit(show):
    url = url_of("/body")
    listed = [json.loads(line) for line in show(url, "--list", "--json")[1].splitlines()]
    assert [(row["visit"], row["cycle"], row["status"], row["offset"]) for row in listed] == [
        (number, row["cycle"], row["status"], row["offset"])
        for number, row in enumerate((row for row in ROWS if row["url"] == url), 1)
    ]
    assert all((GOLDEN / row["file"]).is_file() for row in listed)


@pytest.mark.parametrize(
    "arguments, code, says",
    [
        ((f"http://{REVISITED}:1/none",), 65, "no page is stored; never seen"),
        ((url_of("/same"), "--visit", "9"), 65, "expected a visit from 1 to 2, found 9"),
        (("ftp://a.test/",), 64, "expected a URL"),
        ((url_of("/same"), "--csv"), 64, "--csv is for --list"),
    ],
)
def test_what_is_not_there_is_said(show, arguments, code, says):
    found, out, said = show(*arguments)
    assert found == code and says in said and not out and len(said.splitlines()) == 1


@pytest.fixture
def changed(tmp_path):
    """A copy of the golden crawl, and a function that changes the newest row of a URL in its table of metadata."""
    crawl = tmp_path / "crawl"
    shutil.copytree(GOLDEN, crawl)

    def change(url: str, **values: object) -> Path:
        newest = [row for row in ROWS if row["url"] == url][-1]
        path = crawl / names.cycle(newest["cycle"]) / names.EXTRACTOR / names.METADATA
        rows = [row | values if row["url"] == url else row for row in pq.read_table(path).to_pylist()]
        path.unlink()
        write_table(path, pa.Table.from_pylist(rows, METADATA))
        return path

    return crawl, change


def test_a_table_that_points_elsewhere_or_is_missing_is_named(show, changed):
    crawl, change = changed
    url = url_of("/changed")
    newest = [row for row in ROWS if row["url"] == url][-1]
    other = next(row for row in ROWS if row["cycle"] == newest["cycle"] and row["url"] != url)
    path = change(url, offset=other["offset"])
    code, out, said = show(url, crawl=crawl)
    assert code == 65 and f"expected a record of {url}, found one of {other['url']}" in said and not out
    path.unlink()
    code, out, said = show(url, crawl=crawl)
    assert code == 0 and "1 table missing" in said and b"visit" in out


def test_the_time_for_the_text_of_a_page_is_bounded():
    row = {"url": "http://a.test/", "type": "text/html", "charset": "utf-8"}
    with pytest.raises(BadInput, match="takes more than 0 s of processor time, or crashes its reader; leave out"):
        page.write_text(b"<div>" * 200_000 + b"text", row, page_max_s=0)


def test_a_terminal_gets_text_and_no_binary_data(changed):
    crawl, change = changed
    url = url_of("/changed")
    code, shown = run_at_terminal([ROOT / "bin/page", "--crawl", crawl, url])
    assert code == 0 and "<title>visit 2</title>" in shown
    body = b"HTTP/1.1 200 OK\r\n\r\n\x89PNG\r\n\x1a\n\0\0"
    record = encode_record("response", [("WARC-Target-URI", url), ("Content-Type", HTTP_RESPONSE)], body)
    folder = change(url, offset=0, file=f"{names.PAGES}/90000.warc.zst", type="image/png").parent.parent
    (folder / names.FETCHER / names.PAGES / "90000.warc.zst").write_bytes(Zstd().compress(record))
    code, shown = run_at_terminal([ROOT / "bin/page", "--crawl", crawl, url])
    assert code == 64 and "binary data of 10 bytes: use > FILE" in shown
    whole = subprocess.run([ROOT / "bin/page", "--crawl", crawl, url], capture_output=True)
    assert (whole.returncode, whole.stdout) == (0, body.partition(b"\r\n\r\n")[2])


def test_text_of_types_and_charsets():
    assert whole_text_of("<p>um <b>dois</b><script>x</script>") == "um dois"
    assert decode("a<b".encode("utf-16"), "utf-16") == "a<b" and not is_textual("application/pdf")
    assert decode(b"p\xe3o", "windows-1252") == "pão" and decode(b"p\xe3o", "no-such") == "p\ufffdo"
    assert decode("ไทย".encode("cp874"), "windows-874") == "ไทย"
    assert decode("שלום".encode("iso8859-8"), "iso-8859-8-i") == "שלום"
    assert decode("①".encode("cp932"), "shift_jis") == "①"
    assert decode(b"abc", "hex") == "abc" and is_textual("image/svg+xml") and not is_textual("image/png")
    assert detect_language("O rato roeu a roupa do rei de Roma") == "pt"
    assert detect_language("") is None and detect_language(None) is None
