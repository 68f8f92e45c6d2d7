"""Terminals: text from the web or from a file cannot control a terminal. Its control characters become visible.

Only this module does it. Every command calls guard() (contract/command.py); from then on, all that it prints on a
terminal passes through a Screen. Output to a file or a pipe is not changed. Code that writes escape sequences of its
own, such as the live view, writes to the stream beneath() the Screen, and passes all other text through make_plain().
"""

import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import Any, TextIO, cast


def make_plain(text: str | bytes) -> str:
    """The text on one line. What is not printable, such as marks of direction, or not UTF-8, becomes escapes."""
    if not isinstance(text, str):
        text = bytes(text).decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def make_harmless(text: str) -> str:
    """As make_plain, but line ends and tabs stay."""
    if text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(make_plain, line.split("\t"))) for line in lines)


class Screen:
    """A text stream to a terminal that writes harmless text only; all else is delegated to the stream."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self.buffer = ScreenBytes(self)

    def write(self, text: str) -> int:
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(make_harmless(text).encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def beneath(self) -> TextIO:
        return beneath(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ScreenBytes:
    """The binary side of a Screen; bytes are read as UTF-8."""

    def __init__(self, screen: Screen):
        self._screen = screen

    def write(self, data: bytes) -> int:
        self._screen.write(bytes(data).decode("utf-8", "backslashreplace"))
        return len(data)

    def flush(self) -> None:
        self._screen.flush()


def guard() -> None:
    """Makes all output to terminals harmless from now on. What cannot be encoded is printed as an escape everywhere."""
    sys.stdout, sys.stderr = guarded(sys.stdout), guarded(sys.stderr)


def guarded(stream: TextIO | None) -> TextIO | None:
    if stream is None or isinstance(stream, Screen):
        return stream
    if getattr(stream, "errors", "") == "strict":
        cast(TextIOWrapper, stream).reconfigure(
            errors="backslashreplace"
        )  # a file name that is not UTF-8 must not end the command
    return cast(TextIO, Screen(stream)) if stream.isatty() else stream


def beneath(stream: TextIO) -> TextIO:
    """The stream itself, for code that guarantees that only its own escape sequences get there."""
    return stream.beneath() if isinstance(stream, Screen) else stream
