"""The text of HTML pages, main or whole, each read in a process that a hostile page may hang or crash.

Nested elements can make a reader take a time that grows with the square of their number. So each
page gets a bound of processor time, after which the kernel ends the process; the page then has no text, and a word says
why.
"""

import multiprocessing
import os
import resource
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import NamedTuple, TypeVar

from contract.trouble import DIED, MEMORY, UNREADABLE
from contract.units import size
from examine.page_text import detect_language, main_text_of, whole_text_of

PAGE_MAX_S = 10  # of processor time
MEMORY_MAX_BYTES = 2 << 30  # of a process's address space
LANGUAGE_MIN_CHARACTERS = 40  # a shorter text says too little
Tag = TypeVar("Tag")


class PageText(NamedTuple):
    text: str | None
    language: str  # as the text reads; empty where it is not known
    trouble: str  # why there is no text


def read_main_text(html: str) -> PageText:
    text = main_text_of(html)
    language = detect_language(text) if len(text) >= LANGUAGE_MIN_CHARACTERS else None
    return PageText(text, language or "", "")


def read_whole_text(html: str) -> PageText:
    return PageText(whole_text_of(html), "", "")


Read = Callable[[str], PageText]


class TextReader:
    """Some processes, each of which reads one page at a time; results come in the order of the pages."""

    def __init__(self, processes: int = 0, page_max_s: int = PAGE_MAX_S, read: Read = read_main_text):
        self._page_max_s, self._read = page_max_s, read
        self._free = [self._start() for _ in range(processes or len(os.sched_getaffinity(0)))]

    def read_each(self, pages: Iterable[tuple[Tag, str | None]]) -> Iterator[tuple[Tag, PageText]]:
        """Each page comes with anything that is handed on with its result; a page without HTML has no text."""
        pending: deque[tuple[Tag, Child | None]] = deque()
        for tag, html in pages:
            while pending and (pending[0][1] is None or not self._free):
                yield self._receive(*pending.popleft())
            child = None
            if html is not None:
                child = self._free.pop()
                child.send(html)
            pending.append((tag, child))
        while pending:
            yield self._receive(*pending.popleft())

    def close(self) -> None:
        for child in self._free:
            child.close()

    def _receive(self, tag: Tag, child: "Child | None") -> tuple[Tag, PageText]:
        if child is None:
            return tag, PageText(None, "", "")
        found = child.receive()
        if found is None:
            child.close()
            child = self._start()
        self._free.append(child)
        return tag, found or PageText(None, "", DIED)

    def _start(self) -> "Child":
        return Child(self._page_max_s, self._read)


def read_alone(html: str, page_max_s: int = PAGE_MAX_S) -> PageText:
    """The whole text of one page."""
    reader = TextReader(1, page_max_s, read_whole_text)
    try:
        return next(reader.read_each([(None, html)]))[1]
    finally:
        reader.close()


def explain_no_text(trouble: str, page_max_s: int = PAGE_MAX_S) -> str:
    if trouble == DIED:
        return f"it takes more than {page_max_s} s of processor time, or crashes its reader"
    return f"it takes more than {size(MEMORY_MAX_BYTES)} of memory" if trouble == MEMORY else "its reader fails on it"


class Child:
    def __init__(self, page_max_s: int, read: Read):
        context = multiprocessing.get_context("spawn")  # a fork would take locks of other threads along
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=serve, args=(far, page_max_s, read), daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # Ctrl-C is for the one that started it
        self._process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        far.close()

    def send(self, html: str) -> None:
        try:
            self._pipe.send_bytes(html.encode("utf-8", "replace"))
        except OSError:
            pass  # it died: receive() will say so

    def receive(self) -> PageText | None:
        """None where the process died of the page."""
        try:
            return PageText(*self._pipe.recv())
        except (EOFError, OSError):
            return None

    def close(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.join()


def serve(pipe: Connection, page_max_s: int, read: Read) -> None:
    """Reads pages until the pipe ends, as it does when the other process dies."""
    lower_limit(resource.RLIMIT_CORE, 0)
    lower_limit(resource.RLIMIT_AS, MEMORY_MAX_BYTES)
    while True:
        try:
            html = pipe.recv_bytes().decode()
        except (EOFError, OSError):
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        lower_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + page_max_s)
        try:
            page = read(html)
        except MemoryError:
            page = PageText(None, "", MEMORY)
        except Exception:  # whatever the library raises, the next page must be read
            page = PageText(None, "", UNREADABLE)
        try:
            pipe.send(tuple(page))
        except OSError:
            return


def lower_limit(kind: int, most: int) -> None:
    """Where the machine allows less already, that stays."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
