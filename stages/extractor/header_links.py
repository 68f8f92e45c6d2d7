"""Links in the headers of an answer: Link, Refresh, Content-Location, and the Location of a redirect."""

import re
from collections.abc import Iterator

from stages.extractor.document import LOCATION, REDIRECT, REFRESH
from stages.extractor.documents.attributes import refresh_target, relation_kind

# RFC 8288 3: <target>; name=value; name="value", <target> ...
_LINK = re.compile(r'<([^<>]*+)>((?:\s*+;\s*+[^\s=;,"<>]++(?:\s*+=\s*+(?:"(?:[^"\\]|\\.)*+"|[^\s";,<>]*+))?)*+)')
_PARAMETER = re.compile(r';\s*+([^\s=;,"<>]++)(?:\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s";,<>]*+)))?')


def read_header_links(status: int, headers: dict[str, list[str]]) -> Iterator[tuple[int, str, bool]]:
    """Kind, text and whether it is marked nofollow, of each link; texts are relative to the answer's own URL."""
    for value in headers.get("link", ()):
        yield from read_link(decode_header(value))
    for value in headers.get("refresh", ()):
        if (target := refresh_target(decode_header(value))) is not None:
            yield REFRESH, target, False
    for value in headers.get("content-location", ()):
        yield LOCATION, decode_header(value), False
    if location := location_of(status, headers):
        yield REDIRECT, location, False


def location_of(status: int, headers: dict[str, list[str]]) -> str:
    """Where a redirect leads, as it stands in its header."""
    return decode_header(headers["location"][0]) if 300 <= status < 400 and "location" in headers else ""


def read_link(text: str) -> Iterator[tuple[int, str, bool]]:
    for found in _LINK.finditer(text):
        relations = (quoted or plain for name, quoted, plain in _PARAMETER.findall(found[2]) if name.lower() == "rel")
        words = next(relations, "")  # the first counts (RFC 8288 3.3)
        yield relation_kind(words), found[1].strip(), "nofollow" in words.lower().split()


def decode_header(value: str) -> str:
    """The bytes of a header are UTF-8 where they can be, else Latin-1."""
    try:
        return value if value.isascii() else value.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return value
