"""graph convert: the two forms of the Padova thesis, raw and mini, into each other.

  bin/graph convert FOLDER --out FOLDER

The first folder has urls.txt and either graph.raw or graph.mini, as bin/graph export writes them. The second one must
be new or empty, and gets the other form. Needs 16 bytes of memory per page (raw to mini: 36).

Example: bin/graph convert /tmp/demo-raw --out /tmp/demo-mini
"""

from pathlib import Path

from contract.command import make_parser
from contract.errors import BadInput
from contract.lines import say
from contract.stage import expect_ours
from graph.folder import expect_no_file_of_a_crawl
from graph.padova import FILES, MINI, RAW, URLS, mini_to_raw, raw_to_mini
from storage.publish import publishing


def main(words: list[str]) -> None:
    parser = make_parser("graph convert", __doc__)
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="the folder with urls.txt and graph.raw or graph.mini"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the other form is written")
    arguments = parser.parse_args(words)
    source, folder = arguments.folder, arguments.out
    has_raw, has_mini = ((source / name).is_file() for name in (RAW, MINI))
    if has_raw == has_mini or not (source / URLS).is_file():
        raise BadInput(f"{source}: expected {URLS} and either {RAW} or {MINI}, found others")
    expect_no_file_of_a_crawl(folder)
    expect_ours(folder, FILES)
    with publishing(folder):
        (raw_to_mini if has_raw else mini_to_raw)(source, folder)
    say(f"{folder}: {MINI if has_raw else RAW} written")
