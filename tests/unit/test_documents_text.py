"""Documents that are text: where URLs end in prose, in style sheets, in JSON, in scripts and inside URLs."""

import pytest

from contract.config import LINK_KINDS
from stages.extractor.documents import css, json_text, script, text
from stages.extractor.documents.embedded_urls import find_embedded


def read(reader, content: str | bytes, charset: str = "utf-8") -> list[tuple[str, str]]:
    document = reader.read(content.encode() if isinstance(content, str) else content, charset)
    return [(LINK_KINDS[kind], link) for kind, link, _ in document.links]


@pytest.mark.parametrize(
    "prose, expected",
    [
        ("http://a.com/\nhttps://b.com/x\r\nHTTP://C.com", ["http://a.com/", "https://b.com/x", "HTTP://C.com"]),
        (
            "See http://a.com/x. Or http://a.com/y, http://a.com/z; what of http://a.com/w?!",
            ["http://a.com/x", "http://a.com/y", "http://a.com/z", "http://a.com/w"],
        ),
        ("http://a.com/x.html http://a.com/?q=a,b;c:d!e", ["http://a.com/x.html", "http://a.com/?q=a,b;c:d!e"]),
        (
            "<http://a.com/x> \"http://a.com/y\" 'http://a.com/z' `http://a.com/w`",
            ["http://a.com/x", "http://a.com/y", "http://a.com/z", "http://a.com/w"],
        ),
        ("'http://a.com/x'y http://a.com/it's", ["http://a.com/x", "http://a.com/it's"]),
        (
            "(http://a.com/x) (see http://a.com/y_(z)) [http://a.com/w] {http://a.com/v}.",
            ["http://a.com/x", "http://a.com/y_(z)", "http://a.com/w", "http://a.com/v"],
        ),
        (
            "[x](http://a.com/x)[y](http://a.com/y), **http://a.com/z**",
            ["http://a.com/x", "http://a.com/y", "http://a.com/z"],
        ),
        ("http://a.com/x,http://b.com/y;https://c.com/z", ["http://a.com/x", "http://b.com/y", "https://c.com/z"]),
        ("http://web.archive.org/web/http://a.com/x", ["http://web.archive.org/web/http://a.com/x"]),
        (
            "http://a.com/ação http://пример.рф/путь http://例え.jp/日本。次",
            ["http://a.com/ação", "http://пример.рф/путь", "http://例え.jp/日本"],
        ),
        (
            "«http://a.com/x» “http://a.com/y” 请看http://a.com/z，谢谢",
            ["http://a.com/x", "http://a.com/y", "http://a.com/z"],
        ),
        ("http://[::1]:80/x http://a.com\\nhttp://b.com|c", ["http://[::1]:80/x", "http://a.com", "http://b.com"]),
        ("http:// https://. http://... http:/a.com ftp://a.com www.a.com //a.com http//a.com", []),
        ("http://a.com/" + "x" * 8_000 + " http://b.com", ["http://b.com"]),
        ("", []),
    ],
)
def test_urls_in_prose(prose, expected):
    assert list(text.find_urls(prose)) == expected


def test_text_is_read_in_its_charset():
    assert read(text, "http://a.com/мир".encode("koi8-r"), "koi8-r") == [("text", "http://a.com/мир")]
    assert read(text, b"\xff\xfe" + "http://a.com/é".encode("utf-16le"), "utf-16le") == [("text", "http://a.com/é")]


@pytest.mark.parametrize(
    "sheet, expected",
    [
        (
            '@import \'a.css\'; @IMPORT url(b.css) screen; @import\turl( "c.css" );@import/* x */"d.css"',
            [("style", "a.css"), ("style", "b.css"), ("style", "c.css"), ("style", "d.css")],
        ),
        (
            "a{background:#fff URL( 'a.png' ) no-repeat,url(b.png)} @font-face{src:url(//c/d.woff)format('x')}",
            [("image", "a.png"), ("image", "b.png"), ("image", "//c/d.woff")],
        ),
        ("/* url(a) @import 'b' */ c{content:'url(d)';x:\"\\\"url(e)\"} /*url(f)", []),
        (
            "url(a\\)b.png) url('c\\26 d\\\ne') url('\\0\\d800\\110000')",
            [("image", "a)b.png"), ("image", "c&de"), ("image", "\ufffd\ufffd\ufffd")],
        ),
        ("url(data:image/png;base64,xx) url(#filter) url() url('') my-url(a) xurl(b) @imported 'c'", []),
        ("@namespace svg url(http://www.w3.org/2000/svg); @namespace 'x'; url(y)", [("image", "y")]),
        ("@namespace url(x); url(a b) url(c'd) url(e", [("image", "e")]),
        ("a{x:'never closed\n} b{y:url(z)}", [("image", "z")]),
        ("url(ação.png)", [("image", "ação.png")]),
    ],
)
def test_css(sheet, expected):
    assert read(css, sheet) == expected


@pytest.mark.parametrize(
    "content, expected",
    [
        (r'{"a": "http:\/\/a.com\/x?y=1", "http://a.com/key": 1}', ["http://a.com/x?y=1", "http://a.com/key"]),
        (
            r'["see https://a.com/\u00e9\u0026b=1 now", "\u003ca href=\u0022http://b.com/\u0022\u003e", "http://c.com/\ud83d\ude00"]',
            ["https://a.com/é&b=1", "http://b.com/", "http://c.com/😀"],
        ),
        (r'{"a": "<a href=\"http://a.com/x\">\nhttp://b.com\tc"', ["http://a.com/x", "http://b.com"]),
        (r'{"a: "http://a.com/x", }}} "\uZZ \u12', ["http://a.com/x"]),
        (r'"http://a.com/\ud800"', ["http://a.com/\ufffd"]),
        ('{"a": "/x", "b": 1e999}', []),
        ("[" * 100_000 + '"http://a.com/"', ["http://a.com/"]),
    ],
)
def test_json(content, expected):
    assert read(json_text, content) == [("data", url) for url in expected]


@pytest.mark.parametrize(
    "source, expected",
    [
        (
            r"""var a = "http:\/\/a.com\/x?y=1", b = 'https://b.org:80/(x)', c = `//cdn.c.org/q`""",
            ["http://a.com/x?y=1", "https://b.org:80/(x)", "//cdn.c.org/q"],
        ),
        (
            """go('/path/x'); go("./y"); go("../z/w.js"); go('/?q=1#top'); go("/a")""",
            ["/path/x", "./y", "../z/w.js", "/?q=1#top"],
        ),
        (
            """open("page2.html?x=1#y"); open('sub/index.php'); open("Report.PDF")""",
            ["page2.html?x=1#y", "sub/index.php", "Report.PDF"],
        ),
        (r'''"\u002fesc\u002fq" + '\x2fhex/x' + "<a href=\"/inner\">" + "/\ud800"''', ["/esc/q", "/hex/x", "/inner"]),
        (
            (
                """f("text/html", "d/m/Y", "/", "//", "/2/3", "</div>", "http://", """
                """"http://www.", "foo.json", "a.b", "x y.html", "/i")"""
            ),
            [],
        ),
        ("""x.replace(/["']/g, '/fixed/path'); // don't\ny = "/next/line" """, ["/fixed/path", "/next/line"]),
        ("`/t/${x}` '/open/ended", []),
        ("'http://a.com/" + "x" * 8_000 + "'", []),
    ],
)
def test_scripts(source, expected):
    assert list(script.find_links(source)) == expected
    assert read(script, source) == [("data", link) for link in expected]


@pytest.mark.parametrize(
    "url, expected",
    [
        (
            "http://a.com/?u=http%3A%2F%2Fb.com%2F%3Fx%3D1%26y&v=https://c.com/x",
            ["http://b.com/?x=1&y", "https://c.com/x"],
        ),
        ("http://web.archive.org/web/2010/http://b.com/x?y=1&z", ["http://b.com/x?y=1&z"]),
        ("http://a.com/web/http://b.com/x?u=https://c.com/", ["http://b.com/x?u=https://c.com/", "https://c.com/"]),
        ("http://a.com/r/HTTP%3a%2F%2fb.com%2Fq/x", ["HTTP://b.com/q"]),
        ("http://a.com/?http://b.com/?x=1&y=2", ["http://b.com/?x=1&y=2"]),
        ("http://a.com/?http%3A%2F%2Fb.com", ["http://b.com"]),
        ("http://a.com/?u=http://b.com&v=http://b.com", ["http://b.com"]),
        ("http://a.com/?u=http%3A%2F%2Fb.com%2F%C3%A7", ["http://b.com/ç"]),
        ("http://a.com/?u=http%3A%2F%2Fb.com%2F%E7%20", ["http://b.com/%E7 "]),
        ("http://a.com/?x=http%253A%252F%252Fb.com", []),
        ("http://a.com/http/https:", []),
        ("http://a.com/?u=http://", []),
        ("http://a.com/?u=see%20http://b.com", []),
        ("http://a.com/#http://b.com", []),
        ("http://a.com/?u=http://b.com/\ud800", ["http://b.com/?"]),
        ("", []),
    ],
)
def test_urls_inside_urls(url, expected):
    assert list(find_embedded(url)) == expected


@pytest.mark.parametrize(
    "start, claimed",
    [
        (b'{"a": 1}', "json"),
        (b"\xef\xbb\xbf [\n{", "json"),
        (b"[1, 2]", ""),
        (b"{a}", ""),
        (b'@charset "utf-8";', "css"),
        (b"@import url(x);", "css"),
        (b"@import foo", ""),
        (b"hello", ""),
        (b"", ""),
    ],
)
def test_how_documents_begin(start, claimed):
    readers = {"json": json_text, "css": css, "script": script}
    assert [name for name, reader in readers.items() if reader.looks_like(start)] == claimed.split()


@pytest.mark.parametrize(
    "start, is_text",
    [
        (b"hello\n\tworld\x1b[0m\x0c", True),
        ("ação".encode("latin-1"), True),
        ("é".encode("utf-16"), True),
        (b"\x89PNG\r\n\x1a\n", False),
        (b"a\0b", False),
        (b"", False),
    ],
)
def test_what_may_be_text(start, is_text):
    assert text.looks_like(start) == is_text
