"""bench: measures one claim of docs/performance.md, with its peers, on the same data.

  bin/bench                        list the benchmarks
  bin/bench NAME [--json FILE]     run one, print its table, write its figures to FILE

A benchmark may have options of its own: bin/bench NAME --help. Ratios are medians of interleaved repeats. Let nothing
else run on the machine meanwhile.

Example: bin/bench verifier --to 5 --fill --json /tmp/verifier.json      (--crawl DIR is accepted and not used)
"""

import importlib
import json
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

import bench
from contract.command import make_parser, run
from contract.errors import Usage

NAME = "bench"


def benchmarks() -> dict[str, ModuleType]:
    """The modules of bench that measure something, by the names that a user types; the others are what these share."""
    names = [found.name for found in pkgutil.iter_modules(bench.__path__) if found.name != "__main__"]
    modules = {name: importlib.import_module(f"bench.{name}") for name in names}
    return {name.replace("_", "-"): module for name, module in modules.items() if hasattr(module, "measure")}


def manual_of(name: str, module: ModuleType) -> str:
    return (
        f"{module.__doc__}\nHow it is measured, and its figures: docs/performance.md.\n\n"
        f"Example: bin/bench {name} --json /tmp/{name}.json"
    )


def main() -> None:
    known = benchmarks()
    named = next((word for word in sys.argv[1:] if word in known), None)
    parser = make_parser(NAME, manual_of(named, known[named]) if named else __doc__)
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"one of: {', '.join(known)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    if named and hasattr(known[named], "add_options"):
        known[named].add_options(parser)
    arguments = parser.parse_args()
    if arguments.name is None:
        for name, module in known.items():
            print(f"bin/bench {name}: {module.__doc__.splitlines()[0]}")
        return
    if arguments.name not in known:
        raise Usage(f"{arguments.name}: no such benchmark; expected one of {', '.join(known)}")
    figures = known[arguments.name].measure(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    run(main, NAME)
