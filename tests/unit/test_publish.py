"""Publishing: whole or not there, and damage is named with its place."""

import pytest

from contract.generation import read_generation_manifest
from storage.errors import Damaged, UnknownFormat
from storage.publish import (
    FORMAT,
    MANIFEST,
    checksum,
    describe,
    encode_json,
    is_published,
    publishing,
    put,
    put_if_absent,
    read_json,
    read_manifest,
    unpublish,
    verify,
)


def test_a_folder_is_published_by_its_manifest(tmp_path):
    folder = tmp_path / "new" / "deep"
    with publishing(folder) as manifest:
        (folder / "inner").mkdir()
        (folder / "inner" / "data").write_bytes(b"x" * 1000)
        manifest["counts"] = {"rows": 1}
        assert not is_published(folder)
    assert read_manifest(folder)["files"] == {"inner/data": describe(folder / "inner" / "data")}
    with pytest.raises(FileExistsError), publishing(folder):
        pass


def test_an_exception_publishes_nothing_and_the_next_attempt_starts_clean(tmp_path):
    folder = tmp_path / "out"
    with pytest.raises(ZeroDivisionError), publishing(folder):
        (folder / "half").write_bytes(b"half")
        raise ZeroDivisionError
    assert not is_published(folder)
    with publishing(folder):
        assert not (folder / "half").exists()


def test_resuming_keeps_what_is_there(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "pages").write_bytes(b"1")
    with publishing(folder, resume=True):
        pass
    assert set(read_manifest(folder)["files"]) == {"pages"}


def test_put_if_absent_keeps_the_first(tmp_path):
    path = tmp_path / "entry"
    assert put_if_absent(path, b"first") and not put_if_absent(path, b"second")
    assert path.read_bytes() == b"first" and [inner.name for inner in tmp_path.iterdir()] == ["entry"]
    put(path, b"third")
    assert path.read_bytes() == b"third"


def test_unpublishing_removes_all(tmp_path):
    folder = tmp_path / "out"
    with publishing(folder):
        (folder / "data").write_bytes(b"x")
    unpublish(folder)
    assert not folder.exists()


def test_a_folder_whose_manifest_became_a_folder_is_unpublished(tmp_path):
    (tmp_path / "out" / MANIFEST).mkdir(parents=True)
    unpublish(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda data: data[:-1], "expected 1000 bytes, found 999"),
        (lambda data: data + b"x", "expected 1000 bytes, found 1001"),
        (lambda data: b"y" + data[1:], "expected checksum"),
        (None, "expected a file, found none"),
    ],
)
def test_damage_is_named(tmp_path, change, words):
    path = tmp_path / "data"
    path.write_bytes(b"x" * 1000)
    about = {"bytes": 1000, "xxh3": checksum(path)}
    verify(path, about)
    path.write_bytes(change(path.read_bytes())) if change else path.unlink()
    with pytest.raises(Damaged, match=words) as caught:
        verify(path, about)
    assert str(path) in str(caught.value)


def test_json_files_carry_their_version(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(encode_json({"format": 99}))
    with pytest.raises(UnknownFormat, match=f"format version 99, this program reads version {FORMAT}"):
        read_json(path)
    for text in (
        b"{",
        b"[]",
        b"\xff",
        b"3",
        encode_json({"format": FORMAT, "rows": 7}).replace(b'"rows": 7', b'"rows": 8'),
        b'{"format": %d}' % FORMAT,
    ):
        path.write_bytes(text)
        with pytest.raises(Damaged):
            read_json(path)


def test_a_manifest_without_files_is_damage(tmp_path):
    (tmp_path / MANIFEST).write_bytes(encode_json({"format": FORMAT}))
    with pytest.raises(Damaged, match="expected a table of files"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("about", [7, None, {}, {"bytes": "1", "xxh3": ""}, {"bytes": 1, "xxh3": None}])
def test_a_manifest_that_does_not_describe_its_files_is_damage(tmp_path, about):
    (tmp_path / MANIFEST).write_bytes(encode_json({"format": FORMAT, "files": {"data": about}}))
    with pytest.raises(Damaged, match="expected checksum, bytes of data"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("name", ["../x", "../../other", "/x", "a/b", ".."])
def test_segments_of_text_lie_in_their_folder(tmp_path, name):
    """Who copies a crawl by its manifests would else write beside it."""
    whole = {"bytes": 1, "xxh3": "", "texts": 1, "first": 0}
    for texts in ({name: whole}, {"00000001.zst": {**whole, "first": -1}}, {"00000001.zst": 7}, 7):
        (tmp_path / MANIFEST).write_bytes(encode_json({"format": FORMAT, "files": {}, "texts": texts}))
        with pytest.raises(Damaged, match="segments of text|expected checksum"):
            read_generation_manifest(tmp_path)
        (tmp_path / MANIFEST).unlink()
