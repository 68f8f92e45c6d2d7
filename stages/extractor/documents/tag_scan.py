"""The compiled loop over the markup of a page: finds links and kept tags in their order, or says that a tree is needed.

start_tags.py defines which pages are plain, and gives the names of elements. A name is a number: letters, of either
case, and digits are digits of base 37, so no two names of up to NAME_MAX characters have the same number. A hash table
without collisions holds the kind of each name.
"""

import numpy as np

from storage.compiled import compiled

NAME_MAX = 12  # 37^12 < 2^63
OPEN_MAX = 32  # elements inside of a link

# Kinds of elements, as bits. An element of no kind is unknown, and a page that holds one is not plain.
SILENT = 1  # says nothing to us, unless an attribute holds a link
INLINE = 2  # may stand in a link: closes nothing that is open
BLOCK = 4  # may stand in a link where no paragraph is open
DIV = 8  # may hold blocks there
VOID = 16  # may stand in a link, and holds nothing
KEPT = 32  # its attributes are kept
RAW = 64  # its content is no markup, and is kept too
SCRIPT = 128  # its content may hide its end in a comment
ONCE = 256  # a second one would be joined with the first, or not count
FORMATTING = 512  # is made anew by a tree where it was not closed
ANCHOR, FORM, SELECT, OPTION, SVG, SHAPE = (1 << bit for bit in range(10, 16))

# Columns of `kept`, one row per tag: slot of its name, index of its link or NO_LINK, bounds of attributes and content.
NAME, LINK, ATTRIBUTES, ATTRIBUTES_END, CONTENT, CONTENT_END, KEPT_WIDTH = range(7)
NO_LINK = NOWHERE = NOT_PLAIN = -1
FIGURES = 5

_BLANK, _IN_NAME, _IN_ATTRIBUTE_NAME, _ENDS_BARE_VALUE = 1, 2, 4, 8
_KINDS = np.zeros(256, np.uint8)  # of characters
_DIGITS = np.zeros(256, np.int64)
for _kind, _characters in (
    (_BLANK | _ENDS_BARE_VALUE, b" \t\n\f\r"),
    (_ENDS_BARE_VALUE, b"\"'=<>`"),
    (_IN_ATTRIBUTE_NAME, b"_:@.-"),
    (_IN_NAME | _IN_ATTRIBUTE_NAME, b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
):
    _KINDS[list(_characters)] |= _kind
_DIGITS[list(b"0123456789abcdefghijklmnopqrstuvwxyz")] = np.arange(1, 37)
_DIGITS[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")] = np.arange(11, 37)
_LT, _GT, _SLASH, _EQUALS, _DASH, _BANG, _QUESTION, _DOUBLE, _SINGLE, _AMPERSAND, _HASH, _SPACE, _LF, _CR = (
    b"<>/=-!?\"'&# \n\r"
)
_LOWER = 0x20  # the bit that makes letters small
_WORD_BYTES = 8
_EACH_BYTE, _TOP_BITS = np.uint64(0x0101_0101_0101_0101), np.uint64(0x8080_8080_8080_8080)


def number_of(name: str) -> int:
    """The name as a number; nothing that is no letter or digit counts."""
    number = 0
    for character in name.encode("ascii"):
        number = number * 37 + int(_DIGITS[character])
    return number


_HREF, _REL, _CITE, _SRCSET, _BACKGROUND, _FORMACTION = (
    number_of(name) for name in ["href", "rel", "cite", "srcset", "background", "formaction"]
)


@compiled()
def find_byte(page, at, stop, wanted):
    """The first offset from `at` on that holds a byte, `stop` where none does.

    Eight bytes per step (Mycroft's test for a zero byte).
    """
    pattern = np.uint64(wanted) * _EACH_BYTE
    while at + _WORD_BYTES <= stop:
        word = np.uint64(0)
        for index in range(_WORD_BYTES):  # one instruction, because numba does not look for indexes below zero here
            word |= np.uint64(page[np.uint64(at + index)]) << np.uint64(8 * index)
        word ^= pattern
        if (word - _EACH_BYTE) & ~word & _TOP_BITS:
            break
        at += _WORD_BYTES
    while at < stop and page[at] != wanted:
        at += 1
    return at


@compiled()
def pass_blanks(page, at):
    while at < len(page) and _KINDS[page[at]] & _BLANK:
        at += 1
    return at


@compiled()
def pass_name(page, at, kind):
    """The end of the name that begins at `at`, and its number."""
    number = 0
    while at < len(page) and _KINDS[page[at]] & kind:
        number = number * 37 + _DIGITS[page[at]]
        at += 1
    return at, number


@compiled()
def pass_comment(page, at):
    """The end of the comment whose text begins at `at` (HTML standard 13.2.5.43 to 52); NOT_PLAIN if it has none."""
    if at < len(page) and page[at] == _GT:
        return at + 1
    if at + 1 < len(page) and page[at] == _DASH and page[at + 1] == _GT:
        return at + 2
    while True:
        at = find_byte(page, at, len(page), _DASH)
        if at + 2 >= len(page):
            return NOT_PLAIN
        at += 1
        if page[at] != _DASH:
            continue
        while at < len(page) and page[at] == _DASH:
            at += 1
        if at < len(page) and page[at] == _GT:
            return at + 1
        if at + 1 < len(page) and page[at] == _BANG and page[at + 1] == _GT:
            return at + 2


@compiled()
def pass_raw(page, at, number, is_script):
    """The end of the raw content that begins at `at`, and the end of its end tag; NOT_PLAIN where that is not sure.

    A name longer than NAME_MAX may have the number of another name, so it closes nothing.
    """
    has_comment = False
    while True:
        at = find_byte(page, at, len(page), _LT) + 1
        if at >= len(page):
            return NOT_PLAIN, NOT_PLAIN
        if page[at] == _SLASH:
            end, name = pass_name(page, at + 1, _IN_NAME)
            if name == number and end - at <= NAME_MAX:
                end = pass_blanks(page, end)
                return (at - 1, end + 1) if end < len(page) and page[end] == _GT else (NOT_PLAIN, NOT_PLAIN)
        elif page[at] == _BANG:
            has_comment = True
        elif has_comment and is_script and pass_name(page, at, _IN_NAME)[1] == number:
            return NOT_PLAIN, NOT_PLAIN  # a longer name with that number, too


@compiled()
def pass_value(page, at):
    """Start and end of the value at `at`, and the start of what follows it; NOT_PLAIN where there is no value."""
    if at == len(page):
        return at, at, NOT_PLAIN
    quote = page[at]
    if quote == _DOUBLE or quote == _SINGLE:
        end = find_byte(page, at + 1, len(page), quote)
        return at + 1, end, end + 1 if end < len(page) else NOT_PLAIN
    end = at
    while end < len(page) and not _KINDS[page[end]] & _ENDS_BARE_VALUE:
        end += 1
    return at, end, end if end > at else NOT_PLAIN


@compiled()
def pass_attributes(page, at):
    """The end of the tag whose attributes begin at `at`; NOT_PLAIN where their spelling is unusual.

    Then: start and end of the first href, or NOWHERE; whether there is a rel; whether there is an attribute that holds
    a link in rare elements only.
    """
    href, href_end, has_rel, has_rare_link = NOWHERE, NOWHERE, False, False
    while True:
        begin = pass_blanks(page, at)
        if begin == len(page):
            return NOT_PLAIN, href, href_end, has_rel, has_rare_link
        if page[begin] == _GT:
            return begin, href, href_end, has_rel, has_rare_link
        if page[begin] == _SLASH:
            is_end = begin + 1 < len(page) and page[begin + 1] == _GT
            return begin + 1 if is_end else NOT_PLAIN, href, href_end, has_rel, has_rare_link
        at, number = pass_name(page, begin, _IN_ATTRIBUTE_NAME)
        length = at - begin
        if not length or not _KINDS[page[begin - 1]] & _BLANK:
            return NOT_PLAIN, href, href_end, has_rel, has_rare_link
        value, value_end, equals = at, at, pass_blanks(page, at)
        if equals < len(page) and page[equals] == _EQUALS:
            value, value_end, at = pass_value(page, pass_blanks(page, equals + 1))
            if at == NOT_PLAIN:
                return NOT_PLAIN, href, href_end, has_rel, has_rare_link
        if number == _HREF and length == 4 and href == NOWHERE:
            href, href_end = value, value_end
        has_rel |= number == _REL and length == 3
        has_rare_link |= (
            (number == _BACKGROUND or number == _FORMACTION)
            and length == 10
            or number == _CITE
            and length == 4
            or number == _SRCSET
            and length == 6
        )


@compiled()
def count(page, character):
    found = 0
    for at in range(len(page)):
        found += page[at] == character
    return found


@compiled("u1[] i8[] i4[] -> u1[] i4[,] i8[] u1[] i8[] i8[]")
def scan(page, numbers, kinds, hrefs, kept, levels, seen, open_names, figures):
    """The number of links of the page; NOT_PLAIN where a tree might say something else.

    In: `numbers` and `kinds`, the hash table of names. Out: `hrefs` gets the values of <a href>, one per line, without
    the fragments of values that have no references; it must be as long as the page. `kept` gets other tags that have
    attributes or content, and links that have rel. `figures` gets FIGURES numbers: bytes of hrefs, rows of kept, and
    upper bounds for nesting.py: tags, bytes of the longest tag or text, elements that a tree might make anew.
    Scratch: `levels`, per name how many are open; `seen`, per name whether it occurred; `open_names`, the at most
    OPEN_MAX elements that are open in a link.
    """
    links, filled, rows = 0, 0, 0
    visited, longest = 0, 0
    # Formatting elements that are open, their largest number at a time, and their sum over all tags.
    formatting, most, made = 0, 0, 0
    for slot in range(len(numbers)):
        levels[slot] = seen[slot] = 0
    depth = -1  # elements that are open in a link; -1 outside of links
    only = 0  # the only kind allowed here: OPTION in <select>, SHAPE in a drawing
    may_hold_blocks, link_holds_blocks, is_in_form = False, False, False
    at, begun = 0, 0
    while True:
        longest = max(longest, at - begun)
        at = find_byte(page, at, len(page), _LT) + 1
        begun = at
        if at >= len(page):
            break
        visited += 1
        made += formatting + 1
        most = max(most, formatting)
        character = page[at]
        if character == _SLASH:
            end, number = pass_name(page, at + 1, _IN_NAME)
            close = pass_blanks(page, end)
            if end == at + 1 or end - at > NAME_MAX or close == len(page) or page[close] != _GT:
                return NOT_PLAIN
            at = close + 1
            slot = number % len(numbers)
            kind = kinds[slot] if numbers[slot] == number else 0
            if kind & FORMATTING and levels[slot]:
                levels[slot] -= 1
                formatting -= 1
            if only:
                if kind & (SELECT if only == OPTION else SVG):
                    only = 0
                elif not kind & only:
                    return NOT_PLAIN
            elif depth > 0:
                depth -= 1
                if open_names[depth] != slot or not kind:
                    return NOT_PLAIN
            elif depth == 0:
                if not kind & ANCHOR:
                    return NOT_PLAIN
                depth = -1
                may_hold_blocks = link_holds_blocks
                continue
            elif kind & FORM:
                is_in_form = False
            may_hold_blocks = False
        elif character == _BANG and at + 2 < len(page) and page[at + 1] == _DASH and page[at + 2] == _DASH:
            at = pass_comment(page, at + 3)
            if at == NOT_PLAIN:
                return NOT_PLAIN
        elif character == _QUESTION or character == _BANG:
            at = find_byte(page, at, len(page), _GT) + 1
            if at > len(page) or only == SHAPE:  # where it might be CDATA
                return NOT_PLAIN
        elif 97 <= character | _LOWER <= 122:  # a letter
            attributes, number = pass_name(page, at, _IN_NAME)
            slot = number % len(numbers)
            if attributes - at > NAME_MAX or numbers[slot] != number:
                return NOT_PLAIN
            kind = kinds[slot]
            end, href, href_end, has_rel, has_rare_link = pass_attributes(page, attributes)
            if end == NOT_PLAIN or has_rare_link and kind & SILENT:
                return NOT_PLAIN
            at = end + 1
            if kind & FORMATTING:
                levels[slot] += 1
                formatting += 1
            if only:
                if not kind & only:
                    return NOT_PLAIN
            elif kind & ANCHOR:
                if depth >= 0:
                    return NOT_PLAIN
                may_hold_blocks, link_holds_blocks = False, may_hold_blocks
                if href == NOWHERE:
                    continue
                depth = 0
                if links:
                    hrefs[filled] = _LF
                    filled += 1
                begin, may_end = filled, True
                for index in range(href, href_end):
                    character = page[index]
                    if character == _LF or character == _CR:
                        return NOT_PLAIN
                    if character == _HASH and may_end and (filled == begin or hrefs[filled - 1] > _SPACE):
                        break
                    may_end &= character != _AMPERSAND and character != _HASH
                    hrefs[filled] = character
                    filled += 1
                if has_rel:
                    if rows == len(kept):
                        return NOT_PLAIN
                    kept[rows, NAME], kept[rows, LINK], kept[rows, ATTRIBUTES], kept[rows, ATTRIBUTES_END] = (
                        slot,
                        links,
                        attributes,
                        end,
                    )
                    rows += 1
                links += 1
            elif depth >= 0 and kind & (INLINE | BLOCK):
                if (
                    depth == OPEN_MAX
                    or kind & BLOCK
                    and not (link_holds_blocks and (depth == 0 or kinds[open_names[depth - 1]] & DIV))
                ):
                    return NOT_PLAIN
                open_names[depth] = slot
                depth += 1
            elif depth >= 0 and not kind & (VOID | SVG):
                return NOT_PLAIN
            else:
                may_hold_blocks = kind & DIV != 0
                if kind & (SELECT | SVG):
                    only = OPTION if kind & SELECT else SHAPE
                if kind & ONCE and seen[slot] or kind & FORM and is_in_form:
                    return NOT_PLAIN
                seen[slot] = 1
                is_in_form = is_in_form or kind & FORM != 0
                if kind & KEPT:
                    content_end = at
                    if kind & RAW:
                        content_end, at = pass_raw(page, at, number, kind & SCRIPT != 0)
                        if at == NOT_PLAIN:
                            return NOT_PLAIN
                    if end == attributes and content_end <= end + 1:
                        continue
                    if rows == len(kept):
                        return NOT_PLAIN
                    kept[rows, NAME], kept[rows, LINK], kept[rows, ATTRIBUTES], kept[rows, ATTRIBUTES_END] = (
                        slot,
                        NO_LINK,
                        attributes,
                        end,
                    )
                    kept[rows, CONTENT], kept[rows, CONTENT_END] = end + 1, content_end
                    rows += 1
                elif not kind & (SILENT | VOID | SELECT | SVG):
                    return NOT_PLAIN
    if depth >= 0 or only:
        return NOT_PLAIN
    tags = count(page, _LT)
    hidden = tags - visited  # in comments, scripts and values; nesting.py counts them like others
    figures[0], figures[1], figures[2], figures[3], figures[4] = (
        filled,
        rows,
        tags,
        longest,
        made + hidden * (most + tags),
    )
    return links
