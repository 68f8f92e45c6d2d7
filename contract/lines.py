"""Lines that fit a terminal: wrapped at its width between words. In a pipe or a file, lines stay whole."""

import os
import sys
import textwrap
from contextlib import suppress
from typing import TextIO

WIDTH = 80  # of a terminal that reports none
WIDTH_MIN = 40  # a narrower terminal wraps lines itself
FIT_MIN = 20  # a narrower column holds no words; the environment may say COLUMNS=0


def width_of(stream: TextIO | None) -> int | None:
    """The columns of the terminal behind the stream; none where it is no terminal."""
    try:
        if stream is None or not stream.isatty():
            return None
        return max(os.get_terminal_size(stream.fileno()).columns or WIDTH, WIDTH_MIN)
    except (OSError, ValueError):  # it is closed, or has no size
        return None


def say(text: str, stream: TextIO | None = None, indent: int = 2) -> None:
    """Prints the text, wrapped to the terminal, on standard output or on the given stream."""
    stream = stream or sys.stdout
    print(fit(text, width_of(stream), indent), file=stream, flush=True)


def say_if_possible(text: str, stream: TextIO | None = None, indent: int = 2) -> None:
    """As say, but what cannot be printed is lost: a closed terminal or a full disk does not change the exit code."""
    with suppress(OSError, ValueError):
        say(text, stream, indent)


def fit(text: str, width: int | None, indent: int = 2) -> str:
    """Wraps long lines between words, and indents what follows. No word is broken, so that each can be copied."""
    if width is None:
        return text
    width = max(width, FIT_MIN, indent + 1)
    wrapper = textwrap.TextWrapper(
        width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(line if len(line) <= width else wrapper.fill(line) for line in text.split("\n"))


def fit_manual(manual: str, width: int | None) -> str:
    """Fills the paragraphs of a manual to the width; indented lines, which are examples and tables, stay."""
    if width is None or max(map(len, manual.splitlines()), default=0) <= width:
        return manual
    lines: list[str] = []
    joins = False
    for line in manual.splitlines():
        is_text = bool(line) and not line.startswith(" ")
        if is_text and joins:
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        joins = is_text
    return fit("\n".join(lines), width, 0)
