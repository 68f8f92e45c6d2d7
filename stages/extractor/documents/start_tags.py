"""Finds the start tags of a page in plain markup without its tree, in an eighth of the time. Most pages are plain.

Theory. A tree decides which tags of a page count. Its builder drops some (a form within a form, a cell outside of
tables), makes others twice (a link that is still open where its paragraph ends), and decides which elements hold no
markup. A page is plain where none of this can matter:
- All its tags have known names. It has no template, frame set or formula. Drawings and <select> hold nothing but
  shapes, words and options.
- Between <a href> and </a> stand only text, images, and inline elements that are closed there. Blocks of them may
  stand there too where no paragraph is open: as the first thing in a <div>, which has ended paragraphs, or behind
  another such link.
- There is only one way to read its scripts and attributes as they are spelt.
Any other page, even one with an unusual character reference, is NotPlain, and its tree is built. Both ways agree
(tests/property/test_start_tags.py), except for the order of links in tables that hold more than cells: a tree has
those links first.

The loop itself is compiled (tag_scan.py). Importing numba takes as long as the trees of some two thousand pages. So
load_scan() is called where numba is imported already or there are more pages; before that, no page is plain.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stages.extractor.document import without_fragment
from stages.extractor.documents import tag_scan
from stages.extractor.documents.nesting import FORMATTING_NAMES, cut_tangled, find_tags, may_be_tangled

SLOTS_LEAST = 1 << 10  # of the hash table of names: trying smaller ones, which all have collisions, takes longer
KEPT_MAX = 1 << 14  # tags per page; a page with more gets its tree
TEXT_MAX_BYTES = 1 << 14  # of a title, likewise: each of its references costs a microsecond here

_NAMES = {  # bits of tag_scan.py: names of elements
    "SILENT": "span p pre li div dt dd dl del dfn details code td tr th tt table tbody thead tfoot time br b big "
    "button blockquote em strong sub sup small samp section s strike summary ul u i ins h1 h2 h3 h4 h5 h6 hr header "
    "head caption colgroup col cite center ol nav noscript main mark label legend kbd var abbr acronym article aside "
    "address font footer figure figcaption fieldset wbr q",
    "INLINE": "code span em strong b i tt small sub sup cite var kbd samp u font abbr acronym label",
    "BLOCK": "div p h1 h2 h3 h4 h5 h6",
    "DIV": "div",
    "VOID": "img br wbr",
    "KEPT": "meta link img html body base input form area embed object video audio source track bgsound script style "
    "title textarea",
    "RAW": "script style title textarea",
    "SCRIPT": "script",
    "ONCE": "html body title base",
    "FORMATTING": " ".join(FORMATTING_NAMES),
    "ANCHOR": "a",
    "FORM": "form",
    "SELECT": "select",
    "OPTION": "option optgroup",
    "SVG": "svg",
    "SHAPE": "path g circle ellipse rect line polyline polygon text tspan",
}
_ATTRIBUTE = re.compile(
    r"""([a-zA-Z0-9_:@.-]++)(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+(?:"([^"]*+)"|'([^']*+)'|([^ \t\n\f\r"'=<>`]++)))?"""
)
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "nbsp": "\xa0"}
# A known reference, one by number, or what is none: '&' and a blank, or in an attribute '&name='.
_REFERENCE = re.compile(
    rf"&(?:({'|'.join(_CHARACTERS)});|#([0-9]{{2,5}});|(?=[^a-zA-Z0-9#]|\Z)|(?P<parameter>[a-zA-Z0-9]++=)|(?P<unusual>))"
)


class NotPlain(Exception):
    """A page whose tree must be built."""


class PlainPage(NamedTuple):
    hrefs: list[str]  # of <a href>, without fragments
    nofollow: list[bool]  # whether each is marked so
    title: bytes  # the source of its text
    # Other tags, which may have links or say something about the page: name, source of the attributes.
    tags: list[tuple[bytes, bytes]]


def refuse(html: bytes) -> PlainPage:
    raise NotPlain


_read: Callable[[bytes], PlainPage] = refuse  # until load_scan()


def read_plain(html: bytes) -> PlainPage:
    """The start tags of a page in UTF-8, in their order. Raises NotPlain where its tree may say something else."""
    return _read(html)


def load_scan() -> None:
    """Loads the compiled loop: from now on, in this process and in forks of it, pages may be plain."""
    global _read
    if _read is refuse:
        _read = make_reader()


def make_reader() -> Callable[[bytes], PlainPage]:
    tag_scan.scan.load()
    names = sorted({name for group in _NAMES.values() for name in group.split()})
    by_number = {tag_scan.number_of(name): name for name in names}
    slots = next(
        size for size in range(SLOTS_LEAST, 1 << 20) if len({number % size for number in by_number}) == len(names)
    )
    numbers, kinds, name_of = np.full(slots, -1, np.int64), np.zeros(slots, np.int32), {}
    for number, name in by_number.items():
        numbers[number % slots], name_of[number % slots] = number, name.encode()
        kinds[number % slots] = sum(getattr(tag_scan, bit) for bit, group in _NAMES.items() if name in group.split())
    title_slot, no_link = tag_scan.number_of("title") % slots, tag_scan.NO_LINK
    kept = np.empty((KEPT_MAX, tag_scan.KEPT_WIDTH), np.int32)
    levels, seen = np.empty(slots, np.int64), np.empty(slots, np.uint8)
    open_names, figures = np.empty(tag_scan.OPEN_MAX, np.int64), np.zeros(tag_scan.FIGURES, np.int64)

    def read(html: bytes) -> PlainPage:
        hrefs = np.empty(len(html), np.uint8)
        links = tag_scan.scan(
            np.frombuffer(html, np.uint8), numbers, kinds, hrefs, kept, levels, seen, open_names, figures
        )
        length, rows, *bounded = figures.tolist()
        is_plain = links != tag_scan.NOT_PLAIN and b"\0" not in html
        if not is_plain or may_be_tangled(*bounded) and cut_tangled(html, find_tags(html))[1]:
            raise NotPlain
        nofollow, tags, title = [False] * links, [], b""
        for slot, link, begin, end, content, content_end in kept[:rows].tolist():
            if link != no_link:
                nofollow[link] = is_nofollow(html[begin:end])
            elif slot == title_slot:
                title = html[content:content_end]
            else:
                tags.append((name_of[slot], html[begin:end]))
        return PlainPage(decode_values(hrefs[:length].tobytes().decode()) if links else [], nofollow, title, tags)

    return read


def read_attributes(source: bytes) -> dict[str, str]:
    """Attributes by name, in lower case; the first of a name counts."""
    found = _ATTRIBUTE.findall(source.decode())
    if b"&" not in source and b"\r" not in source:
        return {name.lower(): double or single or bare for name, double, single, bare in reversed(found)}
    return {name.lower(): decode_value(double or single or bare) for name, double, single, bare in reversed(found)}


def is_nofollow(source: bytes) -> bool:
    """Whether the attributes of a link say so."""
    may_be = b"nofollow" in source.lower() or b"&#" in source  # faster than reading the attributes
    return may_be and "nofollow" in read_attributes(source).get("rel", "").lower().split()


def decode_values(lines: str) -> list[str]:
    """The values of attributes whose sources are these lines."""
    values = lines.split("\n")
    return (
        [without_fragment(decode_value(value)) if "&" in value else value for value in values]
        if "&" in lines
        else values
    )


def decode_value(text: str) -> str:
    """The value of an attribute whose source is this."""
    if "\r" in text:
        raise NotPlain
    return _REFERENCE.sub(replace_reference, text) if "&" in text else text


def decode_text(text: bytes) -> str:
    """The text of an element, except for the form of its line ends."""
    if len(text) > TEXT_MAX_BYTES:
        raise NotPlain
    if b"&" in text and any(found["parameter"] for found in _REFERENCE.finditer(text.decode())):
        raise NotPlain
    return _REFERENCE.sub(replace_reference, text.decode())


def replace_reference(found: re.Match) -> str:
    name, digits = found[1], found[2]
    if found["unusual"] is not None or digits and not (0x20 <= int(digits) < 0x7F or 0xA0 <= int(digits) < 0xD800):
        raise NotPlain
    return _CHARACTERS[name] if name else chr(int(digits)) if digits else found[0]
