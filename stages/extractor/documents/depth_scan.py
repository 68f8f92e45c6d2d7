"""The compiled loop over the tags of a page that estimates how many elements are open; nesting.py says what for.

The estimate follows the tree builder of the HTML standard in what makes elements many: which tags open none, which
close others, and how far an end tag reaches. An open element is a row: its name, and what kind it is of.
"""

from functools import cache

import numpy as np

from storage.compiled import compiled

PLAIN_MAX_TAGS = 1 << 18  # that nesting.py walks over by patterns in the time of importing numba
SLOTS_LEAST = 1 << 8  # of the hash table of names: trying smaller ones, which all have collisions, takes longer
LOOK_BACK = 64  # open elements that an end tag may close beside its own, as we estimate it

# Kinds of elements, as bits.
VOID = 1  # holds nothing
SCOPE = 2  # an end tag inside of it reaches nothing outside
TABLE, DRAWING = 4, 8  # scopes in which cells end the cell before, and in which <path/> is closed by its slash
CELL = 16
INLINE = 32  # may lie open between two elements of which the second one closes the first
IN_ITEM = 64  # likewise in lists
PARAGRAPH, OPTION, ITEM, ANCHOR, DEFINITION = (1 << bit for bit in range(7, 12))  # a start tag closes the one before
_CLOSING = PARAGRAPH | OPTION | ITEM | ANCHOR | DEFINITION
_IN_LISTS = ITEM | DEFINITION
_NAMES = {
    VOID: "area base br col embed hr img input link meta param source track wbr",
    SCOPE: "table template object marquee applet caption svg math",
    TABLE: "table",
    DRAWING: "svg math",
    CELL: "tr td th tbody thead tfoot",
    INLINE: "a b big code em font i nobr s small span strike strong tt u",
    IN_ITEM: "a b big code em font i nobr s small span strike strong tt u address div p",
    PARAGRAPH: "p",
    OPTION: "option",
    ITEM: "li",
    ANCHOR: "a",
    DEFINITION: "dd dt",
}

# Columns of `opened`, one row per open element, and of `names`: its first eight bytes, and a hash of the rest.
_BEGIN, _END, _KIND, _OPENED_WIDTH = range(4)
_HEAD, _REST, _NAMES_WIDTH = range(3)
_WORD_BYTES = 8
_PRIME = np.uint64(0x0000_0100_0000_01B3)  # of the hash FNV
_SLASH, _LT, _GT, _A, _Z = b"/<>az"
_ENDS_NAME = np.zeros(256, bool)
_ENDS_NAME[list(b" \t\n\v\f\r/<>")] = True


@cache
def make_table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A hash table of known names without collisions: their bytes as a number, their lengths, their kinds."""
    names = {name: int.from_bytes(name.encode(), "little") for group in _NAMES.values() for name in group.split()}
    slots = next(
        size for size in range(SLOTS_LEAST, 1 << 20) if len({head % size for head in names.values()}) == len(names)
    )
    heads, lengths, kinds = np.zeros(slots, np.uint64), np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    for name, head in names.items():
        heads[head % slots], lengths[head % slots] = head, len(name)
        kinds[head % slots] = sum(kind for kind, group in _NAMES.items() if name in group.split())
    return heads, lengths, kinds


def find_depth_limit(html: bytes, starts: np.ndarray, steps_max: int) -> int:
    """Where open elements, summed over the tags of a page in lower case, pass `steps_max`; its length if nowhere."""
    opened, names = np.empty((len(starts), _OPENED_WIDTH), np.int64), np.empty((len(starts), _NAMES_WIDTH), np.uint64)
    page = np.frombuffer(html, np.uint8)
    return limit_depth(page, starts, *make_table(), steps_max, opened, names, np.empty(len(starts), np.int64))


@compiled("u1[] i8[] u8[] i8[] i8[] i8 -> i8[,] u8[,] i8[]", PLAIN_MAX_TAGS)
def limit_depth(page, starts, heads, lengths, kinds, steps_max, opened, names, scopes):
    """In: the page, where its tags begin, and the hash table of names. Scratch, with room for all tags: the rest.

    `scopes` gets the indexes in `opened` of elements that end tags do not reach beyond.
    """
    depth, inner, steps = 0, 0, 0  # elements and scopes that are open
    for start in starts:
        begin = start + 1
        is_end = begin < len(page) and page[begin] == _SLASH
        begin += is_end
        if begin >= len(page) or page[begin] < _A or page[begin] > _Z:
            continue
        steps += depth
        if steps > steps_max:
            return start
        end, head, rest = read_name(page, begin)
        slot = np.int64(head % np.uint64(len(heads)))
        kind = kinds[slot] if heads[slot] == head and lengths[slot] == end - begin else 0
        if kind & VOID:
            continue
        inside = opened[scopes[inner - 1], _KIND] if inner else 0
        last = find_open(page, begin, end, head, rest, opened, names, depth, max(depth - 1, 0))
        if is_end and kind & SCOPE:
            scope = find_scope(head, names, scopes, inner)
            if scope < inner:
                depth, inner = scopes[scope], scope
        elif is_end:
            floor = scopes[inner - 1] + 1 if inner else 0
            floor = max(depth - LOOK_BACK, floor)
            depth = last if last < depth else find_open(page, begin, end, head, rest, opened, names, depth, floor)
        elif kind & CELL:
            if inside & TABLE:
                depth = scopes[inner - 1] + 1
        elif not (last < depth and kind & _CLOSING) and not (inside & DRAWING and is_closed(page, end)):
            if kind & _CLOSING:
                depth = close_before(kind, opened, depth)
            if kind & SCOPE:
                scopes[inner] = depth
                inner += 1
            opened[depth, _BEGIN], opened[depth, _END], opened[depth, _KIND] = begin, end, kind
            names[depth, _HEAD], names[depth, _REST] = head, rest
            depth += 1
    return len(page)


@compiled()
def read_name(page, at):
    """The end of the name that begins at `at`, its first bytes as a number, and a hash of the others."""
    begin, head, rest = at, np.uint64(0), np.uint64(0)
    while at < len(page) and not _ENDS_NAME[page[at]]:
        if at - begin < _WORD_BYTES:
            head |= np.uint64(page[at]) << np.uint64(8 * (at - begin))
        else:
            rest = rest * _PRIME + np.uint64(page[at])
        at += 1
    return at, head, rest


@compiled()
def find_open(page, begin, end, head, rest, opened, names, depth, floor):
    """Index of the last open element of a name, from `floor` on; `depth` if there is none."""
    for index in range(depth - 1, floor - 1, -1):
        if names[index, _HEAD] == head and names[index, _REST] == rest:
            other = opened[index, _BEGIN]
            is_same = opened[index, _END] - other == end - begin
            at = _WORD_BYTES
            while is_same and begin + at < end:
                is_same = page[begin + at] == page[other + at]
                at += 1
            if is_same:
                return index
    return depth


@compiled()
def find_scope(head, names, scopes, inner):
    """Number of the last open scope of a name; `inner` if there is none. Names of scopes are known and short."""
    for scope in range(inner - 1, max(inner - LOOK_BACK, 0) - 1, -1):
        if names[scopes[scope], _HEAD] == head:
            return scope
    return inner


@compiled()
def close_before(kind, opened, depth):
    """How many elements stay open where a start tag closes the last of its kind, if that holds only some others."""
    over = IN_ITEM if kind & _IN_LISTS else INLINE
    for index in range(depth - 1, max(depth - LOOK_BACK, 0) - 1, -1):
        if opened[index, _KIND] & kind & _CLOSING:
            return index
        if not opened[index, _KIND] & over:
            break
    return depth


@compiled()
def is_closed(page, at):
    """Whether the tag whose name ends at `at` ends with a slash."""
    begin = at
    while at < len(page) and page[at] != _LT and page[at] != _GT:
        at += 1
    return begin < at < len(page) and page[at] == _GT and page[at - 1] == _SLASH
