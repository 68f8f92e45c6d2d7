"""Who imports whom: the layers of ARCHITECTURE.md, kept by reading every import."""

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("contract", "examine", "graph", "stages", "storage", "study", "supervise", "synthweb")
MAY_IMPORT = {
    "storage": {"storage"},
    "contract": {"contract", "storage"},
    "examine": {"examine", "contract", "storage"},
    "graph": {"graph", "contract", "storage"},
    "study": {
        "study",
        "contract",
        "graph",
        "stages",
        "storage",
    },  # it judges what stages decide, so it runs their pure functions
    "supervise": {"supervise", "contract", "storage"},
    "synthweb": {"synthweb"},
}
ALL_STAGES = Path("supervise/all_stages.py")  # the one module that imports all stages: the warm process forks them
IN_ONE_PLACE = {
    "pycurl": "stages/fetcher/engine.py",
    "zstandard": "storage/frames.py",
    "altair": "examine/report/charts.py",
    "waitress": "examine/dashboard/__main__.py",
    "sortednp": "storage/arrays.py",
    "ada_url": "contract/url.py",
    "brotlicffi": "contract/body.py",
    "dns": "stages/fetcher/resolver.py",
    "selectolax": "stages/extractor/documents/html.py",
    "lxml": "stages/extractor/documents/markup.py",
    "chardet": "stages/extractor/charset.py",
    "pypdfium2": "stages/extractor/documents/pdf.py",
    "olefile": "stages/extractor/documents/doc.py",
    "setproctitle": "supervise/warm_process.py",
    "numba": "storage/compiled.py",
    "matplotlib": "study/figures.py",
    "duckdb": "examine/tables/views.py",
    "resiliparse": "examine/page_text.py",
    "surt": "examine/export/cdxj.py",
}
SOURCES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= (
                {f"{node.module}.{alias.name}" for alias in node.names} if node.module in PACKAGES else {node.module}
            )
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_layers(path):
    relative = path.relative_to(ROOT)
    package = relative.parts[0]
    own = {name for name in imports(path) if name.split(".")[0] in PACKAGES}
    if package == "stages":
        stage = ".".join(relative.parts[:2])
        allowed = lambda name: name.split(".")[0] in ("contract", "storage") or name.startswith(stage)  # noqa: E731
    elif relative == ALL_STAGES:
        allowed = lambda name: name.split(".")[0] in {"stages", *MAY_IMPORT[package]}  # noqa: E731
    else:
        allowed = lambda name: name.split(".")[0] in MAY_IMPORT[package]  # noqa: E731
    assert [name for name in own if not allowed(name)] == []


@pytest.mark.parametrize("library", IN_ONE_PLACE)
def test_libraries_with_one_importer(library):
    importers = [
        str(path.relative_to(ROOT)) for path in SOURCES if any(name.split(".")[0] == library for name in imports(path))
    ]
    assert importers == [IN_ONE_PLACE[library]]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_are_short_and_say_what_they_are_for(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert ast.get_docstring(ast.parse(text)), "the first line says what a module is for"
    assert path.stem not in ("utils", "helpers", "common", "misc", "manager")


def test_no_addresses_of_registries_and_no_absolute_paths():
    lock = (ROOT / "requirements.lock").read_text()
    assert all("==" in line and "/" not in line for line in lock.splitlines())


def test_benchmarks_have_what_the_studies_that_they_time_import():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras["study"]) <= set(extras["bench"]), "bench/simulate imports study, in an environment of its own"
