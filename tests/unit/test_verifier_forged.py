"""Files that hold what no turn writes, with manifests to match: an error, and no loop that runs past its arrays."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from contract import names
from contract.crawl_folder import open_folder
from contract.generation import COLUMNS
from contract.log import replay
from contract.plan import Plan, read_plan
from contract.tables import COLLECTED_STATE, METADATA
from stages.verifier.__main__ import work
from stages.verifier.merge import index_servers
from storage.columns import PackedWriter, read_packed
from storage.errors import Damaged
from storage.publish import describe, encode_json
from storage.tables import read_table, write_table
from storage.weave import Weave
from tests.crash.verifier_cases import make_crawl


@pytest.fixture
def crawl(tmp_path) -> tuple[Path, Plan]:
    cycle = make_crawl(tmp_path / "crawl")
    return tmp_path / "crawl", read_plan(tmp_path / "crawl", cycle)


def match_manifest(path: Path) -> None:
    manifest_path = path.parent / names.MANIFEST
    manifest = json.loads(manifest_path.read_bytes())
    manifest["files"][path.name] = describe(path)
    manifest.pop("check", None)
    manifest_path.write_bytes(encode_json(manifest))


def forge_column(crawl: Path, plan: Plan, name: str, rows: slice | int, value: int) -> None:
    path = crawl / names.generation(plan.block, plan.generation) / f"{name}.npy.zst"
    values = (
        np.array(read_packed(path))
        if path.exists()
        else np.zeros(len(np.load(path.with_name("key.npy"))), COLUMNS[name])
    )
    values[rows] = value
    path.unlink(missing_ok=True)
    writer = PackedWriter(path, COLUMNS[name])
    writer.append(values)
    writer.close()
    match_manifest(path)


def take_turn(crawl: Path, plan: Plan, out: Path) -> None:
    work(open_folder(crawl), out, plan, replay(crawl, open_folder(crawl).blocks_first))


@pytest.mark.parametrize(
    "name, rows, value",
    [
        ("server", -1, 2**32 - 1),
        ("server", 0, 2**31),
        ("server", slice(None), 1_000),
        ("segment", 3, 255),
        ("segment", slice(None), 255),
        ("state", slice(None), COLLECTED_STATE),
        ("state", slice(None), 255),
    ],
)
@pytest.mark.sampled(3)
def test_columns_of_numbers_that_nobody_gave(crawl, tmp_path, name, rows, value):
    forge_column(*crawl, name, rows, value)
    with pytest.raises(Damaged, match="expected"):
        take_turn(*crawl, tmp_path / "out")


@pytest.mark.parametrize(
    "forge",
    [
        lambda table: table.take(pa.array(np.arange(len(table))[::-1])),
        lambda table: table.take(pa.array([0, *range(len(table) - 1)])),
    ],
    ids=["reversed", "one of them twice"],
)
@pytest.mark.sampled(1)
def test_answers_out_of_order(crawl, tmp_path, forge: Callable[[pa.Table], pa.Table]):
    folder, plan = crawl
    path = folder / names.cycle(plan.cycle) / names.EXTRACTOR / names.METADATA
    table = forge(read_table(path, METADATA))
    path.unlink()
    write_table(path, table)
    match_manifest(path)
    with pytest.raises(Damaged, match="each once and in order"):
        take_turn(folder, plan, tmp_path / "out")


@pytest.mark.parametrize("before", [[1, 0], [-1], [3], [0, 2, 1]])
def test_new_rows_come_before_old_ones_in_order(before):
    with pytest.raises(ValueError, match="rising"):
        Weave(2, np.array(before, np.int64))


def test_numbers_that_their_domain_does_not_have_are_counted():
    domains = SimpleNamespace(
        key=np.array([5, 9], np.uint64), first_server=np.array([0, 2, 5]), first_row=np.array([0, 2, 4])
    )
    match, servers = SimpleNamespace(start=0, stop=4), SimpleNamespace(domains=domains)
    none = np.array([], np.int64)
    assert index_servers(match, none, np.array([0, 1, 2, 0], np.uint32), servers).tolist() == [0, 1, 4, 2]
    with pytest.raises(Damaged, match="found 1 others"):
        index_servers(match, none, np.array([0, 1, 2, 2**32 - 1], np.uint32), servers)
