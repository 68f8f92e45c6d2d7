"""How a trace prints: headings, facts in two columns, and the bytes that both sides sent.

Everything goes through make_plain(), so no server can control the terminal: its escape sequences, line ends and marks
of direction become visible text.
"""

import os
from typing import TextIO

from contract.terminal import beneath, make_plain

NAME_WIDTH = 14
LINES_MAX = 200  # of one head
LINE_MAX_CHARACTERS = 1_000
BOLD, GREEN, YELLOW, RED, NORMAL = "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} ... ({len(text) - most:,} more characters)"


def describe_bytes(size: int) -> str:
    return f"{size:,} byte{'s' * (size != 1)}"


def describe_seconds(ms: float) -> str:
    return f"{ms / 1000:,.3f} s"


class Printer:
    def __init__(self, stream: TextIO):
        self._stream = beneath(stream)
        self._is_coloured = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._is_begun = False

    def begin(self, title: str) -> None:
        """Prints a heading, with an empty line before it if a section precedes it."""
        self._print(("\n" if self._is_begun else "") + self._paint(make_plain(title), BOLD))
        self._is_begun = True

    def print_fact(self, name: str, what: str | bytes, colour: str = "") -> None:
        self._print(f"  {name:<{NAME_WIDTH}}{self._paint(shorten(make_plain(what), LINE_MAX_CHARACTERS), colour)}")

    def quote(self, mark: str, data: bytes, *, is_whole: bool = False, lines_max: int = LINES_MAX) -> None:
        """Prints lines of bytes, each after a mark; unless `is_whole`, only as many and as long as a person reads."""
        lines = bytes(data).split(b"\n")
        if not lines[-1]:
            lines.pop()
        for line in lines if is_whole else lines[:lines_max]:
            text = make_plain(line.removesuffix(b"\r"))
            self._print(f"  {mark} {text if is_whole else shorten(text, LINE_MAX_CHARACTERS)}".rstrip())
        if not is_whole and len(lines) > lines_max:
            self._print(f"  {mark} ... ({len(lines) - lines_max:,} more lines)")

    def _paint(self, text: str, colour: str) -> str:
        return f"{colour}{text}{NORMAL}" if self._is_coloured and colour else text

    def _print(self, line: str) -> None:
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        self._stream.flush()  # so that a waiting reader sees why
