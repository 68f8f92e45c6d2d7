"""Finds the start tags of a page without building its tree, which takes half the time; for pages in plain markup, which most are.

Theory. What a tree adds to the tags of a page is which of them count: its builder drops some (a form within a form, a cell outside of
tables), makes others twice (a link that is still open where its paragraph ends), and tells the tokeniser which elements hold no markup.
A page is plain where nothing of that can matter. Its tags are of known names, and in lower case unless they say nothing to us; it has no
template, frame set or formula, and in drawings and <select> nothing but shapes, words and options; between <a href> and </a> stand only text, images and inline elements that
are closed there, or, where no paragraph is open, blocks of them; its comments, scripts and attributes are spelt so that there is one way
to read them. Anything else, and be it a stray < or an unusual character reference, is NotPlain: then the tree is built. That both ways agree
is what tests/property/test_start_tags.py shows, but for the order of links in tables that hold other things than cells: a tree has those first.

One pattern takes in the whole page. It does so in linear time: repetitions are possessive, or none of their items begin alike, and the first
thing that does not fit ends it.
"""

import re
import sys
from collections import Counter
from typing import NamedTuple

IS_RE_RIGHT = sys.version_info >= (3, 11, 5)  # before, a possessive group that failed half-way stayed there (CPython issue 106052): no page is plain

BLOCK_LINKS_MAX = 50  # each is looked for in the whole page

_W = rb"[ \t\n\f\r]"
_VALUE = rb"""(?:"[^"]*+"|'[^']*+'|[^ \t\n\f\r"'=<>`]++)"""


def attributes(*but: str, letters: str = "a-z") -> bytes:
    """A pattern of attributes whose names are none of these."""
    others = rb"(?!(?:%s)[ \t\n\f\r=/>])" % "|".join(but).encode() if but else b""
    return rb"(?:%s++%s[%s0-9_:@.-]++(?:%s*+=%s*+%s)?+)*+" % (_W, others, letters.encode(), _W, _W, _VALUE)


def any_of(names: str) -> bytes:
    """A pattern of names, one alternative for each letter that they begin with: trying alternatives takes time."""
    by_letter: dict[str, list[str]] = {}
    for name in names.split():
        by_letter.setdefault(name[0], []).append(name[1:])
    return "(?:{})".format("|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items())).encode()


# Elements that say nothing to us, whatever the tree builder does with them, unless an attribute holds a link; frequent ones first.
_SILENT = any_of(
    "span p pre li div dt dd dl del dfn details code td tr th tt table tbody thead tfoot time br b big button blockquote em strong sub sup small "
    "samp section s strike summary ul u i ins h1 h2 h3 h4 h5 h6 hr header head caption colgroup col cite center ol nav noscript main mark "
    "label legend kbd var abbr acronym article aside address font footer figure figcaption fieldset wbr q"
)
_INLINE = rb"code|span|em|strong|b|i|tt|small|sub|sup|cite|var|kbd|samp|u|font|abbr|acronym|label"  # none closes what is open
_SOME = rb"{0,99}"  # not possessive, on which Python's re fails where groups are within; bounded, for what may be tried again takes memory
_PARTS = {
    b"w": _W, b"end": _W + rb"*+/?+>", b"any": attributes(), b"drawn": attributes(letters="a-zA-Z"), b"value": _VALUE,
    b"silent": _SILENT, b"inline": _INLINE, b"raw": rb"script|style|title|textarea",  # whose content is no markup
    b"told": any_of("meta link img html body base input form area embed object video audio source track bgsound"),
    b"unlinked": attributes("background", "cite", "formaction", "srcset"), b"no_href": attributes("href"),
}
_PARTS[b"choice"] = rb"select%(any)s%(end)s(?:[^<]++|</?(?:option|optgroup)%(any)s%(end)s)*+</select>" % _PARTS
_PARTS[b"drawing"] = rb"svg%(drawn)s%(end)s(?:[^<]++|</?(?:path|g|circle|ellipse|rect|line|polyline|polygon|text|tspan)%(drawn)s%(end)s)*+</svg>" % _PARTS


def inline(name: str, levels: int) -> bytes:
    """A pattern of text, images and inline elements, so deep in each other at most; groups are called by the name."""
    items = rb"[^<]++|<(?:img|br|wbr)%(any)s%(end)s|<%(drawing)s" % _PARTS
    if levels:
        group, content = f"{name}{levels}".encode(), inline(name, levels - 1)
        items += rb"|<(?P<%s>%s)%s%s%s</(?P=%s)>" % (group, _INLINE, _PARTS[b"any"], _PARTS[b"end"], content, group)
    return rb"(?:%s)%s" % (items, _SOME)


def blocks(name: str) -> bytes:
    """The same with paragraphs and headings between."""
    group = name.encode()
    return rb"(?:%s|<(?P<%s>p|h[1-6])%s%s%s</(?P=%s)>)" % (
        inline(name + "_", 1)[3:-1 - len(_SOME)], group, _PARTS[b"any"], _PARTS[b"end"], inline(name + "_in", 1), group)


_PARTS[b"content"] = inline("link", 2)  # as in <a><code><span>text</span></code></a>
_PARTS[b"blocks"] = rb"(?:%s|<div%s%s%s%s</div>)%s" % (
    blocks("outer"), _PARTS[b"any"], _PARTS[b"end"], blocks("inner"), _SOME, _SOME)
_PATTERN = (
    rb'[^<]*+(?:<(?:/(?:a>|span>|div>|li>|code>|p>|(?!form)[a-z][a-z0-9]*+%(w)s*+>)|%(silent)s(?:>| class="[^"]*+">|%(unlinked)s%(end)s)'
    rb'|a(?! href=| class="[^"]*+" href=)%(no_href)s%(end)s'
    rb"|!--(?!-?>)(?:[^-]++|-(?!-))*+-->|![dD][oO][cC][tT][yY][pP][eE][^>]*+>|\?[^>]*+>|%(choice)s|%(drawing)s|/?(?=[A-Z])(?i:%(silent)s)>)[^<]*+)*+"
    rb"""(?:(?P<a><a(?:(?: class="[^"]*+")?+ href=|%(no_href)s%(w)s++href%(w)s*+=%(w)s*+)(?:"(?P<double>[^"]*+)"|(?P<other>%(value)s))(?:>|%(any)s%(end)s))"""
    rb"(?:[^<]*+</a>|(?=%(content)s</a>)|(?=(?P<blocks>%(blocks)s</a>)))|<(?P<told>%(told)s)(?P<of_told>%(any)s)%(end)s"
    rb"|<(?P<raw>%(raw)s)(?P<of_raw>%(any)s)%(end)s(?P<text>(?:[^<]++|<(?!/(?i:%(raw)s)[ \t\n\f\r/>]|!--))*+)</(?P=raw)%(w)s*+>"
    rb"|<(?P<form_end>/form)>|\Z|(?P<rest>[\s\S]++))"
) % _PARTS
_NEXT = re.compile(_PATTERN)
_A, _DOUBLE, _OTHER, _BLOCKS, _TOLD, _OF_TOLD, _RAW, _OF_RAW, _TEXT, _FORM_END, _REST = (
    _NEXT.groupindex[name] - 1 for name in "a double other blocks told of_told raw of_raw text form_end rest".split()
)
_DIV = re.compile(rb"<div%(any)s%(end)s[^<>]*+" % _PARTS)
_ATTRIBUTE = re.compile(r"""([a-z0-9_:@.-]++)(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+(?:"([^"]*+)"|'([^']*+)'|([^ \t\n\f\r"'=<>`]++)))?+""")
_ONCE = (b"html", b"body", b"title", b"base")  # others are joined with the first, or follow it in the tree if not in the page
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "nbsp": "\xa0"}
# A known reference, one by number, or what is none: '&' and a blank, or in an attribute '&name='.
_REFERENCE = re.compile(rf"&(?:({'|'.join(_CHARACTERS)});|#([0-9]{{2,5}});|(?=[^a-zA-Z0-9#]|\Z)|(?P<parameter>[a-zA-Z0-9]++=)|(?P<unusual>))")


class NotPlain(Exception):
    """A page whose tree must be built."""


class PlainPage(NamedTuple):
    hrefs: list[str]  # of <a href>
    nofollow: list[bool]  # whether each is marked so
    tags: list[tuple[bytes, bytes, bytes]]  # others, which may have links or say something of the page: name, source of the attributes, text of those that hold no markup


def read_plain(html: bytes) -> PlainPage:
    """The start tags of a page in UTF-8, in their order; NotPlain where they may not tell what its tree would."""
    if not IS_RE_RIGHT:
        raise NotPlain
    found = _NEXT.findall(html)
    if any([tag[_REST] for tag in found[-2:]]) or b"\0" in html:  # an empty tag at the end follows the last one
        raise NotPlain
    anchors = [tag for tag in found if tag[_A]]
    if any([tag[_BLOCKS] for tag in anchors]) and not are_paragraphs_closed(html, [tag[_A] + tag[_BLOCKS] for tag in anchors if tag[_BLOCKS]]):
        raise NotPlain
    links = [tag[_A] for tag in anchors]
    nofollow = list(map(is_nofollow, links)) if may_be_nofollow(b"".join(links)) else [False] * len(links)
    tags = [(tag[_TOLD] or tag[_RAW] or tag[_FORM_END], tag[_OF_TOLD] or tag[_OF_RAW], tag[_TEXT]) for tag in found if not tag[_A]]
    names = [name for name, _, _ in tags]
    forms = [name for name in names if name in (b"form", b"/form")]
    if any([names.count(name) > 1 for name in _ONCE]) or (b"form", b"form") in zip(forms, forms[1:]):
        raise NotPlain
    return PlainPage(decode_values([tag[_DOUBLE] or strip_quotes(tag[_OTHER]) for tag in anchors]), nofollow, tags)


def are_paragraphs_closed(html: bytes, links: list[bytes]) -> bool:
    """Whether links that hold blocks stand where no paragraph is open that a block would end: as the first thing in a <div>, which has
    ended it, or behind another such link. They are given as they stand in the page; what may stand in a comment too is not found."""
    if len(links) > BLOCK_LINKS_MAX or any([html.count(link) != count for link, count in Counter(links).items()]):
        return False
    end = 0  # of the link before
    for link in links:
        start = html.index(link, end)
        if not (end and b"<" not in html[end:start]) and not is_within_div(html, start):
            return False
        end = start + len(link)
    return True


def is_within_div(html: bytes, end: int) -> bool:
    """Whether the last tag before `end` begins a <div>; a comment, or a value, that holds such a tag has a > behind it, and <? and <!doctype a < before."""
    start = max(html.rfind(b"<", 0, end), 0)
    return _DIV.fullmatch(html, start, end) is not None and b"<" not in html[html.rfind(b">", 0, start) + 1:start]


def read_attributes(source: bytes) -> dict[str, str]:
    """Attributes by name; the first of a name counts."""
    pairs = [(name, double or single or bare) for name, double, single, bare in reversed(_ATTRIBUTE.findall(source.decode()))]
    return dict(pairs) if b"&" not in source and b"\r" not in source else {name: decode_value(value) for name, value in pairs}


def is_nofollow(link: bytes) -> bool:
    """Whether a tag <a ...> says so."""
    return may_be_nofollow(link) and "nofollow" in read_attributes(link[len(b"<a"):]).get("rel", "").lower().split()


def may_be_nofollow(links: bytes) -> bool:
    """Whether one of the tags may say so: to read their attributes takes longer."""
    return b"rel" in links and (b"nofollow" in links.lower() or b"&#" in links)


def strip_quotes(value: bytes) -> bytes:
    return value[1:-1] if value[:1] == b"'" else value


def decode_values(values: list[bytes]) -> list[str]:
    joined = b"\n".join(values)
    texts = joined.decode().split("\n") if joined.count(b"\n") == len(values) - 1 else [value.decode() for value in values]
    if b"\r" in joined:
        raise NotPlain
    return [decode_value(text) if "&" in text else text for text in texts] if b"&" in joined else texts


def decode_value(text: str) -> str:
    """The value of an attribute whose source is this."""
    if "\r" in text:
        raise NotPlain
    return _REFERENCE.sub(replace_reference, text) if "&" in text else text


def decode_text(text: bytes) -> str:
    """The text of an element, but for how its lines end."""
    if b"&" in text and any(found["parameter"] for found in _REFERENCE.finditer(text.decode())):
        raise NotPlain
    return _REFERENCE.sub(replace_reference, text.decode())


def replace_reference(found: re.Match) -> str:
    name, number = found[1], int(found[2] or 0)
    if found["unusual"] is not None or number and not (0x20 <= number < 0x7F or 0xA0 <= number < 0xD800):
        raise NotPlain
    return _CHARACTERS[name] if name else chr(number) if number else found[0]
