"""Writes what bin/show prints of the golden crawl: .venv/bin/python -m tests.golden.shown"""

import shutil
import subprocess
from pathlib import Path

from tests.golden import GOLDEN, SHOWN, shown_name

ROOT = Path(__file__).resolve().parent.parent.parent


def main() -> None:
    folder = GOLDEN.parent / "shown"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in SHOWN:
        shown = subprocess.run(
            [ROOT / "bin/show", "--crawl", GOLDEN, path, "--json", "--limit", "5"], check=True, capture_output=True
        )
        (folder / shown_name(path)).write_bytes(shown.stdout)


if __name__ == "__main__":
    main()
