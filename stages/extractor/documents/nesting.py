"""Cuts a page before the tag at which its markup would cost the parser seconds or gigabytes.

Theory. The HTML standard's tree builder is not linear. For most tags it walks the stack of open elements, so a
page of n nested <div> costs n^2 steps (100,000: 23 s). An attribute is compared with all others of its tag. And
formatting elements that were never closed (<b id=1><b id=2>...) are made anew in every block that follows, so that
a page of 59 KB can take 6 GB. Browsers bound the depth at 512; our parser does not, and cannot be stopped half-way.
So this module estimates the three costs from the tags alone, in time linear in the page. Ordinary pages stay far below
the bounds. For most, the number of tags and their first letters are enough to see that.
"""

import re
from typing import NamedTuple

import numpy as np

from contract.trouble import ATTRIBUTES, NESTING
from stages.extractor.documents.depth_scan import LOOK_BACK, find_depth_limit, limit_depth

TAGS_UNCHECKED = 1_000  # fewer cannot make more than 250,000 elements, 100 MB
TAGS_SHALLOW = 14_000  # fewer cannot make STEPS_MAX steps, however deep
ELEMENTS_MAX = 1_000_000  # made anew: 400 MB
STEPS_MAX = 100_000_000  # on the stack of open elements: about half a second
TAG_UNCHECKED_BYTES = 4_096  # a shorter tag has no room for attributes that cost anything
ATTRIBUTES_MAX = 1_000  # of one tag

FORMATTING_NAMES = ["b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"]
_FORMATTING = re.compile(rb"<(/?)(" + "|".join(FORMATTING_NAMES).encode() + rb")(?=[\s/<>])([^<>]*)")
LOWER = 0x20  # the bit that makes letters small
_LOWER_PAIR = np.uint16(LOWER * 0x0101)
_LOWER_WORD = np.uint64(LOWER * 0x0101010101010101)
_ENDS = " \t\n\f\r/<>"  # of a tag's name
_IS_END = np.zeros(256, bool)
_IS_END[[ord(end) | LOWER for end in _ENDS]] = True
_ALIKE_MAX = 3  # the parser itself makes no more than three alike anew (HTML standard, "Noah's Ark clause")
_TAG = re.compile(rb"<(/?)([a-z][^\s/<>]*)(?:[^<>]*(/)>)?")
_NAME = re.compile(rb"<[a-zA-Z][^\s/>]*")
_ATTRIBUTE = re.compile(rb"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"?|'[^']*+'?|[^\s>]*+))?""")
_VOID = frozenset(b"area base br col embed hr img input link meta param source track wbr".split())
_DRAWINGS = frozenset((b"svg", b"math"))  # where <path/> is closed by its slash
_SCOPES = frozenset(b"table template object marquee applet caption".split()) | _DRAWINGS
_CELLS = frozenset(b"tr td th tbody thead tfoot".split())  # each ends the one before it
_INLINE = frozenset(b"a b big code em font i nobr s small span strike strong tt u".split())
_IN_ITEMS = _INLINE | {b"address", b"div", b"p"}
_CLOSES = {  # a start tag: what it closes, and what may lie open between
    b"p": (frozenset((b"p",)), _INLINE),
    b"option": (frozenset((b"option",)), _INLINE),
    b"li": (frozenset((b"li",)), _IN_ITEMS),
    b"a": (frozenset((b"a",)), _INLINE),
    b"dd": (frozenset((b"dd", b"dt")), _IN_ITEMS),
    b"dt": (frozenset((b"dd", b"dt")), _IN_ITEMS),
}


class Tags(NamedTuple):
    """Where tags begin, and the first two letters of each as one number; end tags have a slash for the first."""

    starts: np.ndarray
    letters: np.ndarray  # u2, lower case

    def present(self) -> np.ndarray:
        """For each pair of letters whether a tag begins with it."""
        found = np.zeros(1 << 16, bool)
        found[self.letters] = True
        return found


def letters_of(name: str) -> int:
    """The number in Tags.letters of tags that begin with these letters."""
    return int.from_bytes(name.encode("ascii").lower()[:2], "little") | LOWER << 8 | LOWER


_MAY_FORMAT = np.zeros(1 << 16, bool)  # tags that may be formatting, by their first two letters
_MAY_FORMAT[[letters_of(name) for name in ("bi", "co", "em", "fo", "no", "sm", "st", "tt")]] = True
_MAY_FORMAT[[letters_of(letter + end) for letter in "bisu" for end in _ENDS]] = True
_IS_PARAGRAPH = np.zeros(1 << 16, bool)
_IS_PARAGRAPH[[letters_of("p" + end) for end in _ENDS]] = True


def find_tags(html: bytes) -> Tags:
    starts = np.flatnonzero(np.frombuffer(html, np.uint8) == ord("<"))
    pairs = np.ndarray(len(html), "<u2", html + b"  ", offset=1, strides=(1,))  # the two bytes behind each byte
    return Tags(starts, pairs[starts] | _LOWER_PAIR)


def may_be_tangled(tags: int, longest_bytes: int, made: int) -> bool:
    """Whether cut_tangled() may cut a page, given upper bounds of its tags, its longest tag, and elements made anew."""
    return longest_bytes > TAG_UNCHECKED_BYTES or tags > TAGS_SHALLOW or made > ELEMENTS_MAX


def cut_tangled(html: bytes, tags: Tags) -> tuple[bytes, str]:
    """The page up to the tag that would pass a bound, and the trouble; the whole page and nothing where none does."""
    starts = tags.starts
    end = crowded = crowded_tag(html, starts)
    if len(starts) > TAGS_UNCHECKED:
        plain = b""
        if np.cumsum(_MAY_FORMAT[tags.letters]).sum() > ELEMENTS_MAX and formatting_bound(html, tags) > ELEMENTS_MAX:
            plain = html[:end].lower()
            starts = starts[: np.searchsorted(starts, end)]
            end = min(end, formatting_limit(plain, starts))
        if len(starts) > TAGS_SHALLOW and depth_bound(tags.letters[: len(starts)]) * len(starts) > STEPS_MAX:
            end = min(end, depth_limit(plain or html[:end].lower(), starts))
    if end == len(html):
        return html, ""
    return html[:end], ATTRIBUTES if end == crowded else NESTING


def crowded_tag(html: bytes, starts: np.ndarray) -> int:
    """Where the first tag with too many attributes begins, or the length of the page."""
    if not len(starts):
        return len(html)
    gaps = np.append(starts[1:], len(html)) - starts
    if gaps.max() <= TAG_UNCHECKED_BYTES:
        return len(html)
    for start in starts[gaps > TAG_UNCHECKED_BYTES].tolist():
        name = _NAME.match(html, start)
        position = name.end() if name else len(html)
        for _ in range(ATTRIBUTES_MAX):
            found = _ATTRIBUTE.match(html, position)
            if not found:
                break
            position = found.end()
        else:
            return start
    return len(html)


def formatting_bound(html: bytes, tags: Tags) -> int:
    """An upper bound of the elements that are made anew, from counts of start and end tags by name; on arrays."""
    is_end = tags.letters & 0xFF == ord("/")
    chosen = np.flatnonzero(is_end | _MAY_FORMAT[tags.letters])  # the others change no count
    is_end, starts = is_end[chosen], tags.starts[chosen]
    weights = np.append(chosen[1:], len(tags.starts)) - chosen  # tags up to the next of these
    words = np.ndarray(len(html) + 1, "<u8", html + b" " * 8, strides=(1,))  # the eight bytes from each byte on
    word = words[np.minimum(starts + 1 + is_end, len(html))] | _LOWER_WORD
    bound = 0
    for name in map(str.encode, FORMATTING_NAMES):
        named = is_named(word, name)
        if named.any():
            level = np.cumsum(np.where(is_end, -1, 1) * named)
            unmatched = np.minimum(np.minimum.accumulate(level), 0)  # end tags with nothing to close do not count
            bound += int(((level - unmatched) * weights).sum())
    return bound


def is_named(words: np.ndarray, name: bytes) -> np.ndarray:
    """Where eight bytes, lower case, begin with the name of a tag and its end."""
    bits = 8 * len(name)
    return (words & (1 << bits) - 1 == int.from_bytes(name, "little")) & _IS_END[
        (words >> bits & 0xFF).astype(np.uint8)
    ]


def formatting_limit(html: bytes, starts: np.ndarray) -> int:
    """Where open formatting elements, summed over the tags that may make them anew, pass ELEMENTS_MAX."""
    positions, counts = [0], [0]
    alike: dict[tuple[bytes, bytes], int] = {}
    opened: dict[bytes, list[bytes]] = {}
    count = 0
    for found in _FORMATTING.finditer(html):
        closes, name, attributes = found.groups()
        same_name = opened.setdefault(name, [])
        if closes:
            if not same_name:
                continue
            alike[name, same_name.pop()] -= 1
            count -= 1
        else:
            same = alike.get((name, attributes), 0)
            if same == _ALIKE_MAX:
                continue
            alike[name, attributes] = same + 1
            same_name.append(attributes)
            count += 1
        positions.append(found.start())
        counts.append(count)
    numbers = np.append(np.searchsorted(starts, positions), len(starts))
    made = np.cumsum(np.array(counts) * np.diff(numbers))
    over = int(np.searchsorted(made, ELEMENTS_MAX, "right"))
    if over == len(made):
        return len(html)
    before = int(made[over - 1]) if over else 0
    return int(starts[numbers[over] + (ELEMENTS_MAX - before) // counts[over]])


def depth_bound(letters: np.ndarray) -> int:
    """An upper bound of the elements that are open at a time.

    Between two open paragraphs lies another element, because a paragraph ends the one before it.
    """
    others = np.count_nonzero(~_IS_PARAGRAPH[letters] & (letters & 0xFF != ord("/")))
    return 2 * int(others) + 1


def depth_limit(html: bytes, starts: np.ndarray) -> int:
    """Where open elements, summed over the tags that may walk them, pass STEPS_MAX."""
    if limit_depth.pays(len(starts)):
        return find_depth_limit(html, starts[: np.searchsorted(starts, len(html))], STEPS_MAX)
    return match_depth_limit(html, STEPS_MAX)


def match_depth_limit(html: bytes, steps_max: int) -> int:
    """What depth_scan.py finds, by patterns and lists."""
    opened: list[bytes] = []
    scopes: list[int] = []  # indexes in `opened` of elements that end tags do not reach beyond
    steps = 0
    for found in _TAG.finditer(html):
        closes, name, empty = found.groups()
        steps += len(opened)
        if steps > steps_max:
            return found.start()
        if name in _VOID or not closes and opened and opened[-1] == name and name in _CLOSES:
            continue
        if closes and opened and opened[-1] == name and name not in _SCOPES:
            opened.pop()
            continue
        inside = opened[scopes[-1]] if scopes else b""
        if closes:
            close(opened, scopes, name)
        elif name in _CELLS:
            if inside == b"table":
                del opened[scopes[-1] + 1 :]
        elif not (empty and inside in _DRAWINGS):
            if name in _CLOSES:
                close_before(opened, *_CLOSES[name])
            if name in _SCOPES:
                scopes.append(len(opened))
            opened.append(name)
    return len(html)


def close(opened: list[bytes], scopes: list[int], name: bytes) -> None:
    """An end tag closes the last open element of its name and all inside it, unless that is out of reach."""
    if name in _SCOPES:
        for number in range(len(scopes) - 1, max(len(scopes) - LOOK_BACK, 0) - 1, -1):
            if opened[scopes[number]] == name:
                del opened[scopes[number] :]
                del scopes[number:]
                return
        return
    floor = scopes[-1] + 1 if scopes else 0
    for index in range(len(opened) - 1, max(len(opened) - LOOK_BACK, floor) - 1, -1):
        if opened[index] == name:
            del opened[index:]
            return


def close_before(opened: list[bytes], names: frozenset[bytes], over: frozenset[bytes]) -> None:
    """A start tag closes the last of the elements `names` if it holds only elements of `over`."""
    for index in range(len(opened) - 1, max(len(opened) - LOOK_BACK, 0) - 1, -1):
        if opened[index] in names:
            del opened[index:]
            return
        if opened[index] not in over:
            return
