"""Terminals: text that came from the web, or from a file, cannot control one. Its control characters become visible.

This is the one place that does it. Every command calls guard() (contract/command.py); from then on, whatever it prints
on a terminal passes through a Screen. What goes to a file or a pipe stays as it is. Code that writes escape sequences
of its own, such as the live view, writes to the stream beneath() the Screen, and passes all other text through
make_plain().
"""

import sys
from typing import TextIO


def make_plain(text: str | bytes) -> str:
    """The text on one line; what is not printable (marks of direction are not), or not UTF-8, becomes escapes."""
    if not isinstance(text, str):
        text = bytes(text).decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def make_harmless(text: str) -> str:
    """The same of a text that may have lines and tabs."""
    if text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(make_plain, line.split("\t"))) for line in lines)


class Screen:
    """A text stream to a terminal, through which only harmless text gets; the rest is as the stream has it."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self.buffer = ScreenBytes(self)

    def write(self, text: str) -> int:
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(make_harmless(text).encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, lines) -> None:
        for line in lines:
            self.write(line)

    def beneath(self) -> TextIO:
        return beneath(self._stream)

    def __getattr__(self, name: str):
        return getattr(self._stream, name)


class ScreenBytes:
    """What stands for the bytes of a Screen: they are taken for UTF-8."""

    def __init__(self, screen: Screen):
        self._screen = screen

    def write(self, data: bytes) -> int:
        self._screen.write(bytes(data).decode("utf-8", "backslashreplace"))
        return len(data)

    def flush(self) -> None:
        self._screen.flush()


def guard() -> None:
    """From now on what is printed on a terminal is harmless; what cannot be encoded is printed as an escape everywhere."""
    sys.stdout, sys.stderr = guarded(sys.stdout), guarded(sys.stderr)


def guarded(stream: TextIO | None) -> TextIO | None:
    if stream is None or isinstance(stream, Screen):
        return stream
    if stream.isatty():
        return Screen(stream)
    if getattr(stream, "errors", "") == "strict":
        stream.reconfigure(errors="backslashreplace")  # a name of a file that is no UTF-8 must not end the command
    return stream


def beneath(stream: TextIO) -> TextIO:
    """The stream itself, for those who see to it that only their own escape sequences get there."""
    return stream.beneath() if isinstance(stream, Screen) else stream
