"""Whatever bytes a binary document has, its reader gives a Document and raises nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.extractor.document import Document
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
    uri,
)
from tests.sampling import sampling

WORD = b'HYPERLINK "http://a.example/" http://b.example/ ' + "http://c.example/".encode("utf-16-le")
GOOD = {
    "pdf": (
        pdf,
        [make_pdf(b"http://a.example/ one", b"two", annotations=(uri(b"http://b.example/"),), title=b"title")],
    ),
    "office": (
        office,
        [
            make_docx("http://a.example/", body="<w:t>text</w:t>"),
            make_zip({"word/_rels/a.rels": relationships("http://a.example/")}, 0),
        ],
    ),
    "doc": (
        doc,
        [
            make_compound({"WordDocument": WORD, "\x05SummaryInformation": summary(b"title")}),
            make_compound(
                {"WordDocument": WORD.ljust(6_000), "\x05SummaryInformation": summary(b"title").ljust(4_096)},
                backwards=True,
            ),
        ],
    ),
    "swf": (
        swf,
        [
            make_swf(
                (12, get_url(b"http://a.example/") + constant_pool(b"http://b.example/")),
                (82, b"\x10http://c.example"),
                packing=packing,
            )
            for packing in (b"FWS", b"CWS", b"ZWS")
        ],
    ),
}
MAGICS = [b"", b"%PDF-1.4\n", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"FWS\x0a", b"CWS\x0a", b"ZWS\x0a"]


def assert_document(module, content: bytes) -> None:
    read = module.read(content, "")
    assert type(read) is Document
    assert all(
        type(kind) is int and text and type(text) is str and count > 0 for (kind, text, _), count in read.links.items()
    )
    assert type(module.looks_like(content[:1024])) is bool


@pytest.mark.parametrize("module", [module for module, _ in GOOD.values()], ids=list(GOOD))
@settings(max_examples=sampling.examples(60))
@given(magic=st.sampled_from(MAGICS), rest=st.binary(max_size=2_000))
def test_any_bytes_give_a_document(module, magic, rest):
    assert_document(module, magic + rest)


@pytest.mark.parametrize("name", GOOD)
@settings(max_examples=sampling.examples(150))
@given(data=st.data())
def test_good_files_with_bytes_changed_taken_out_and_put_in_give_a_document(name, data):
    module, samples = GOOD[name]
    content = bytearray(data.draw(st.sampled_from(samples)))
    for _ in range(data.draw(st.integers(1, 8))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(start + 8, len(content))))
        content[start:end] = data.draw(
            st.binary(max_size=8) | st.sampled_from([b"\xff\xff\xff\xff", b"\0\0\0\0", b"PK\x03\x04", b"<!"])
        )
    assert_document(module, bytes(content))


@pytest.mark.parametrize("name", GOOD)
@settings(max_examples=sampling.examples(40))
@given(share=st.floats(0, 1))
def test_good_files_cut_off_anywhere_give_a_document(name, share):
    module, samples = GOOD[name]
    for sample in samples:
        assert_document(module, sample[: int(len(sample) * share)])
