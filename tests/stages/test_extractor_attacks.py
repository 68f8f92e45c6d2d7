"""What an attack on the extractor once broke.

Wrong rows from drawings and bases, pages of endless URLs, inputs that hold nothing.
"""

import subprocess
import time
from pathlib import Path

import pytest

from contract import names
from contract.canonical import Canonical
from contract.config import Config
from contract.config_file import load
from contract.errors import BadConfiguration
from contract.scope.rules import Scope
from stages.extractor import targets as targets_module
from stages.extractor.documents import css, html
from tests.extractor_lab import KEYS, WarcFile, alone, configured, http, judge_answer, page_file, read_answer

ROOT = Path(__file__).resolve().parents[2]
SITE = "http://example.com"


def extract(folder: Path, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run([ROOT / "bin/extractor", *map(str, arguments)], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize(
    "page, found",
    [
        ("<svg><base href='http://evil.org/'></base></svg><a href=x>", "http://example.com/x"),
        ("<svg><foreignObject><base href='http://b.org/'></foreignObject></svg><a href=x>", "http://b.org/x"),
        ("<math><base href='http://evil.org/'></base></math><a href=x>", "http://example.com/x"),
        ("<svg><a href='' xlink:href=/no></a></svg>", "http://example.com/"),
        ("<svg><link rel=canonical href=/fake></link></svg><a href=x>", "http://example.com/x"),
        ("<svg><use href='#q'/></svg><a href=x>", "http://example.com/x"),
    ],
)
def test_drawings_say_nothing_of_the_page(page, found):
    assert judge_answer(read_answer(page), url=SITE + "/").urls == [found]


def test_a_title_deep_in_a_drawing_is_none():
    assert html.read(b"<svg><g><title>drawn</title></g></svg><title>page</title>", "utf-8").title == "page"


@pytest.mark.parametrize(
    "page, headers, canonical",
    [
        ("<base href='http://['><link rel=canonical href='http://example.com/c'>", (), SITE + "/c"),
        ("<base href='http://other.org/z/'><link rel=canonical href=c>", (), "http://other.org/z/c"),
        ("<base href='http://other.org/z/'>", ("Link: <c>; rel=canonical",), SITE + "/c"),
        ("<base href='http://other.org/z/'>", ("Link: <http://[>; rel=canonical",), ""),
    ],
)
def test_the_canonical_url_is_where_its_link_leads(tmp_path, page, headers, canonical):
    tables = alone(tmp_path, WarcFile().answer(SITE + "/", http(page.encode(), 200, "text/html", *headers)))
    assert tables.by_url(names.METADATA)[SITE + "/"]["canonical"] == canonical


def test_the_canonical_url_is_in_the_pages_charset(tmp_path):
    file = WarcFile().answer(
        SITE + "/", http("<link rel=canonical href='/c?q=é'>".encode("cp1252"), 200, "text/html; charset=windows-1252")
    )
    assert alone(tmp_path, file).by_url(names.METADATA)[SITE + "/"]["canonical"] == SITE + "/c?q=%E9"


def test_lazy_attributes_of_any_element():
    answer = read_answer(
        "<a href=/x>x</a><amp-img src=/y.jpg data-src=/z></amp-img>",
        config=configured("extractor", lazy_attributes=True),
    )
    assert not answer.trouble and [text for _, text, _ in answer.document.links] == ["/x", "/z"]


def test_anchors_that_are_never_closed_are_not_nested():
    assert len(html.read(b"".join(b"<a href=%d>t" % number for number in range(20_000)), "utf-8").links) == 20_000


@pytest.mark.parametrize(
    "sheet", [b'\\"' * 40_000, b'"' * 80_001, b"url('" * 40_000, b"url(" * 40_000, b"'\n" * 40_000]
)
def test_style_sheets_take_linear_time(sheet):
    began_s = time.process_time()
    assert [text for _, text, _ in css.read(b"@import 'a';" + sheet, "utf-8").links][:1] == ["a"]
    assert time.process_time() - began_s < 5  # some 20 ms; it was 16 s


@pytest.mark.parametrize("keep_links", ["in_scope", "all"])
def test_a_page_of_endless_urls_is_cut(tmp_path, keep_links):
    """By the text of the URLs that it leads to; the rest is counted, and in no table."""
    body = f"<base href={SITE}/{'p' * 80}/>" + "".join(f"<a href={number:04d}>" for number in range(1_000))
    config = Config(
        extractor=configured("extractor", keep_links=keep_links).extractor,
        scope=configured("scope", page_links_max_bytes=10_000).scope,
    )
    tables = alone(tmp_path, page_file({SITE + "/": body, SITE + "/b": "<a href=/c>"}), config=config)
    length = len(f"{SITE}/{'p' * 80}/0000")
    assert tables.counts["extracted_rows"] == tables.counts["links_rows"] == 10_000 // length + 1
    assert tables.counts["trap"] == tables.counts["rejected"]["page_links_max_bytes"] == 1_000 - 10_000 // length
    assert tables.rows(names.REJECTED)[0]["example"] == f"{SITE}/{'p' * 80}/{10_000 // length:04d}"


@pytest.mark.long
def test_results_that_do_not_fit_into_memory_are_their_largest_pages_fault(tmp_path):
    """Three pages that each fit, and together do not: the largest is left out, and the run goes on."""
    folder = tmp_path / "pages"
    folder.mkdir()

    def body(count: int) -> str:
        return f"<base href={SITE}/{'p' * 1_900}/>" + "".join(f"<a href={number:x}>" for number in range(count))

    file = page_file({SITE + "/a": body(60_000), SITE + "/b": body(70_000), SITE + "/c": "<a href=/d>"})
    (folder / "00000.warc.zst").write_bytes(file.data())
    run = extract(
        tmp_path,
        folder,
        "--set",
        "extractor.page_memory_max_bytes=268435456",
        "--set",
        "scope.page_links_max_bytes=1000000000",
    )
    assert run.returncode == 0, run.stderr
    assert (
        "3 URLs: 3 answered" in run.stdout
        and "ended its worker (memory" in run.stderr
        and "Traceback" not in run.stderr
    )


@pytest.mark.parametrize(
    "name, content", [("notes.md", b"# notes\n"), ("a.warc.gz", b""), ("a.warc.zst", b"\x28\xb5\x2f\xfdxx")]
)
@pytest.mark.sampled(1)
def test_input_that_holds_nothing_is_an_error(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    run = extract(tmp_path, name, "--out", "tables")
    assert (
        run.returncode == 65
        and "each compressed by itself" in run.stderr
        and not (tmp_path / "tables" / "manifest.json").exists()
    )


def test_settings_that_cannot_mean_anything():
    for setting, words in (
        ('scope.accept_suffixes=["*.br"]', "without *"),
        ('extractor.follow=["a", "frmae"]', "found 'frmae'"),
        ("extractor.page_max_s=1e10", "86400"),
    ):
        with pytest.raises(BadConfiguration) as caught:
            load(None, [setting])
        assert words in str(caught.value)


def test_the_number_of_workers_is_no_part_of_the_digest():
    assert (
        load(None, ["extractor.workers=7", "extractor.scan_from_bytes=7"]).digest()
        == load(None).digest()
        != load(None, ["extractor.page_max_s=7.0"]).digest()
    )


def test_columns_have_bounds_whatever_others_wrote(tmp_path):
    feed = b"<rss version='2.0'><channel><language>" + b"x" * 10_000 + b"</language></channel></rss>"
    file = WarcFile().answer(SITE + "/", http(feed, 200, "application/rss+xml"), address="1" * 10_000)
    row = alone(tmp_path, file).by_url(names.METADATA)[SITE + "/"]
    assert len(row["language"]) == 35 and len(row["address"]) == 100


def test_no_element_is_taken_twice():
    page = html.read(
        (
            b"<meta href=x http-equiv=refresh content='0;url=r'><title src=y>t</title><BODY "
            b"BACKGROUND=b.png><img src=i background=j>"
        ),
        "utf-8",
    )
    assert page.title == "t" and sorted((text, count) for (_, text, _), count in page.links.items()) == [
        ("b.png", 1),
        ("i", 1),
        ("r", 1),
    ]


def test_folders_without_links_are_forgotten_too(monkeypatch):
    monkeypatch.setattr(targets_module, "TEXTS_REMEMBERED", 100)
    scope = Scope(Config().scope, KEYS, 0)
    targets = targets_module.Targets(Canonical(Config().url), scope, KEYS)
    for number in range(1_000):
        targets.near(targets_module.base_at(f"{SITE}/{number}/"))
    assert len(targets._near) <= 102
