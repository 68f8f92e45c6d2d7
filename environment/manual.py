"""Prints the manual of a command whose packages are not installed yet: the text of its module, which is not imported.

usage: manual.py MODULE [WORD]     (WORD: what follows the command, as build in bin/graph build)
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = "{"  # begins a line that only the command itself can fill in


def main(module: str, word: str = "") -> int:
    path = ROOT.joinpath(*module.split("."))
    sources = (path / f"{word}_command.py", path / "__main__.py", path.with_suffix(".py"))
    source = next(source for source in sources if source.is_file())
    manual = ast.get_docstring(ast.parse(source.read_text("utf-8"))) or ""
    lines = ("  (listed after a first use)\n" if line.startswith(PLACE) else line for line in manual.splitlines())
    print("\n".join(lines))
    print("\nA first use installs what the command needs. --help then lists its options too, as docs/commands.md does.")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
