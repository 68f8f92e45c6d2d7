"""Compiles all compiled functions (storage/compiled.py), so that the first crawl need not wait for them.

A function that fails to compile here is compiled, and its error reported, at its first call.
"""

import importlib
from pathlib import Path

from storage.compiled import load_all

ROOT = Path(__file__).resolve().parent.parent

for path in sorted(path for package in ("storage", "contract", "stages") for path in (ROOT / package).rglob("*.py")):
    if "@compiled(" in path.read_text():
        importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
load_all()
