"""report: makes one HTML file with pictures and tables of a crawl, at any time, also while it runs.

  bin/report --crawl DIR                  writes report.html
  bin/report --crawl DIR --out FILE       writes FILE
  bin/report --crawl DIR --png FOLDER     writes each picture as a PNG file too
  bin/report --crawl DIR --language pt    in Portuguese
  bin/report --crawl DIR --ranks FILE     with these ranks; else with those of bin/graph rank, if any

The file needs no network, runs no script, and can be printed. Under each picture stands the table of its numbers.
It reads files only, needs no lock, and does not disturb a crawl at work. Some minutes for millions of pages.

A damaged or missing file ends it with exit code 65. With --allow-partial the report leaves out what cannot be read,
and says so at its top.

Example: bin/report --crawl demo/crawl --out demo/report.html
"""

import os
import time
from pathlib import Path

from contract.command import make_parser, run
from contract.crawl_folder import expect_outside, open_folder
from contract.errors import Usage
from contract.lines import say
from contract.rank_files import own_ranks
from contract.units import count
from examine.report.charts import draw_png
from examine.report.collection import (
    show_depth,
    show_duplicates,
    show_kinds,
    show_links,
    show_ranks,
    show_seeds,
    show_servers,
    show_sizes,
    show_visits,
)
from examine.report.figures import Figures, gather
from examine.report.page import make_page
from examine.report.progress import (
    show_cycles,
    show_errors,
    show_problems,
    show_progress,
    show_rate,
    show_stages,
    show_waits,
    summarise,
)
from examine.report.sections import Section
from examine.report.words import ENGLISH, LANGUAGES, Words
from storage.unsynced_files import is_other_thing

NAME = "report"
SECTIONS = (
    *(summarise, show_problems, show_progress, show_rate, show_waits, show_stages, show_cycles, show_errors),
    *(
        show_seeds,
        show_kinds,
        show_sizes,
        show_servers,
        show_links,
        show_ranks,
        show_depth,
        show_visits,
        show_duplicates,
    ),
)


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="default: report.html")
    parser.add_argument("--png", type=Path, metavar="FOLDER", help="write each picture there as a PNG file")
    parser.add_argument("--language", choices=LANGUAGES, default=ENGLISH, help="default: en")
    parser.add_argument("--allow-partial", action="store_true", help="leave out what cannot be read")
    parser.add_argument(
        "--ranks",
        type=Path,
        metavar="FILE",
        help="a URL, a blank and its rank per line (default: those of bin/graph rank)",
    )
    arguments = parser.parse_args()
    expect_file(arguments.out)
    if arguments.png is not None:
        expect_folder(arguments.png)
    words = Words(arguments.language)
    now_ms = time.time_ns() // 1_000_000
    crawl = open_folder(arguments.crawl)
    ranks_file = arguments.ranks
    if ranks_file is None and own_ranks(crawl.path).is_file():
        ranks_file = own_ranks(crawl.path)
    of = gather(crawl, now_ms, allow_partial=arguments.allow_partial, ranks_file=ranks_file)
    sections = make_sections(of, words)
    write(arguments.out, make_page(of, sections, words).encode("utf-8", "backslashreplace"))
    if arguments.png is not None:
        write_pictures(arguments.png, sections, words, of.left_out)
    pictures = sum(part.chart is not None for section in sections for part in section.parts)
    partial = f"; partial: {count(len(of.left_out), 'file')} could not be read" if of.left_out else ""
    say(f"{arguments.out}: {count(of.status['collected'], 'page')}, {count(pictures, 'picture')}{partial}")
    return 0


def expect_file(path: Path) -> None:
    """Usage where a report must not be put: it would replace a device, or a file of a crawl."""
    if not path.parent.is_dir() or is_other_thing(path):
        raise Usage(f"--out: expected a file or a new name, in a folder that exists, found another thing: {path}")
    expect_outside(path)


def expect_folder(path: Path) -> None:
    """Usage where pictures must not be put."""
    if path.exists() and not path.is_dir():
        raise Usage(f"--png: expected a folder or a new name, found another thing: {path}")
    expect_outside(path)


def make_sections(of: Figures, words: Words) -> list[Section]:
    return [make(of, words) for make in SECTIONS]


def write_pictures(folder: Path, sections: list[Section], words: Words, left_out: list[str]) -> None:
    note = ""
    if left_out:
        note = words("Partial, files that could not be read: {number}").format(number=words.number(len(left_out)))
    folder.mkdir(parents=True, exist_ok=True)
    for section in sections:
        for part in section.parts:
            if part.chart is not None:
                write(folder / f"{part.name}.png", draw_png(part.chart, words, note))


def write(path: Path, content: bytes) -> None:
    """Replaces the file at once, so that nobody opens half of it."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(content)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


if __name__ == "__main__":
    run(main, NAME)
