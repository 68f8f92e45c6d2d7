"""Files of seeds: one URL per line, with all the variations that people write."""

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from contract.url import URL_MAX_BYTES, NotCanonical, canonicalise

LINE_MAX_BYTES = 2 * URL_MAX_BYTES  # a longer line cannot be a URL; it is skipped without being held in memory

# A host, an optional port, and then the path.
WITHOUT_SCHEME = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\W_][\w.-]*)(:\d+)?([/?#]|$)")


class Line(NamedTuple):
    number: int
    url: str  # canonical, or '' where the line is bad
    problem: str


def read_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines without their ends; None for one that is too long."""
    number = 0
    while line := stream.readline(LINE_MAX_BYTES):
        number += 1
        if line.endswith(b"\n") or len(line) < LINE_MAX_BYTES:
            yield number, line
            continue
        while (rest := stream.readline(LINE_MAX_BYTES)) and not rest.endswith(b"\n"):
            pass
        yield number, None


def parse_lines(lines: Iterable[tuple[int, bytes | None]]) -> Iterator[Line]:
    """Each line that is neither blank nor a comment: its canonical URL, or what is wrong with it."""
    for number, line in lines:
        if line is None:
            yield Line(number, "", f"longer than {LINE_MAX_BYTES} bytes")
            continue
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        word = text.decode("utf-8", "replace").strip()
        if not word or word.startswith("#"):
            continue
        if "\ufffd" in word:
            yield Line(number, "", "not UTF-8")
            continue
        if "\r" in word:
            yield Line(number, "", "a carriage return inside the line: lines end with LF or CR LF")
            continue
        try:
            yield Line(number, canonicalise(f"http://{word}" if WITHOUT_SCHEME.match(word) else word), "")
        except NotCanonical as error:
            yield Line(number, "", f"{error.reason.replace('_', ' ')}: {word[:80]}")
