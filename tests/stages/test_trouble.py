"""Whatever of an answer is not read has a word in `trouble`, and what could be read of it counts."""

import gzip
import zlib
from pathlib import Path

import pytest

from contract import names, trouble
from contract.trouble import (
    ATTRIBUTES,
    BROKEN,
    MEANINGS,
    NESTING,
    PAGE_LINKS,
    READER_BOUND,
    TOO_LONG,
    TRUNCATED,
    UNDECODED,
    explain,
    join_words,
)
from stages.extractor.documents import doc, html, markup, office, pdf, sitemap, swf
from stages.extractor.documents.start_tags import NotPlain, load_scan, read_plain
from tests.extractor_lab import WarcFile, alone, configured, http, read_answer
from tests.sample_documents import get_url, make_compound, make_docx, make_pdf, make_swf, make_zip, relationships, uri

ROOT = Path(__file__).resolve().parents[2]
SITE = "http://example.com"
LINKS = b"<a href=/first>" + b"x" * 3000 + b"<a href=/last>"
PACKED = gzip.compress(LINKS, mtime=0)
DEEP = b"<a href=/first></a>" + b"<div>" * 20_000 + b"<a href=/last>"
CROWDED = b"<a href=/first></a><p " + b" ".join(b"a%d=1" % number for number in range(3_000)) + b"><a href=/last>"
OPEN = b"".join(b"<b id=%d>" % number for number in range(4_000))
BOLD = b"<a href=/first></a><p>" + OPEN + b"<p>x" * 4_000 + b"<a href=/last>"
MANY = b"".join(b"<a href=/%d></a>" % number for number in range(2_000))
OVERFULL = b"<a href=/first></a>" + MANY + b"<a href=/last>"
LISTED = b"".join(b"<url><loc>%s/%d</loc></url>" % (SITE.encode(), number) for number in range(3_000))
SITEMAP = b"<urlset>" + LISTED + b"</urlset>"


def extract(folder: Path, body: bytes, *headers: str, kind="text/html", truncated="", **settings) -> tuple:
    """The row of a page, the URLs that it gave, and the counts, by way of a WARC file and the extractor."""
    folder.mkdir(exist_ok=True)
    file = WarcFile()
    file.add("request", SITE + "/", b"GET / HTTP/1.1\r\n\r\n")
    named = {"WARC_IP_Address": "192.0.2.1", "Coletor_Final": "yes", "Coletor_Outcome": "answered"}
    named |= {"WARC_Truncated": truncated} if truncated else {}
    file.add("response", SITE + "/", http(body, 200, kind, *headers), **named)
    tables = alone(folder, file, config=configured(settings.pop("section", "extractor"), **settings))
    return tables.by_url(names.METADATA)[SITE + "/"], set(tables.by_url(names.EXTRACTED)), tables.counts


@pytest.mark.parametrize(
    "body, headers, word, is_parsed, found",
    [
        (LINKS, ["Content-Encoding: gzip"], UNDECODED, False, ""),
        (LINKS, ["Content-Encoding: br"], UNDECODED, False, ""),
        (LINKS, ["Content-Encoding: lzma"], UNDECODED, False, ""),
        (PACKED, ["Content-Encoding: gzip, gzip, gzip"], UNDECODED, False, ""),
        (PACKED[:-10], ["Content-Encoding: gzip"], BROKEN, True, "first"),
        (PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:], ["Content-Encoding: gzip"], BROKEN, True, "first last"),
        (b"%x\r\n%s\r\n" % (len(LINKS), LINKS), ["Transfer-Encoding: chunked"], BROKEN, True, "first last"),
        (DEEP, [], NESTING, True, "first"),
        (BOLD, [], NESTING, True, "first"),
        (CROWDED, [], ATTRIBUTES, True, "first"),
        (gzip.compress(DEEP)[:-8], ["Content-Encoding: gzip"], f"{BROKEN} {NESTING}", True, "first"),
        (PACKED, ["Content-Encoding: gzip"], "", True, "first last"),
        (PACKED + b"trash", ["Content-Encoding: gzip"], "", True, "first last"),
        (b"", ["Content-Encoding: gzip"], "", True, ""),
    ],
    ids=range(14),
)
@pytest.mark.sampled(5)
def test_a_page_that_is_not_read_whole_says_so(tmp_path, body, headers, word, is_parsed, found):
    row, urls, counts = extract(tmp_path, body, *headers)
    assert (row["trouble"], row["parsed"], bool(row["reader"])) == (word, is_parsed, is_parsed)
    assert urls == {f"{SITE}/{name}" for name in found.split()}
    assert (counts["pages_in_trouble"], counts["pages_parsed"]) == (bool(word), is_parsed)


def test_settings_that_cut_a_page_leave_a_mark(tmp_path):
    row, urls, _ = extract(tmp_path / "a", LINKS, page_max_bytes=1000)
    assert (row["trouble"], row["parsed"], urls) == (TOO_LONG, True, {SITE + "/first"})
    row, _, _ = extract(tmp_path / "b", LINKS, page_max_bytes=len(LINKS))
    assert row["trouble"] == ""
    row, urls, _ = extract(tmp_path / "c", OVERFULL, section="scope", page_links_max_bytes=1000)
    assert (row["trouble"], row["parsed"]) == (PAGE_LINKS, True)
    assert SITE + "/first" in urls and SITE + "/last" not in urls


def test_a_body_that_was_stored_in_part_leaves_one_mark(tmp_path):
    row, urls, _ = extract(tmp_path / "a", PACKED[:-10], "Content-Encoding: gzip", truncated="length")
    assert (row["trouble"], row["parsed"], urls) == (TRUNCATED, True, {SITE + "/first"})
    row, _, _ = extract(tmp_path / "b", b"x" * 100, kind="image/png", truncated="length")
    assert (row["trouble"], row["parsed"]) == (TRUNCATED, False)


def test_both_ways_to_read_a_page_agree_on_its_trouble():
    """The compiled scanner leaves such pages to the tree, which cuts them."""
    load_scan()
    for page, word in ((DEEP, NESTING), (CROWDED, ATTRIBUTES), (BOLD, NESTING)):
        with pytest.raises(NotPlain):
            read_plain(page)
        assert html.read(page, "utf-8").trouble == html.read_tree(page).trouble == word


def reading(module, content: bytes, **bounds):
    """What a reader gives under these bounds."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in bounds.items():
            patch.setattr(module, name, value)
        return module.read(content, "utf-8")


ANNOTATIONS = tuple(uri(b"http://a.example/%d" % number) for number in range(4))
ANNOTATED = make_pdf(b"one http://t.example/", b"two", annotations=ANNOTATIONS)
DOCX = make_docx("http://a.example/", "http://b.example/", body="<w:p><w:t>some words</w:t></w:p>")
FIELDS = b'HYPERLINK "http://a.example/" HYPERLINK "http://b.example/"'
WORD = make_compound({"WordDocument": FIELDS, "1Table": b"x" * 5000})
FLASH = make_swf((12, get_url(b"http://a.example/")), (12, get_url(b"http://b.example/")), packing=b"CWS")


@pytest.mark.parametrize(
    "module, content, bounds, word",
    [
        (pdf, ANNOTATED, {}, ""),
        (pdf, ANNOTATED, {"PAGES_MAX": 1}, READER_BOUND),
        (pdf, ANNOTATED, {"LINKS_MAX": 2}, READER_BOUND),
        (pdf, ANNOTATED, {"ANNOTATIONS_MAX": 2}, READER_BOUND),
        (pdf, ANNOTATED, {"TEXT_MAX_CHARACTERS": 2}, READER_BOUND),
        (pdf, ANNOTATED[:-60], {}, BROKEN),
        (office, DOCX, {}, ""),
        (office, DOCX, {"LINKS_MAX": 1}, READER_BOUND),
        (office, DOCX, {"ELEMENTS_MAX": 3}, READER_BOUND),
        (office, DOCX, {"DEPTH_MAX": 1}, READER_BOUND),
        (office, DOCX, {"TEXT_MAX_CHARACTERS": 3}, READER_BOUND),
        (office, DOCX, {"UNPACKED_MAX_BYTES": 50}, f"{READER_BOUND} {BROKEN}"),
        (office, DOCX, {"ENTRIES_MAX": 1}, READER_BOUND),
        (office, DOCX[:-30], {}, BROKEN),
        (office, make_zip({"word/_rels/a.rels": relationships("http://a.example/") + "<"}), {}, BROKEN),
        (office, make_zip({"word/document.xml": "<!DOCTYPE x [<!ENTITY y 'z'>]><x/>"}), {}, READER_BOUND),
        (doc, WORD, {}, ""),
        (doc, WORD, {"LINKS_MAX": 1}, READER_BOUND),
        (doc, WORD, {"STREAMS_MAX": 1}, READER_BOUND),
        (doc, WORD, {"STREAMS_MAX_BYTES": 4999}, READER_BOUND),
        (doc, WORD[:600], {}, BROKEN),
        (swf, FLASH, {}, ""),
        (swf, FLASH, {"LINKS_MAX": 1}, READER_BOUND),
        (swf, FLASH, {"TAGS_MAX": 1}, READER_BOUND),
        (swf, FLASH, {"UNPACKED_MAX_BYTES": 30}, READER_BOUND),
        (swf, FLASH[:-9], {}, BROKEN),
        (swf, make_swf((12, get_url(b"http://a.example/")), packing=b"FWS")[:-9], {}, BROKEN),
        (sitemap, SITEMAP, {}, ""),
        (sitemap, gzip.compress(SITEMAP), {}, ""),
        (sitemap, gzip.compress(SITEMAP)[:-9], {}, BROKEN),
        (sitemap, gzip.compress(SITEMAP), {"CONTENT_MAX_BYTES": 5000}, f"{BROKEN} {READER_BOUND}"),
        (sitemap, SITEMAP[:-9], {}, BROKEN),
        (sitemap, SITEMAP.replace(b"/7<", b"/<"), {}, ""),
        (sitemap, SITEMAP.replace(b"/7<", b"<<"), {}, BROKEN),
        (sitemap, SITEMAP + SITEMAP, {}, BROKEN),
        (sitemap, b"", {}, BROKEN),
    ],
    ids=lambda value: value.__name__.rpartition(".")[2] if hasattr(value, "__name__") else None,
)
def test_bounds_and_damage_in_other_documents_leave_a_mark(module, content, bounds, word):
    assert reading(module, content, **bounds).trouble == word


def test_a_list_of_links_beyond_the_bound_leaves_a_mark(monkeypatch):
    monkeypatch.setattr(markup, "LINKS_MAX", 100)
    monkeypatch.setattr(markup, "STEP_BYTES", 1 << 12)
    assert sitemap.read(SITEMAP, "utf-8").trouble == READER_BOUND


def test_every_answer_tells_of_its_body_whatever_it_is():
    assert read_answer(LINKS, "text/html", "Content-Encoding: gzip", status=404).trouble == UNDECODED
    assert read_answer(zlib.compress(LINKS)[:-9], "image/png", "Content-Encoding: deflate").trouble == BROKEN


def test_words_are_joined_and_explained():
    assert join_words("", BROKEN, "", f"{NESTING} {BROKEN}") == f"{BROKEN} {NESTING}"
    assert join_words("", "") == explain("") == ""
    assert explain(f"{BROKEN} unknown") == f"{MEANINGS[BROKEN]}; unknown"


@pytest.mark.parametrize("page", ["docs/formats.md", "docs/scope.md"])
def test_the_documents_name_every_word(page):
    text = (ROOT / page).read_text()
    words = {value for name, value in vars(trouble).items() if name.isupper() and isinstance(value, str)}
    assert words == set(MEANINGS) and [word for word in words if f"`{word}`" not in text] == []


@pytest.mark.parametrize(
    "text, found",
    [
        ("a.png 1x, b.png 2x", "a.png b.png"),
        ("\t\n\f\ra.png\f2x\r,\nb.png", "a.png b.png"),
        ("a\vb.png 1x", "a\vb.png"),
        ("\va.png", "\va.png"),
        ("a.png\v1x", "a.png\v1x"),
        ("a.png\u00a01x, b", "a.png\u00a01x b"),
        ("a.png\u20281x", "a.png\u20281x"),
        (" ,, \v ,b", "\v b"),
        ("a.png \v, b", "a.png b"),
    ],
)
def test_white_space_in_srcset_is_that_of_html(text, found):
    page = f'<img srcset="{text}">'.encode()
    for document in (html.read(page, "utf-8"), html.read_tree(page)):
        assert [text for _, text, _ in document.links] == found.split(" ")


@pytest.mark.parametrize(
    "around, counts",
    [
        ("<svg><desc>{}</desc></svg>", True),
        ("<svg><title>{}</title></svg>", True),
        ("<svg><foreignObject>{}</foreignObject></svg>", True),
        ("<svg><g><desc><p>{}</p></desc></g></svg>", True),
        ("<svg>{}</svg>", False),
        ("<svg><g>{}</g></svg>", False),
        ("<svg><desc><svg>{}</svg></desc></svg>", False),
        ("<svg><desc><svg><title>{}</title></svg></desc></svg>", True),
        ("<svg><metadata>{}</metadata></svg>", False),
        ("<math>{}</math>", False),
        ("<math><desc>{}</desc></math>", False),
        ("<math><title>{}</title></math>", False),
        ("<math><mi>{}</mi></math>", True),
        ("<math><mtext>{}</mtext></math>", True),
        ("<math><annotation-xml>{}</annotation-xml></math>", False),
        ("<math><annotation-xml encoding=Text/HTML>{}</annotation-xml></math>", True),
        ("<math><annotation-xml><svg><desc>{}</desc></svg></annotation-xml></math>", True),
        ("<math><annotation-xml><svg>{}</svg></annotation-xml></math>", False),
        ("<svg><math><mi>{}</mi></math></svg>", False),
        ("<math><svg><desc>{}</desc></svg></math>", False),
        ("<desc>{}</desc>", True),
    ],
)
def test_bases_and_links_in_drawings_count_where_html_stands_in_them(around, counts):
    """By the HTML standard, 13.2.6; Chromium does the same."""
    load_scan()
    page = around.format("<base href=http://b.example/><link rel=canonical href=c>").encode() + b"<a href=x></a>"
    document = html.read(page, "utf-8")
    assert (document.base, document.canonical) == (("http://b.example/", "c") if counts else (None, None))


def test_a_title_of_html_in_a_drawing_is_one():
    assert html.read(b"<svg><title>drawn</title><desc><title>page</title></desc></svg>", "utf-8").title == "page"
    assert html.read(b"<svg><title>drawn</title></svg>", "utf-8").title == ""
