"""Where the time goes: the extractor's work in one process; a clock is read where one part ends and another begins.

    python -m bench.extractor.timed PAGES OUT FILE      (FILE: JSON, seconds by part, and `pages`)

Not cProfile: it looks at every call, which costs more than a link does, and does not see the parser, whose work is the
making of an object. Here some twenty calls per page are timed, each without the time of the others within it.
"""

import json
import mmap
import pickle
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

from contract import warc
from contract.config import Config
from contract.url import Keys
from stages.extractor import answer, reading
from stages.extractor.__main__ import first_year, publish
from stages.extractor.chunks import cut_file
from stages.extractor.documents import html
from stages.extractor.documents.start_tags import load_scan
from stages.extractor.extraction import Extraction
from stages.extractor.link_judge import LinkJudge
from stages.extractor.page_files import files_below
from stages.extractor.workers import read_chunk

CUTTING, SENDING, JOINING, TABLES = (
    "cutting files into chunks",
    "rows sent to the parent",
    "rows joined",
    "tables sorted and written",
)
REST = "the rest of a worker"
POSITION_BYTES = 8

POINTS = (  # what is called, and the part that it is
    (warc.PageReader, "content_at", "unpacking records"),
    (warc, "decode_record", "headers and exchange"),
    (reading, "read_exchange", "headers and exchange"),
    (answer, "decode_body", "body decoding and charset"),
    (answer, "choose_charset", "body decoding and charset"),
    (answer, "to_utf_8", "body decoding and charset"),
    (html, "read_plain", "finding start tags without a tree"),
    (html, "take_plain", "links gathered"),
    (html, "find_tags", "nesting check"),
    (html, "cut_tangled", "nesting check"),
    (html, "LexborHTMLParser", "parsing HTML"),
    (html, "read_tree", "selecting elements, freeing the tree"),
    (html.TreeReading, "take_anchors", "links gathered"),
    (html.TreeReading, "take", "links gathered"),
    (LinkJudge, "judge", "links resolved and judged"),
    (reading, "digest_content", "content digest"),
    (reading.Reading, "take", "rows of pages"),
)


class Clock:
    """Gives time to the part that was entered last and has not been left."""

    def __init__(self):
        self.parts_s: Counter[str] = Counter()
        self._within = [REST]
        self._at_s = time.perf_counter()

    def enter(self, part: str) -> None:
        self._note()
        self._within.append(part)

    def leave(self) -> None:
        self._note()
        self._within.pop()

    def _note(self) -> None:
        now_s = time.perf_counter()
        self.parts_s[self._within[-1]] += now_s - self._at_s
        self._at_s = now_s

    def run(self, part: str, function, *arguments, **options):
        self.enter(part)
        try:
            return function(*arguments, **options)
        finally:
            self.leave()


def clocked(clock: Clock, part: str, function):
    """The function, timed; as a method it still gets its object."""

    def run(*arguments, **options):
        return clock.run(part, function, *arguments, **options)

    return run


def time_parts(pages: Path, out: Path) -> dict[str, float]:
    """Seconds of each part in an extraction of the folder, by one process."""
    clock = Clock()
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in POINTS]
    for (owner, name, part), (_, _, function) in zip(POINTS, originals):
        setattr(owner, name, clocked(clock, part, function))
    try:
        extract(pages, out, clock)
    finally:
        for owner, name, function in originals:
            setattr(owner, name, function)
    return dict(clock.parts_s)


def send(result: object) -> object:
    """What the parent gets of a worker's result."""
    return pickle.loads(pickle.dumps(result, pickle.HIGHEST_PROTOCOL))


def extract(pages: Path, out: Path, clock: Clock) -> None:
    load_scan()
    config, keys = Config(), Keys(0)
    _, files = files_below(pages)
    extraction, worker = Extraction(config, keys, None, None), reading.Reading(config, keys, None, first_year(files))
    position = mmap.mmap(-1, POSITION_BYTES)
    clock.parts_s.clear()  # what was made so far is part of starting
    for file in files:
        reader, chunks = warc.PageReader(file.path), cut_file(file.path, file.name)
        while (chunk := clock.run(CUTTING, next, chunks, None)) is not None:
            result, _ = read_chunk(reader, chunk, {}, position, config.extractor.page_max_s, worker)
            sent = clock.run(SENDING, partial(send, result))
            clock.run(JOINING, extraction.take, sent)
    clock.run(TABLES, partial(publish, out, extraction, 0, {}))


def main() -> None:
    pages, out, parts_file = map(Path, sys.argv[1:])
    parts_file.write_text(json.dumps(time_parts(pages, out)))


if __name__ == "__main__":
    main()
