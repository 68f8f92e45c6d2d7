"""graph: the link graph of a crawl.

  bin/graph build [--crawl DIR]                    writes the graph to DIR/graph
  bin/graph export --format FORMAT --out FOLDER    writes it in a format that other tools read
  bin/graph convert FOLDER --out FOLDER            raw to mini, or mini to raw
  bin/graph look URL                               a page with its neighbours, by URL or number
  bin/graph stats                                  degrees, bow-tie, links within and between domains
  bin/graph rank                                   PageRank and others, as a file that the scheduler reads

Each has a manual: bin/graph TASK --help. docs/graph.md describes the files.

Example: bin/graph build --crawl demo/crawl && bin/graph rank --crawl demo/crawl
"""

import importlib
import sys

from contract.command import make_parser, run
from contract.errors import Usage

NAME = "graph"
TASKS = ("build", "export", "convert", "look", "stats", "rank")


def main() -> int | None:
    if sys.argv[1:] and sys.argv[1] in TASKS:
        task = importlib.import_module(f"graph.{sys.argv[1]}_command")
        code: int | None = task.main(sys.argv[2:])
        return code
    parser = make_parser(NAME, __doc__)
    parser.usage = "bin/graph TASK [--crawl DIR] ..."
    parser.add_argument("task", choices=TASKS, metavar="TASK", help=f"what to do: {', '.join(TASKS)}")
    task = parser.parse_args().task
    raise Usage(f"the task comes first: bin/graph {task} ...")


if __name__ == "__main__":
    run(main, NAME)
