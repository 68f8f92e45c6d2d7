"""Any bytes, in any charset, give a Document.

No reader of text or XML raises, and what it gives has the promised form.
"""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.config import LINK_KINDS
from stages.extractor.charset import LABELS, choose_charset, encoding_of, to_page_query, to_text, to_utf_8
from stages.extractor.document import TITLE_MAX_CHARACTERS, Document
from stages.extractor.documents import css, feed, json_text, script, sitemap, text, xml
from stages.extractor.documents.embedded_urls import find_embedded
from tests.sampling import sampling

READERS = (sitemap, feed, xml, text, css, json_text, script)
CHARSETS = st.sampled_from([*LABELS, "", "unheard of"])
PIECES = st.sampled_from(
    [
        b"<?xml version='1.0' encoding='x'?>",
        b"<urlset>",
        b"<loc>",
        b"</loc>",
        b"<rss>",
        b"<item>",
        b"</item>",
        b"<link>",
        b"<link href='x'/>",
        b"<a href='x' rel='y'>",
        b"<guid isPermaLink='false'>",
        b"<title>",
        b"</title>",
        b"<![CDATA[",
        b"]]>",
        b"<!--",
        b"-->",
        b"<!DOCTYPE a [",
        b"<!ENTITY a 'b'>",
        b"]>",
        b"&a;",
        b"&amp;",
        b"&",
        b"&#xD800;",
        b"&#0;",
        b"<?xml-stylesheet href='x'?>",
        b"xmlns='http://www.w3.org/1999/xhtml'",
        b"http://a/",
        b"https://",
        b"(",
        b")",
        b"'",
        b'"',
        b"`",
        b"\\",
        b"\\u",
        b"\\ud800",
        b"\\u0041",
        b"\\/",
        b"url(",
        b"@import ",
        b"/*",
        b"*/",
        b"\\110000",
        b"{",
        b"[",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x1f\x8b\x08",
        b"\xe9",
        b"?",
        b"%",
        b"%3A%2F%2F",
        b" ",
        b"\n",
    ]
)
CONTENT = st.one_of(st.binary(max_size=200), st.lists(PIECES | st.binary(max_size=4), max_size=40).map(b"".join))


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__.rpartition(".")[2])
@settings(max_examples=sampling.examples(150))
@given(content=CONTENT | CONTENT.map(gzip.compress), charset=CHARSETS)
def test_any_bytes_give_a_document(reader, content, charset):
    assert isinstance(reader.looks_like(content[:1024]), bool)
    document = reader.read(content, charset)
    assert isinstance(document, Document) and len(document.title) <= TITLE_MAX_CHARACTERS
    for (kind, link, nofollow), occurrences in document.links.items():
        assert 0 <= kind < len(LINK_KINDS) and link and isinstance(nofollow, bool) and occurrences > 0
        link.encode("utf-8")  # no lone surrogates


@settings(max_examples=sampling.examples(150))
@given(
    CONTENT, st.sampled_from(["", "text/html", "text/css", "application/xml"]), st.booleans(), st.binary(max_size=12)
)
def test_any_bytes_have_a_charset_and_a_text(content, kind, has_markup, label):
    charset = choose_charset(content, f"{kind}; charset={label.decode('latin-1')}", has_markup=has_markup)
    assert encoding_of(charset) == charset
    assert to_utf_8(content, charset) == to_text(content, charset).encode("utf-8")


@settings(max_examples=sampling.examples(150))
@given(
    st.text(max_size=20),
    st.text(alphabet=st.characters(blacklist_characters="#"), max_size=20),
    st.text(max_size=20),
    CHARSETS,
)
def test_only_the_query_is_encoded(path, query, fragment, charset):
    path = path.replace("?", "").replace("#", "")
    found = to_page_query(f"{path}?{query}#{fragment}", charset)
    assert found.startswith(f"{path}?") and found.endswith(f"#{fragment}")
    encoded = found[len(path) + 1 : len(found) - len(fragment) - 1]
    assert encoded.isascii() or charset in ("utf-8", "utf-16le", "utf-16be", "replacement")
    assert encoded == query or not query.isascii()


@settings(max_examples=sampling.examples(150))
@given(st.text(max_size=60) | CONTENT.map(lambda content: content.decode("latin-1")))
def test_any_text_may_be_a_url(url):
    assert all(found.lower().startswith(("http://", "https://")) for found in find_embedded(url))
