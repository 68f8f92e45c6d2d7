"""sql: answers questions about a crawl in SQL; every table of the crawl is a view.

  bin/sql [--crawl DIR] "select ..."           a table that fits the terminal
  bin/sql [--crawl DIR] "select ..." --csv     CSV; --json prints one JSON object per line
  bin/sql [--crawl DIR] - < question.sql       the query from standard input

The SQL is that of DuckDB. A query is one SELECT (also FROM ..., WITH ..., DESCRIBE and SUMMARIZE). Nothing can be
written, and no other files, no network and no extensions can be reached. Needs no lock: a running crawl is seen as of
its last commit. Times are UTC. On a terminal wide columns are cut, and columns that find no room are named; elsewhere
values are whole and numbers plain.

detect_language(text) gives the likeliest language of a text, or NULL; short texts such as titles are often mistaken.

Nothing is copied. Tables of cycles are read where they lie, and only the columns and rows that a query needs. `urls`
is read from the live generations, some 262,144 URLs at a time, and always whole, texts too. --memory bounds what
DuckDB uses, beside some 400 MiB for reading; what needs more goes to a folder for temporary files (TMPDIR). A query
that cannot do with it, such as one that makes a huge text, ends with exit 75.

A table that is missing or damaged ends the query with exit 65. --allow-partial leaves such tables out and says so; it
first reads all tables that the query needs, to verify them. It holds for tables of cycles and servers, not for the URLs
of a block, which are whole or an error. An error in the SQL is exit 64.

Views and their columns:

{views}
Examples:
  bin/sql --crawl demo/crawl "select status, count(*) as pages from pages group by status order by status"
  bin/sql --crawl demo/crawl "select url, title from pages where language = 'pt'" --csv > titles.csv
  bin/sql --crawl demo/crawl "summarize servers"

docs/questions.md has a dozen worked questions.
"""

import argparse
import os
import re
import sys
import textwrap

from contract.command import make_parser, run
from contract.crawl_folder import open_folder
from contract.errors import Usage
from contract.lines import say, width_of
from contract.units import count
from examine.tables.definitions import VIEWS
from examine.tables.layout import add_forms, print_rows
from examine.tables.memory import bounding_memory
from examine.tables.views import MEMORY_BYTES, Views

NAME = "sql"
SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
MEMORY_LEAST = 64 << 20
MANUAL_WIDTH = 100


def main() -> None:
    parser = make_parser(NAME, __doc__.replace("{views}", describe_views()))
    parser.add_argument("sql", metavar="SQL", help="the query; - reads it from standard input")
    add_forms(parser)
    parser.add_argument(
        "--memory", type=memory, default=MEMORY_BYTES, metavar="SIZE", help="such as 512M or 4G (default: 1G)"
    )
    parser.add_argument("--allow-partial", action="store_true", help="leave out tables that are missing or damaged")
    arguments = parser.parse_args()
    sql = read_sql(arguments.sql)
    crawl = open_folder(arguments.crawl)
    with (
        Views(crawl, arguments.memory, allow_partial=arguments.allow_partial) as views,
        bounding_memory(arguments.memory),
    ):
        result = views.query(sql)
        number = print_rows(result.columns, result.rows, arguments.form)
        if arguments.form == "table" and width_of(sys.stdout):
            say(f"({count(number, 'row')})")
        if views.left_out:
            say(describe_left_out(views.left_out), sys.stdout if arguments.form == "table" else sys.stderr)


def read_sql(argument: str) -> str:
    content = sys.stdin.buffer.read() if argument == "-" else os.fsencode(argument)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Usage(f"expected SQL in UTF-8, found byte {content[error.start]:#04x} at offset {error.start}") from None


def memory(text: str) -> int:
    """Bytes, from a text such as 512M or 1G."""
    found = re.fullmatch(r"(\d{1,12})([kmg]?)(i?b)?", text.lower())
    if not found or int(found[1]) * SIZES[found[2]] < MEMORY_LEAST:
        raise argparse.ArgumentTypeError(f"expected a size of 64M or more, such as 512M or 4G, found {text}")
    return int(found[1]) * SIZES[found[2]]


def describe_left_out(left_out: list[str]) -> str:
    return f"{NAME}: partial: {count(len(left_out), 'table')} left out; the first: {left_out[0]}"


def describe_views() -> str:
    """The list of views for the manual."""
    lines = []
    for name, view in VIEWS.items():
        lines.append(f"  {name}")
        for text in (view.about, ", ".join(view.columns)):
            lines += textwrap.wrap(text, MANUAL_WIDTH, initial_indent="      ", subsequent_indent="      ")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    run(main, NAME)
