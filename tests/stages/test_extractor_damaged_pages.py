"""Damaged files of pages: each is set aside, the rest is used, and the tables say so."""

import pytest

from contract import names
from storage.publish import describe, encode_json, read_manifest
from tests.extractor_lab import Cycle, WarcFile, page_file
from tests.stages.test_extractor_cycle import HOME, SITE, assert_books


def three_files() -> list[WarcFile]:
    return [
        page_file({f"{SITE}/{number}": f"<a href=/to/{number}>", f"{SITE}/{number}b": "<a href=x>"})
        for number in range(3)
    ]


def rewritten(cycle: Cycle, number: int, data: bytes) -> None:
    """Changes a page file together with its checksum in the manifest: damage from before the manifest."""
    path = cycle.page_path(number)
    path.write_bytes(data)
    manifest = read_manifest(cycle.fetcher)
    manifest["files"][path.relative_to(cycle.fetcher).as_posix()] = describe(path)
    (cycle.fetcher / names.MANIFEST).write_bytes(encode_json(manifest))


def cut_last_member(cycle: Cycle) -> None:
    path = cycle.page_path(1)
    path.write_bytes(path.read_bytes()[:-3])


def flip_a_byte(cycle: Cycle) -> None:
    data = bytearray(cycle.page_path(1).read_bytes())
    data[len(data) // 2] ^= 64
    cycle.page_path(1).write_bytes(data)


def remove_the_file(cycle: Cycle) -> None:
    cycle.page_path(1).unlink()


def torn_as_published(cycle: Cycle) -> None:
    rewritten(cycle, 1, cycle.page_path(1).read_bytes()[:-3])


def broken_as_published(cycle: Cycle) -> None:
    rewritten(cycle, 1, cycle.page_path(1).read_bytes() + b"no member")


@pytest.mark.parametrize(
    "harm", [cut_last_member, flip_a_byte, remove_the_file, torn_as_published, broken_as_published]
)
@pytest.mark.sampled(2)
def test_a_damaged_file_is_set_aside_and_the_rest_used(tmp_path, harm, capsys):
    listed = {f"{SITE}/{number}{letter}": 0 for number in range(3) for letter in ("", "b")}
    cycle = Cycle(tmp_path / "crawl", listed, *three_files())
    harm(cycle)
    beside = cycle.extract(tmp_path / "beside")
    assert not cycle.notes() or harm is remove_the_file  # with --out the crawl does not change
    assert cycle.page_path(1).exists() == (harm is not remove_the_file)
    tables = cycle.extract()
    assert_books(tables)
    assert set(tables.by_url(names.COLLECTED)) == {url for url in listed if "/1" not in url}
    assert tables.counts["not_reached"] == 2 and tables.counts["damaged_files"] == 1
    assert [note["path"] for note in cycle.notes()] == ["cycles/00000003/fetcher/Repositorio_de_Paginas/00001.warc.zst"]
    assert "00001.warc.zst" in capsys.readouterr().err
    again = cycle.extract(tmp_path / "again")
    assert tables.files() == again.files() == beside.files() and len(cycle.notes()) == 1


def test_all_files_damaged(tmp_path):
    cycle = Cycle(tmp_path / "crawl", {HOME: 0}, page_file({HOME: "<a href=x>"}))
    cycle.page_path(0).write_bytes(b"")
    tables = cycle.extract()
    assert_books(tables)
    assert tables.counts["damaged_files"] == 1 and tables.counts["not_reached"] == 1
