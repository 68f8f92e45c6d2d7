"""PDF, office documents, Word 97 and Flash: what is read of them, and what broken ones give."""

import zipfile
from dataclasses import replace

import pytest

from contract.trouble import BROKEN
from stages.extractor.document import DATA, DOCUMENT, TEXT, Document
from stages.extractor.documents import doc, office, pdf, swf
from tests.sample_documents import (
    constant_pool,
    get_url,
    make_compound,
    make_docx,
    make_pdf,
    make_swf,
    make_zip,
    relationships,
    summary,
    swf_tag,
    uri,
)

SUMMARY = "\x05SummaryInformation"


def links(document: Document) -> list[tuple[int, str]]:
    assert not any(nofollow for _, _, nofollow in document.links)
    return [(kind, text) for kind, text, _ in document.links]


def targets(document: Document) -> list[str]:
    return [text for _, text in links(document)]


SAMPLES = {
    pdf: make_pdf(b"text", annotations=(uri(b"http://a.example/"),)),
    office: make_docx("http://a.example/"),
    doc: make_compound({"WordDocument": b'HYPERLINK "http://a.example/"'}),
    swf: make_swf((12, get_url(b"http://a.example/"))),
}


@pytest.mark.parametrize("module", SAMPLES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_each_reader_knows_its_own_and_no_other(module):
    assert [other for other in SAMPLES if other.looks_like(SAMPLES[module][:1024])] == [module]
    assert targets(module.read(SAMPLES[module], "")) == ["http://a.example/"]
    for content in (b"", b"<html>", b"PK", b"%PDX-", SAMPLES[module][:2]):
        assert not module.looks_like(content)
        assert replace(module.read(content, ""), trouble="") == Document()
    assert all(kind == kind.lower() for kind in module.TYPES)


def test_pdf_gives_annotations_urls_in_text_title_and_text():
    content = make_pdf(
        b"See http://text.example/a?b=1 and www.plain.example, or write to me@mail.example",
        b"http://second.example/",
        annotations=(
            uri(b"http://link.example/x"),
            uri(b"other.html"),
            uri(b"http://a.example/\351"),
            b"<< /S /GoTo /D [4 0 R /Fit] >>",
        ),
        title=b"The  title",
    )
    read = pdf.read(content, "")
    assert links(read) == [
        (DOCUMENT, "http://link.example/x"),
        (DOCUMENT, "other.html"),
        (DOCUMENT, "http://a.example/\xe9"),
        (TEXT, "http://text.example/a?b=1"),
        (TEXT, "http://www.plain.example"),
        (TEXT, "http://second.example/"),
    ]
    assert read.title == "The title"
    assert read.text.startswith("See http://text.example/a?b=1 and") and read.text.endswith("\nhttp://second.example/")


def test_pdf_joins_links_with_the_base_that_the_document_declares():
    content = make_pdf(b"x", annotations=(uri(b"page.html"),), catalog=b"/URI << /Base (http://base.example/) >>")
    assert targets(pdf.read(content, "")) == ["http://base.example/page.html"]


def test_pdf_after_junk_is_known_by_its_header():
    assert pdf.looks_like(b"\xef\xbb\xbf\r\n" + SAMPLES[pdf])
    assert not pdf.looks_like(b"<p>how to write %PDF-1.4")


def test_pdf_that_is_cut_off_or_locked_gives_nothing():
    content = make_pdf(b"text", annotations=(uri(b"http://a.example/"),))
    assert pdf.read(content[:-60], "") == Document(trouble=BROKEN)
    locked = b"/Encrypt << /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P -4 >> /ID [<00><00>]" % (
        b"00" * 32,
        b"11" * 32,
    )
    assert pdf.read(make_pdf(b"text", annotations=(uri(b"http://a.example/"),), extra=locked), "") == Document(
        trouble=BROKEN
    )


def test_pdf_has_bounds_of_pages_and_links(monkeypatch):
    monkeypatch.setattr(pdf, "PAGES_MAX", 2)
    assert pdf.read(make_pdf(b"one", b"two", b"three"), "").text == "one\ntwo"
    monkeypatch.setattr(pdf, "LINKS_MAX", 3)
    annotations = tuple(uri(b"http://a.example/%d" % number) for number in range(9))
    assert len(pdf.read(make_pdf(b"one", annotations=annotations), "").links) == 3


def test_docx_gives_hyperlinks_fields_title_and_text():
    body = (
        "<w:p><w:r><w:t>Hel</w:t></w:r><w:r><w:t>lo</w:t></w:r></w:p>"
        '<w:p><w:fldChar/><w:instrText> HYPERLINK "http://field.</w:instrText><w:instrText>example/"</w:instrText><w:fldChar/><w:t>world</w:t></w:p>'
        "<w:fldSimple w:instr='HYPERLINK \"http://simple.example/\"'/>"
    )
    read = office.read(make_docx("http://x.example/?a=1&amp;b=2", "page.html", title=" A\n title ", body=body), "")
    assert links(read) == [
        (DOCUMENT, text)
        for text in ("http://x.example/?a=1&b=2", "page.html", "http://field.example/", "http://simple.example/")
    ]
    assert read.title == "A title" and read.text == "Hello world"


def test_only_outer_hyperlinks_of_relationships_count():
    parts = {
        "word/_rels/a.rels": relationships("media/image1.png", mode="Internal"),
        "word/_rels/b.rels": relationships("http://a.example/template.dotm", kind="attachedTemplate"),
        "ppt/slides/_rels/slide1.xml.rels": relationships("http://slide.example/"),
        "xl/worksheets/_rels/sheet1.xml.rels": relationships("http://sheet.example/"),
        "ppt/slides/slide1.xml": "<p:sld><a:p><a:t>on a slide</a:t></a:p></p:sld>",
        "xl/sharedStrings.xml": "<sst><si><t>one</t></si><si><t>two</t></si></sst>",
    }
    read = office.read(make_zip(parts), "")
    assert targets(read) == ["http://slide.example/", "http://sheet.example/"]
    assert read.text == "on a slide one two"


def test_odt_gives_links_of_its_text_and_shapes():
    body = (
        '<text:p>See <text:a xlink:href="http://a.example/">here</text:a>, '
        '<text:a xlink:href="../beside.odt">beside</text:a>'
        '<text:a xlink:href="#part">below</text:a></text:p><draw:image xlink:href="http://a.example/picture.png"/>'
        '<draw:a xlink:href="http://shape.example/"><draw:frame/></draw:a>'
        '<presentation:event-listener xlink:href="http://click.example/"/>'
    )
    content = make_zip(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": (
                f"<office:document><office:styles>none</office:styles>"
                f"<office:body>{body}</office:body></office:document>"
            ),
            "meta.xml": (
                "<office:document-meta><office:meta><dc:title>Um título</dc:title></office:meta></office:document-meta>"
            ),
        },
        zipfile.ZIP_STORED,
    )
    read = office.read(content, "")
    assert office.looks_like(content[:1024])
    assert targets(read) == ["http://a.example/", "beside.odt", "http://shape.example/", "http://click.example/"]
    assert read.title == "Um título" and read.text == "See here, besidebelow"


def test_epub_gives_links_that_leave_the_book():
    chapter = (
        '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">'
        '<html><head><title>no</title></head><body><p>One&nbsp;</p><a href="http://a.example/">x</a>'
        '<a href="two.xhtml#b">y</a></body></html>'
    )
    content = make_zip(
        {
            "META-INF/container.xml": "<container/>",
            "OEBPS/book.opf": "<package><dc:title>A book</dc:title></package>",
            "OEBPS/one.xhtml": chapter,
        }
    )
    read = office.read(content, "")
    assert office.looks_like(content[:1024]) and not office.looks_like(make_zip({"META-INF/MANIFEST.MF": ""})[:1024])
    assert (read.title, targets(read), read.text) == ("A book", ["http://a.example/"], "One xy")


def test_parts_in_utf_16_and_broken_parts():
    parts = {
        "word/_rels/broken.rels": relationships("http://before.example/").replace("</Relationships>", "<&"),
        "word/_rels/wide.rels": relationships("http://wide.example/").replace("UTF-8", "UTF-16").encode("utf-16"),
        "word/_rels/odd.rels": relationships("http://odd.example/").replace("UTF-8", "no-such-charset"),
    }
    assert targets(office.read(make_zip(parts), "")) == [
        "http://before.example/",
        "http://wide.example/",
        "http://odd.example/",
    ]


def test_a_zip_file_that_is_cut_off_gives_its_whole_entries():
    content = make_zip(
        {
            "[Content_Types].xml": "<Types/>",
            "word/_rels/document.xml.rels": relationships("http://a.example/"),
            "word/_rels/header.xml.rels": relationships("http://b.example/"),
            "word/media/x": bytes(9999),
        }
    )
    read = office.read(content[: content.index(b"PK\x01\x02")], "")
    assert (targets(read), read.trouble) == (["http://a.example/", "http://b.example/"], BROKEN)
    half = content[: content.index(b"word/_rels") + 150]
    assert office.read(half, "") == Document(trouble=BROKEN)


WORD = (
    b"x" * 500
    + '\x13 HYPERLINK "http://wide.example/ção" \x14click\x15'.encode("utf-16-le")
    + b'\x13 HYPERLINK "http://narrow.example/a" \\t "_blank" \x14 and http://text.example/b_(c), (http://text.example/d).\r'
    + "https://wide-text.example/x.".encode("utf-16-le")
    + b'\0http://schemas.example/name HYPERLINK \\l "here"'
)
IN_WORD = [
    (DOCUMENT, "http://narrow.example/a"),
    (DOCUMENT, "http://wide.example/ção"),
    (TEXT, "http://text.example/b_(c)"),
    (TEXT, "http://text.example/d"),
    (TEXT, "https://wide-text.example/x"),
]


@pytest.mark.parametrize("length", [0, 6000], ids=["small stream", "large stream"])
@pytest.mark.parametrize("backwards", [False, True], ids=["in order", "fragmented"])
def test_word_97_gives_fields_urls_and_title(length, backwards):
    streams = {"WordDocument": WORD.ljust(length, b"."), SUMMARY: summary("Título".encode("cp1252"))}
    content = make_compound(streams, backwards=backwards)
    read = doc.read(content, "")
    assert links(read) == IN_WORD and read.title == "Título"


@pytest.mark.parametrize(
    "title, codepage, expected",
    [
        ("Тест".encode("cp1251"), 1251, "Тест"),
        ("é".encode(), 65001, "é"),
        (b"plain\0rest", 4242, "plain"),
        (b"", 1252, ""),
    ],
)
def test_titles_of_compound_files_have_a_codepage(title, codepage, expected):
    assert doc.read(make_compound({SUMMARY: summary(title, codepage)}), "").title == expected


def test_a_compound_file_that_is_cut_off_is_searched_as_it_lies():
    content = make_compound({"WordDocument": WORD.ljust(6000, b".")})
    assert links(doc.read(content[:4000], "")) == IN_WORD


ACTIONS = (
    get_url(b"http://a.example/")
    + get_url(b"page.html", b"")
    + get_url(b"FSCommand:quit")
    + constant_pool(b"http://pool.example/x?y", b"no")
)


@pytest.mark.parametrize("packing", [b"FWS", b"CWS", b"ZWS"])
def test_flash_gives_targets_of_actions_and_urls_of_constants(packing):
    strings = b"\x10http://b.example" + b"\x25" + b"more" * 9 + b"." + b"\x80\x01http://" + b"c" * 121
    strings += b"Ahttp://adobe.com/AS3/2006/builtin"
    sprite = b"\1\0\1\0" + swf_tag(12, get_url(b"in/sprite")) + swf_tag(0, b"")
    content = make_swf((12, ACTIONS), (39, sprite), (82, strings), (21, b"http://picture.example/"), packing=packing)
    read = swf.read(content, "")
    assert swf.looks_like(content[:1024])
    assert links(read) == [
        (DATA, text)
        for text in (
            "http://a.example/",
            "page.html",
            "http://pool.example/x?y",
            "in/sprite",
            "http://b.example",
            "http://" + "c" * 121,
        )
    ]


@pytest.mark.parametrize("packing", [b"FWS", b"CWS", b"ZWS"])
def test_flash_that_is_cut_off_gives_what_came_before(packing):
    noise = bytes(number * number % 251 for number in range(40_000))
    content = make_swf((12, ACTIONS), (21, noise), (12, get_url(b"late.html")), packing=packing)
    assert targets(swf.read(content[:-30], "")) == ["http://a.example/", "page.html", "http://pool.example/x?y"]


def test_text_that_begins_like_flash_is_not_flash():
    assert not swf.looks_like(b"FWS is the signature of a file that is not packed")
