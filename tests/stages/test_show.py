"""bin/show: tables that fit, the columns and rows that were asked for, and what is wrong with a condition."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from contract import names
from contract.errors import Usage
from examine import show
from examine.tables.conditions import parse_condition
from examine.tables.layout import cells_of, cut, fit_widths
from tests.at_terminal import run_at_terminal
from tests.golden import GOLDEN, LAST
from tests.in_process import call

ROOT = Path(__file__).resolve().parent.parent.parent
METADATA = f"{names.cycle(LAST)}/{names.EXTRACTOR}/{names.METADATA}"
ROWS = pq.read_table(GOLDEN / METADATA).to_pylist()


@pytest.fixture
def shown(capsys):
    """Runs bin/show on the golden crawl in this process: the lines of its standard output, or its error."""

    def run_show(*arguments: object, code: int = 0) -> list[str]:
        assert call(show.main, show.NAME, "--crawl", GOLDEN, *arguments) == code
        printed = capsys.readouterr()
        return (printed.err if code else printed.out).splitlines()

    return run_show


def test_a_table_has_a_row_per_line_and_keys_last(shown):
    about, header, line, *rows = shown(METADATA)
    columns = header.split()
    assert about.endswith(f"{len(ROWS)} rows") and set(line) <= {"-", " "} and len(rows) == len(ROWS)
    assert columns[0] == "url" and set(columns) == set(ROWS[0])
    lasts = [name.endswith(show.LAST) for name in columns]
    assert lasts == sorted(lasts) and "url_key" in columns[-10:]


def test_columns_and_conditions(shown):
    wanted = [row for row in ROWS if row["status"] == 200 and row["bytes"] > 0 and "text" in row["type"]]
    conditions = [word for text in ("status=200", "bytes>0", "type~text") for word in ("--where", text)]
    rows = shown(METADATA, "--columns", "url,status,revisit", *conditions, "--csv")
    assert list(csv.DictReader(rows)) == [
        {"url": row["url"], "status": str(row["status"]), "revisit": str(row["revisit"]).lower()} for row in wanted
    ]
    assert 0 < len(wanted) < len(ROWS)
    rows = [json.loads(row) for row in shown(METADATA, "--columns", "url", "--where", "revisit=true", "--json")]
    assert rows == [{"url": row["url"]} for row in ROWS if row["revisit"]]
    rows = shown(METADATA, "--where", "status!=200", "--where", "status<=304", "--json")
    assert [json.loads(row)["url"] for row in rows] == [row["url"] for row in ROWS if 200 != row["status"] <= 304]


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--columns", "urls"], "expected a column, found urls: did you mean url?"),
        (["--where", "nothing=1"], "expected a column, found nothing: the columns are"),
        (["--where", "status"], "--where: expected a column, one of = != < <= > >= ~ and a value, found 'status'"),
        (["--where", "status>many"], "expected a number to compare status with, found 'many'"),
        (["--csv", "--json"], "not allowed with"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(shown, arguments, says):
    (line,) = shown(METADATA, *arguments, code=64)
    assert says in line


def test_limits_count_rows_that_hold(shown):
    *_, last = shown(METADATA, "--limit", 1, "--where", "status>=200", "--columns", "url")
    assert last == "(1 row shown; --limit 0 shows all)"
    assert len(shown(METADATA, "--limit", 0, "--json")) == len(ROWS)


def test_one_row_is_a_list_of_fields_and_text_is_lines(shown):
    lines = shown(names.CRAWL_FILE)
    about = json.loads((GOLDEN / names.CRAWL_FILE).read_text())
    assert dict(line.split(maxsplit=1) for line in lines)["suffix_list.xxh3"] == about["suffix_list"]["xxh3"]
    _, *lines = shown(names.CONFIGURATION, "--limit", 0)
    assert lines == (GOLDEN / names.CONFIGURATION).read_text().splitlines()


@pytest.mark.parametrize("columns", [60, 120])
def test_a_terminal_gets_a_table_that_fits(columns):
    code, text = run_at_terminal([ROOT / "bin/show", "--crawl", GOLDEN, METADATA], columns=columns)
    lines = text.splitlines()
    assert code == 0 and "url_key" in text.partition("no room for")[2].replace("\n", " ")
    begin = next(number for number, line in enumerate(lines) if line.startswith("url "))
    assert max(map(cells_of, lines[begin : begin + 2 + len(ROWS)])) <= columns


def test_widths():
    assert fit_widths([5, 5], 80) == [5, 5]
    assert fit_widths([100, 5], 80) == [73, 5]
    assert fit_widths([50, 50, 5], 80) == [35, 36, 5]
    assert fit_widths([50, 50, 50, 50], 80) == [39, 39]
    assert fit_widths([100], 10) == [10]
    assert cut("abcdef", 4) == "abc\N{HORIZONTAL ELLIPSIS}" and cut("abcd", 4) == "abcd"
    assert cells_of("日本") == 4 and cut("日本語", 4) == "日\N{HORIZONTAL ELLIPSIS}" and cells_of("e\u0301") == 1


@pytest.mark.parametrize(
    "condition, row, holds",
    [
        ("a=1", {"a": 1}, True),
        ("a = 1.0", {"a": 1}, True),
        ("a<10", {"a": 9}, True),
        ("a<10", {"a": "9"}, False),
        ("a>=-2", {"a": -2}, True),
        ("a=true", {"a": True}, True),
        ("a=", {"a": ""}, True),
        ("a=", {"a": None}, True),
        ("a~=b", {"a": "x=by"}, True),
        ("a!=x", {"b": "y"}, False),
        ("a~é", {"a": "café".encode()}, False),
    ],
)
def test_conditions(condition, row, holds):
    assert parse_condition(condition).holds(row) is holds


def test_a_condition_with_a_wrong_number():
    with pytest.raises(Usage, match="expected a number"):
        parse_condition("a>b").holds({"a": 1})


@pytest.mark.parametrize("content", ["[1, 2]", "5", "null", "[" * 100_000])
def test_json_that_is_no_object_is_damage(tmp_path, content):
    path = tmp_path / "manifest.json"
    path.write_text(content)
    assert call(show.main, "show", path) == 65
