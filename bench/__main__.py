"""bench: measures one claim of docs/performance.md, with its peers, on the same data.

  bin/bench                        the benchmarks that there are
  bin/bench NAME [--json FILE]     run one, print its table, write its figures to FILE

A benchmark may have options of its own: bin/bench NAME --help. Ratios are medians of interleaved repeats. Let nothing else run on the machine meanwhile.

Example: bin/bench uniqueness --json /tmp/uniqueness.json      (--crawl DIR is accepted and not used)
"""

import importlib
import json
import pkgutil
import sys
from pathlib import Path

import bench
from contract.command import make_parser, run
from contract.errors import Usage

NAME = "bench"


def main() -> None:
    names = [module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_")]
    parser = make_parser(NAME, __doc__)
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"one of: {', '.join(names)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    named = next((word for word in sys.argv[1:] if word in names), None)
    if named and hasattr(module := importlib.import_module(f"bench.{named}"), "add_options"):
        module.add_options(parser)
    arguments = parser.parse_args()
    if arguments.name is None:
        for name in names:
            print(f"bin/bench {name}: {importlib.import_module(f'bench.{name}').__doc__.splitlines()[0]}")
        return
    if arguments.name not in names:
        raise Usage(f"{arguments.name}: no such benchmark; expected one of {', '.join(names)}")
    figures = importlib.import_module(f"bench.{arguments.name}").measure(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    run(main, NAME)
