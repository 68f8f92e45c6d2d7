"""A page in plain markup says the same without its tree as with it, whatever stands in it."""

from hypothesis import given
from hypothesis import strategies as st

from stages.extractor.document import Document
from stages.extractor.documents.html import read_tree
from stages.extractor.documents.html_elements import Options
from stages.extractor.documents.html_plain import take_plain
from stages.extractor.documents.start_tags import NotPlain, load_scan, read_plain

load_scan()

TAGS = [
    "a",
    "p",
    "div",
    "span",
    "code",
    "b",
    "i",
    "em",
    "li",
    "ul",
    "table",
    "tr",
    "td",
    "th",
    "caption",
    "colgroup",
    "head",
    "body",
    "html",
    "noscript",
    "button",
    "h1",
    "h2",
    "br",
    "img",
    "link",
    "script",
    "style",
    "title",
    "textarea",
    "base",
    "form",
    "input",
    "area",
    "object",
    "video",
    "source",
    "select",
    "option",
    "svg",
    "path",
    "g",
    "meta",
    "font",
    "nobr",
    "pre",
    "center",
    "q",
    "ins",
    "blockquote",
    "template",
    "math",
    "frameset",
    "P",
    "Code",
    "BR",
    "TD",
    "A",
    "FORM",
    "Title",
    "IMG",
    "my-tag",
]
NAMES = [
    "href",
    "HREF",
    "Src",
    "src",
    "rel",
    "name",
    "content",
    "http-equiv",
    "action",
    "data",
    "cite",
    "background",
    "lang",
    "xml:lang",
    "srcset",
    "imagesrcset",
    "class",
    "id",
    "title",
    "method",
    "formaction",
    "poster",
]
VALUES = [
    "x",
    "y/z",
    "?a=1&b=2",
    "a&amp;b",
    "&lt;",
    "#f",
    "",
    "a b",
    "&#39;",
    "&#8212;",
    "&#128;",
    "&copy",
    "&copy;",
    "&notit;",
    "&amp=1",
    "&",
    "& ",
    "\n",
    "\r\n",
    "é",
    "nofollow",
    "canonical",
    "stylesheet",
    "noindex",
    "robots",
    "refresh",
    "0;url=q",
    "a>b",
    "<a href=z>",
    "x#y",
    "&amp;#y",
    "&#35;y",
    " #y",
    "a #b#c",
    "&#00;",
]
WHOLE = [
    "<!-- c -->",
    "<!---->",
    "<!--->",
    "<!-- -- -->",
    "<!--a--!>",
    "<!--a---->",
    "<!>",
    "<!x>",
    "<![if x]>",
    "<? y>",
    "<!-->",
    "<!--a--b-->",
    "<!doctype html>",
    "<?xml x?>",
    "<!-- <a href=q></a> -->",
    "<![CDATA[x]]>",
    "<script>'<a href=z>'</script>",
    "<script><!--<script></script>--></script>",
    "<style>a<b</style>",
    "<style><!-- <a href=s> --></style>",
    "<script><!-- '<a href=z>' </SCRIPT >",
    "<script><!-- <script> </script>",
    "<svg/>",
    "<svg><!-- c --><g/></svg>",
    "<select><!-- c --><option>x</select>",
    "<a href=k>t<!-- </a> -->u</a>",
    "<title>T &amp; u</title>",
    "<title>&copy=</title>",
    "<textarea><a href=n></a></textarea>",
    "<select><option>x</select>",
    "<svg viewBox='0'><path d=M /></svg>",
    "<svg><text x=1>t<tspan>u</tspan></text></svg>",
    "<svg><text><p>t</text></svg>",
    "<!--<div><a href=x><p>x</p></a>-->",
    "<svg><a href=v><title>w</title></a></svg>",
    "text",
    "<",
    "< b",
    "&amp;",
    "\0",
    "</a >",
    "</form>",
]


def spell(name: str, value: str, form: str) -> str:
    return form.format(name=name, value=value)


attributes = st.lists(
    st.builds(
        spell,
        st.sampled_from(NAMES),
        st.sampled_from(VALUES),
        st.sampled_from(
            [
                ' {name}="{value}"',
                " {name}='{value}'",
                " {name}={value}",
                " {name}",
                '\n{name} = "{value}"',
                '/{name}="{value}"',
            ]
        ),
    ),
    max_size=3,
).map("".join)
start_tags = st.builds("<{}{}{}>".format, st.sampled_from(TAGS), attributes, st.sampled_from(["", "", " /"]))
end_tags = st.sampled_from(TAGS).map("</{}>".format)
inline = st.lists(
    st.sampled_from(["text", "<b>x</b>", "<code><span>y</span></code>", "<img src=i>", "<br>", "</b>", "<b>", "<div>"]),
    max_size=2,
).map("".join)
links = st.builds('<a{} href="{}"{}>{}</a>'.format, attributes, st.sampled_from(VALUES), attributes, inline)
blocks = st.builds(
    "{}<a href=x>{}</a>{}".format,
    st.sampled_from(["<div>", "<p>", "<p><div>", "<div><p>", "", '<p title="<div>">', "<?x <div>"]),
    st.lists(
        st.sampled_from(["t", "<p>x</p>", "<p>", "<h2>a</h2>", "<div><p>q</p></div>", "<div>", "</div>", "</p>"]),
        max_size=3,
    ).map("".join),
    st.sampled_from(["", " ", "<a href=k><p>y</p></a>"]),
)
pages = st.lists(st.one_of(links, links, blocks, start_tags, end_tags, st.sampled_from(WHOLE)), max_size=12).map(
    "".join
)


def without_order(document: Document) -> tuple:
    """Tables with other things than cells in them put those before themselves, so that links of a tree may stand in
    another order.
    """
    return (
        document.title,
        document.language,
        document.base,
        document.canonical,
        document.noindex,
        document.nofollow,
        sorted(document.links.items()),
    )


@given(pages)
def test_plain_pages_say_the_same_without_a_tree(page):
    html, options = page.encode(), Options("coletor")
    try:
        found = take_plain(read_plain(html), options)
    except NotPlain:
        return
    assert without_order(found) == without_order(read_tree(html, options))
