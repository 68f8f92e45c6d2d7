"""dictionary.zdict: the zstd dictionary of a crawl's page files, after a line with its format and checksum."""

import re
from pathlib import Path

import xxhash

from storage.errors import Damaged, UnknownFormat
from storage.frames import DICTIONARY_MAX_BYTES, Broken, make_decoder

FORMAT = 1
_FIRST_LINE = re.compile(rb"coletor dictionary (\d{1,9}) ([0-9a-f]{32})\n")


def encode_dictionary(dictionary: bytes) -> bytes:
    return f"coletor dictionary {FORMAT} {xxhash.xxh3_128_hexdigest(dictionary)}\n".encode() + dictionary


def read_dictionary(path: Path) -> bytes:
    """The dictionary itself. Raises Damaged or UnknownFormat where the file is not as expected."""
    try:
        with open(path, "rb") as file:
            content = file.read(DICTIONARY_MAX_BYTES + 1)
    except IsADirectoryError:
        raise Damaged(path, "expected a file, found a folder") from None
    found = _FIRST_LINE.match(content)
    if not found:
        raise Damaged(path, "expected the line of a dictionary, found something else", 0)
    if int(found[1]) != FORMAT:
        raise UnknownFormat(path, int(found[1]), FORMAT)
    dictionary = content[found.end() :]
    checksum = xxhash.xxh3_128_hexdigest(dictionary)
    if checksum != found[2].decode():
        raise Damaged(path, f"expected checksum {found[2].decode()}, found {checksum}", found.end())
    try:
        make_decoder(dictionary)
    except Broken as error:
        raise Damaged(path, str(error), found.end()) from None
    return dictionary
