"""bin/sql: the views of a crawl against its files and books, what it refuses, and what it says of damage."""

import json
import os
import re
import resource
import shutil
import signal
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from contract import names
from contract.crawl_folder import create, open_folder
from contract.errors import TryLater, Usage
from contract.generation import open_generation, read_urls
from contract.log import ABANDON, Entry, commit, replay
from contract.tables import COLLECTED_STATE, STATES
from examine.tables import sql, views
from examine.tables.definitions import VIEWS
from examine.tables.known_urls import live_generations
from examine.tables.stage_tables import Rows
from examine.tables.views import Views
from storage.errors import Damaged
from tests.at_terminal import run_at_terminal
from tests.golden import GOLDEN
from tests.in_process import call

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def ask():
    """Rows of a query on a crawl folder, by default the golden one."""

    def query(text: str, crawl: Path = GOLDEN, **options) -> list[tuple]:
        with Views(open_folder(crawl), **options) as opened:
            return list(opened.query(text).rows)

    return query


@pytest.fixture
def command(capsys):
    """Runs bin/sql in this process: exit code, standard output, standard error."""

    def run_sql(*arguments: object) -> tuple[int, str, str]:
        code = call(sql.main, sql.NAME, *arguments)
        return code, *capsys.readouterr()

    return run_sql


@pytest.fixture
def crawl(tmp_path) -> Path:
    shutil.copytree(GOLDEN, tmp_path / "crawl")
    return tmp_path / "crawl"


def metadata_of(crawl: Path) -> list[dict]:
    return [
        row | {"cycle": int(path.parent.parent.name)}
        for path in sorted(crawl.glob(f"{names.CYCLES}/*/{names.EXTRACTOR}/{names.METADATA}"))
        for row in pq.read_table(path).to_pylist()
    ]


def test_visits_are_the_rows_of_all_cycles(ask):
    rows = metadata_of(GOLDEN)
    expected = sorted((row["url"], row["status"], row["cycle"], row["file"], row["offset"]) for row in rows)
    found = ask("select url, status, cycle, file, file_offset from visits order by all")
    assert [(url, status, cycle, Path(file).name, offset) for url, status, cycle, file, offset in found] == [
        (url, status, cycle, Path(file).name, offset) for url, status, cycle, file, offset in expected
    ]
    assert all((GOLDEN / file).is_file() for _, _, _, file, _ in found)


def test_pages_have_one_row_per_url_with_its_last_full_answer(ask):
    """As the side set of R has it (docs/formats.md): a 304 or an identical body leaves the earlier answer."""
    expected: dict[str, dict] = {}
    visits: dict[str, int] = {}
    for row in metadata_of(GOLDEN):
        visits[row["url"]] = visits.get(row["url"], 0) + 1
        if row["url"] not in expected or not row["revisit"]:
            expected[row["url"]] = row
    found = ask("select url, cycle, status, visits, visited_at > fetched_at from pages")
    assert {row[0]: row[1:4] for row in found} == {
        url: (row["cycle"], row["status"], visits[url]) for url, row in expected.items()
    }
    assert len(found) == len(expected) and any(is_later for *_, is_later in found)


def test_urls_are_the_rows_of_the_live_generations(ask):
    log = replay(GOLDEN, open_folder(GOLDEN).blocks_first)
    expected = []
    for block, number in live_generations(log).items():
        generation = open_generation(GOLDEN, block, number)
        rows, side = generation.rows, iter(generation.side["visits"].tolist())
        for row, url in enumerate(read_urls(GOLDEN, generation, np.arange(len(generation)))):
            state = int(rows["state"][row])
            visits = next(side) if state == COLLECTED_STATE else None
            server = generation.servers.column("server")[int(generation.server_index[row])].as_py()
            key = int(rows["key"][row])
            expected.append((url, server, STATES[state], int(rows["links_in"][row]), visits, block, key))
    found = ask("select url, server, state, links_in, visits, block, url_key from urls order by all")
    assert found == sorted(expected, key=lambda row: tuple((value is None, value) for value in row)) and len(found) > 5


def test_links_have_both_urls_and_kinds_by_name(ask):
    paths = sorted(GOLDEN.glob(f"{names.CYCLES}/*/{names.EXTRACTOR}/{names.LINKS}"))
    number = sum(pq.read_metadata(path).num_rows for path in paths)
    found = ask("select from_url, to_url, kinds, from_key, to_key from links")
    keys = open_folder(GOLDEN).keys()
    assert len(found) == number > 0
    assert all(keys.of(url) == key for url, _, _, key, _ in found if url)
    assert all(keys.of(url) == key for _, url, _, _, key in found if url)
    assert {kind for row in found for kind in row[2]} >= {"a"} and all(row[2] for row in found)
    assert sum(row[1] is None for row in found) < number


def test_a_query_reads_only_its_columns_by_our_scanner(ask, monkeypatch):
    """By Rows.scanner, which keeps no footers: the memory of a query does not grow with the number of cycles."""
    read: list[list[str]] = []
    scanner = Rows.scanner

    def record(self, **options):
        made = scanner(self, **options)
        read.append(made.projected_schema.names)
        return made

    monkeypatch.setattr(Rows, "scanner", record)
    assert ask("select count(*) from visits where status = 304") == [(1,)]
    assert read and all(len(names) <= 2 for names in read)


def test_every_view_opens_also_in_a_crawl_without_cycles(ask, tmp_path):
    create(tmp_path / "new", 2)
    for view, definition in VIEWS.items():
        with Views(open_folder(tmp_path / "new")) as opened:
            result = opened.query(f"from {view}")
            assert result.columns == list(definition.columns) and list(result.rows) == []


def test_the_manual_lists_every_view_with_its_columns():
    manual = sql.describe_views()
    for view, definition in VIEWS.items():
        assert f"\n  {view}\n" in f"\n{manual}"
        assert all(re.search(rf"\b{column}\b", manual) for column in definition.columns)


@pytest.mark.parametrize(
    "text",
    [
        "copy pages to '{place}'",
        "explain analyze copy pages to '{place}'",
        "create table t as select 1",
        "attach '{place}'",
        "install httpfs",
        "load httpfs",
        "set memory_limit = '9GB'",
        "export database '{place}'",
        "select 1; select 2",
        "call pragma_version()",
        "",
        "select * from read_text('{secret}')",
        "select * from read_csv('{secret}')",
        "select * from read_parquet('{crawl}/cycles/*/extractor/Ligacoes.parquet')",
        "select * from glob('{crawl}/*')",
        "select * from '{secret}'",
        "from arguments",
        "selec url",
        "select nothing from pages",
    ],
)
def test_what_does_not_only_read_the_views_is_refused_in_one_line(ask, tmp_path, text):
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    with pytest.raises(Usage) as refused:
        ask(text.format(place=tmp_path / "written", secret=secret, crawl=GOLDEN))
    assert "\n" not in str(refused.value) and not (tmp_path / "written").exists()


def test_csv_and_json_are_whole_and_plain(command):
    query = "select url, bytes * 1000000 as number, null as nothing, fetched_at from visits order by url, cycle limit 2"
    code, out, err = command("--crawl", GOLDEN, query, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and not err and [type(row["number"]) for row in rows] == [int, int] and rows[0]["nothing"] is None
    code, out, _ = command("--crawl", GOLDEN, query, "--csv")
    assert out.splitlines()[0] == "url,number,nothing,fetched_at"
    assert [line.split(",")[:3] for line in out.splitlines()[1:]] == [
        [row["url"], str(row["number"]), ""] for row in rows
    ]
    code, out, _ = command("--crawl", GOLDEN, "select 1234567 as a, 'x' as a, now() as at")
    assert out.splitlines()[0].split() == ["a", "a_2", "at"] and out.splitlines()[2].split()[0] == "1234567"


def test_nested_values_are_valid_json(command):
    query = "select map {date '2020-01-02': 'inf'::double} as a, ['nan'::double, 1] as b, {'c': time '10:00'} as d"
    code, out, err = command("--crawl", GOLDEN, query, "--json")
    assert (code, err) == (0, "")
    assert out == '{"a": {"2020-01-02": null}, "b": [null, 1.0], "d": {"c": "10:00:00"}}\n'


def test_each_column_has_a_name_of_its_own(command):
    code, out, _ = command("--crawl", GOLDEN, "select 1 as a, 2 as a, 3 as a_2, 4 as a", "--json")
    assert code == 0 and json.loads(out) == {"a": 1, "a_3": 2, "a_2": 3, "a_4": 4}


def test_sql_that_is_not_utf_8_is_refused(command):
    code, _, err = command("--crawl", GOLDEN, "select 1 as \udcff")
    assert code == 64 and "in UTF-8, found byte 0xff at offset 12" in err


def test_errors_have_their_exit_codes(command, tmp_path):
    assert command("--crawl", GOLDEN, "selec")[0] == 64
    assert command("--crawl", GOLDEN, "select 1", "--memory", "1")[0] == 64
    assert command("--crawl", tmp_path, "select 1")[0] == 78
    code, _, err = command("--crawl", GOLDEN, "select list(range) from range(100000000)", "--memory", "64M")
    assert code == 75 and "--memory" in err
    bound = resource.getrlimit(resource.RLIMIT_DATA)
    for text in ("length(repeat('x', 3000000000))", "repeat('x', 1100000000)"):  # DuckDB itself bounds neither
        code, _, err = command("--crawl", GOLDEN, f"select {text}", "--memory", "64M", "--csv")
        assert code == 75 and "--memory" in err
    assert resource.getrlimit(resource.RLIMIT_DATA) == bound


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def change(path: Path) -> None:
    """Every byte of its first half but the magic number: pages, not the footer."""
    content = path.read_bytes()
    half = len(content) // 2
    path.write_bytes(content[:4] + bytes(byte ^ 0x55 for byte in content[4:half]) + content[half:])


@pytest.mark.parametrize("damage", [Path.unlink, cut, change], ids=["missing", "cut", "changed"])
def test_a_damaged_table_is_named_and_left_out_only_on_request(command, crawl, damage):
    (path, *others) = sorted(crawl.glob(f"{names.CYCLES}/*/{names.EXTRACTOR}/{names.METADATA}"))
    damage(path)
    code, out, err = command("--crawl", crawl, "select * from visits", "--csv")
    assert code == 65 and str(path.relative_to(crawl)) in err and "Traceback" not in err
    code, out, err = command("--crawl", crawl, "select count(*) from visits", "--allow-partial", "--csv")
    assert code == 0 and "partial: 1 table left out" in err and str(path.relative_to(crawl)) in err
    assert int(out.splitlines()[1]) == sum(pq.read_metadata(other).num_rows for other in others)
    assert command("--crawl", crawl, "select count(*) from rejected")[0] == 0, "a query that does not need it runs"


def test_a_damaged_generation_is_named(command, crawl):
    key = max(crawl.glob(f"{names.GENERATIONS}/*/*/key.npy"))
    change(key)
    code, _, err = command("--crawl", crawl, "select count(*) from urls")
    assert code == 65 and "key.npy" in err and "Traceback" not in err


@pytest.mark.parametrize("view", ["urls", "servers"])
def test_a_generation_that_a_running_crawl_deleted_is_no_damage(crawl, view):
    with Views(open_folder(crawl)) as opened:
        (block, number), *_ = live_generations(replay(crawl, 2)).items()
        shutil.rmtree(crawl / names.generation(block, number))
        with pytest.raises(Damaged):
            list(opened.query(f"select count(*) from {view}").rows)
    with Views(open_folder(crawl)) as opened:
        commit(crawl, Entry(ABANDON, 99, 2))
        with pytest.raises(TryLater, match="run the query again"):
            list(opened.query(f"select count(*) from {view}").rows)


def test_only_what_the_log_has_counts(ask, crawl):
    """The pages of a cycle that is not committed are in no view."""
    before = ask("select count(*) from visits")
    last = max(crawl.glob(f"{names.CYCLES}/*/{names.EXTRACTOR}")).parent
    shutil.copytree(last, last.with_name("00000099"))
    assert ask("select count(*) from visits", crawl) == before
    newest = max((crawl / names.LOG).iterdir())
    newest.unlink()
    assert ask("select max(cycle) < 6 from visits", crawl) == [(True,)]


def test_a_terminal_gets_a_table_that_fits_and_no_escape_sequences():
    query = "select url, chr(27) || '[31mred' as title, 1234567 as n, type, charset, cycle from visits"
    code, shown = run_at_terminal([ROOT / "bin/sql", "--crawl", GOLDEN, query], columns=60)
    lines = shown.splitlines()
    assert code == 0 and "\x1b" not in shown and "\\x1b[31mred" in shown and "1,234,567" in shown
    assert max(map(len, lines)) <= 60 and "no room for" in shown and "rows)" in lines[-1]


def test_control_c_ends_a_query(ask, monkeypatch):
    """It comes from the query itself, once that runs; without an end of the query this test would take days."""
    stops = iter([signal.SIGINT])

    def stop(text: str) -> str:
        for number in stops:
            os.kill(os.getpid(), number)
        return text

    monkeypatch.setattr(views, "detect_language", stop)
    with pytest.raises(KeyboardInterrupt):
        ask("select count(detect_language(range::varchar)) from range(100000000000)")
