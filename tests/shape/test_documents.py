"""The documents name every key, format, column, exit code and command that there is."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from contract import config, errors, log, names, tables
from contract import generation as generation_format
from contract.warc import FINAL, OUTCOME, REASON, ROBOTS_FOR, TIMES
from stages.fetcher import reasons
from tests.shape import configuration_page

ROOT = Path(__file__).resolve().parent.parent.parent
FORMATS = (ROOT / "docs/formats.md").read_text()
OPERATIONS = (ROOT / "docs/operations.md").read_text()
STATES = (ROOT / "docs/states.md").read_text()
COMMANDS = sorted(path.name for path in (ROOT / "bin").iterdir())


def word_in(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", text) is not None


@pytest.mark.parametrize("name", [name for name in dir(tables) if hasattr(getattr(tables, name), "names")])
def test_every_column_of_every_table_is_documented(name):
    missing = [column for column in getattr(tables, name).names if not word_in(column, FORMATS)]
    assert not missing


def test_every_column_of_a_generation_is_documented():
    columns = [
        *generation_format.COLUMNS,
        *(f"collected_{name}" for name in generation_format.SIDE_COLUMNS),
        *generation_format.BLOCK_SERVERS.names,
    ]
    assert [column for column in columns if not word_in(column, FORMATS)] == []


def test_every_file_name_is_documented():
    files = [value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)]
    assert [name for name in files if name.removesuffix(".parquet") not in FORMATS] == []
    assert [header for header in (FINAL, OUTCOME, REASON, ROBOTS_FOR, TIMES) if header not in FORMATS] == []
    assert [kind for kind in log.KINDS if f"`{kind}`" not in FORMATS] == []


def test_every_state_is_documented():
    assert [state for state in tables.STATES if state not in FORMATS] == []
    assert [state for state in tables.STATES if state.replace("_", " ") not in STATES] == []


def test_the_table_of_reasons_is_that_of_the_fetcher():
    """Every word, its outcome, and whether the same cycle asks again."""
    told = re.findall(r"^\| (\w+) \| (failed|refused) \| (yes|no) \| .+ \|$", FORMATS.partition("### Reasons")[2], re.M)
    words = [value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)]
    assert sorted(told) == sorted(
        [
            (tables.REASON_ROBOTS, tables.REFUSED, "no"),
            *(
                (
                    word,
                    tables.REFUSED if word in reasons.REFUSALS else tables.FAILED,
                    "yes" if word in reasons.TEMPORARY else "no",
                )
                for word in words
            ),
        ]
    )


def test_every_exit_code_is_documented():
    codes = {value for name, value in vars(errors).items() if name.startswith("EX_")}
    assert [code for code in codes if not re.search(rf"^\| {code} \|", OPERATIONS, re.M)] == []


def test_pipeline_toml_has_every_key_with_a_comment():
    text = (ROOT / "pipeline.toml").read_text()
    read = tomllib.loads(text)
    wanted = {section: {part.name for part in fields(kind)} for section, kind in config.SECTIONS.items()}
    assert {section: set(table) for section, table in read.items()} == wanted
    for keys in wanted.values():
        for key in keys:
            assert re.search(rf"^{key} = .*#", text, re.M), f"{key} has no comment"


def test_the_page_of_the_configuration_is_made_from_pipeline_toml_and_the_program():
    """If it differs: .venv/bin/python -m tests.shape.configuration_page"""
    assert configuration_page.PAGE.read_text() == configuration_page.make_page()


def test_the_page_of_commands_has_a_section_for_each():
    headings = " ".join(re.findall(r"^## (.+)$", (ROOT / "docs/commands.md").read_text(), re.M))
    assert [command for command in COMMANDS if not word_in(f"bin/{command}", headings)] == []


def test_documents_fit_into_120_columns():
    """But for rows of tables."""
    documents = [path for pattern in ("*.md", "*/*.md", "*/*/*.md") for path in ROOT.glob(pattern)]
    long = [
        f"{document.relative_to(ROOT)}:{number}"
        for document in documents
        if not {".venv", "build"} & set(document.relative_to(ROOT).parts)
        for number, line in enumerate(document.read_text().splitlines(), 1)
        if len(line) > 120 and not line.lstrip().startswith("|")
    ]
    assert long == []


def test_readme_and_operations_name_every_command():
    readme = (ROOT / "README.md").read_text()
    assert [command for command in COMMANDS if f"bin/{command}" not in readme + OPERATIONS] == []


def test_documents_name_only_modules_that_exist():
    """A `module.py` in a document is the end of the path of a file of the project."""
    folders = (
        *(
            "bench",
            "contract",
            "environment",
            "examine",
            "graph",
            "stages",
            "storage",
            "study",
            "supervise",
            "synthweb",
        ),
        "tests",
    )
    modules = [f"/{path.relative_to(ROOT)}" for folder in folders for path in (ROOT / folder).rglob("*.py")]
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("stages/*/README.md")]:
        named = re.findall(r"`([\w/]+\.py)`", document.read_text())
        missing = [name for name in named if not any(module.endswith(f"/{name}") for module in modules)]
        assert missing == [], document.name


def test_links_between_documents_lead_somewhere():
    for document in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("stages/*/README.md"),
        *ROOT.glob("synthweb/*.md"),
    ]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize(
    "folder", ["stages/scheduler", "stages/fetcher", "stages/extractor", "stages/verifier", "synthweb"]
)
def test_each_program_has_a_short_readme_that_names_its_files(folder):
    text = (ROOT / folder / "README.md").read_text()
    assert len(text.splitlines()) <= 40
    if folder.startswith("stages/"):
        modules = [path.name for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py"]
        assert [name for name in modules if name not in text] == []
