"""Makes files visible whole or not at all, and durable in the order that the commit protocol needs.

Theory. A power cut may drop any byte and any folder entry that was not synced. So a file is written aside,
synced, given its name, and its folder synced; only then may another file name it. A folder of files is
published by its `manifest.json`, created last with put-if-absent: before it exists the folder is garbage,
after it every file that it names is whole. Deletion goes the other way: manifest first.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import xxhash

from storage.errors import Damaged, UnknownFormat, naming

MANIFEST = "manifest.json"
FORMAT = 7  # version of the format of all published files
SYNCS_AT_ONCE = 16
ASIDE = ".aside-"  # files whose names begin so are never published; once unused, they are garbage


def sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


sync_folder = sync_file  # on Linux a folder is synced as a file is


def sync_together(paths: Sequence[Path]) -> None:
    """Syncs files and folders at the same time: the file system then writes its own journal once for many of them.

    Twenty small files take a quarter of the time that they take one after another.
    """
    with ThreadPoolExecutor(min(len(paths), SYNCS_AT_ONCE)) as pool:
        for _ in pool.map(sync_file, paths):
            pass


def make_folder(path: Path) -> None:
    """Creates the folder and its missing parents, each one durable in its own parent.

    An existing folder is synced in its parent too: the process that made it may have died before that.
    """
    missing = [path]
    while not missing[-1].parent.is_dir():
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def write_aside(path: Path, content: bytes, folder: Path | None = None) -> Path:
    """Writes a file, durably, that is to get the name `path`; in the same folder, or in another of its file system."""
    aside = (folder or path.parent) / f"{ASIDE}{os.getpid()}-{path.name}"
    aside.unlink(missing_ok=True)  # it may be a second name of a published file, which writing would tear
    with naming(path), open(aside, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return aside


def put(path: Path, content: bytes) -> None:
    """Replaces the file, durably."""
    write_aside(path, content).rename(path)
    sync_folder(path.parent)


@contextmanager
def putting(path: Path) -> Iterator[BinaryIO]:
    """Gives a file to write to, which replaces that of the path, durably, on leaving; not after an exception."""
    aside = path.parent / f"{ASIDE}{os.getpid()}-{path.name}"
    aside.unlink(missing_ok=True)
    try:
        with naming(path), open(aside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def put_if_absent(path: Path, content: bytes, folder: Path | None = None) -> bool:
    """Creates the file, durably; false where it exists already, which is then durable too.

    `folder`: where the file is written aside, in place of its own, which may be too large to be searched for leftovers.
    """
    aside = write_aside(path, content, folder)
    try:
        os.link(aside, path)
        created = True
    except FileExistsError:
        created = False
    finally:
        aside.unlink()
    sync_folder(path.parent)
    return created


def encode_json(value: dict[str, Any]) -> bytes:
    """The bytes of a JSON file: sorted keys, and a checksum of all others under `check`."""
    plain = json.loads(json.dumps(value))  # keys become strings, as a reader will see them
    return (json.dumps({**plain, "check": check_of(plain)}, indent=1, sort_keys=True) + "\n").encode()


def check_of(value: dict[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(value, sort_keys=True).encode())


def read_json(path: Path, format_expected: int = FORMAT) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise_if_not_there(path, error)
    return decode_json(path, content, format_expected)


def decode_json(path: Path, content: bytes, format_expected: int = FORMAT) -> dict[str, Any]:
    """The value of a JSON file with this content; Damaged or UnknownFormat, which name the path, where it is none."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"expected JSON, found {error}") from None
    if not isinstance(value, dict):
        raise Damaged(path, f"expected a JSON object, found {type(value).__name__}")
    if value.get("format") != format_expected:
        raise UnknownFormat(path, value.get("format"), format_expected)
    written, found = value.pop("check", None), check_of(value)
    if written != found:
        raise Damaged(path, f"expected check {written}, found {found}: it was changed after it was written")
    if not content.endswith(b"\n"):  # the same values, but no longer the bytes that other manifests describe
        raise Damaged(path, "expected the end of a line, found the file cut off", len(content))
    return value


def raise_if_not_there(path: Path, error: OSError) -> NoReturn:
    """A folder, a loop of links and the like instead of a file is damage; what the machine refuses is not."""
    if error.errno in (errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG):
        raise Damaged(path, f"expected a file, found: {error.strerror}") from None
    raise error


def checksum(path: Path) -> str:
    digest = xxhash.xxh3_128()
    # One buffer for the whole file, which stays in the cache: a third of the time of reading into fresh ones.
    buffer = bytearray(1 << 18)
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(memoryview(buffer)[:count])
    return digest.hexdigest()


def describe(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "xxh3": checksum(path)}


def verify(path: Path, description: dict[str, Any]) -> None:
    """Raises Damaged unless the file is the one that a manifest describes."""
    try:
        size = path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        raise Damaged(path, "expected a file, found none") from None
    except OSError as error:
        raise_if_not_there(path, error)
    if not path.is_file():
        raise Damaged(path, "expected a file, found something else")
    if size != description["bytes"]:
        raise Damaged(path, f"expected {description['bytes']} bytes, found {size}", min(size, description["bytes"]))
    found = checksum(path)
    if found != description["xxh3"]:
        raise Damaged(path, f"expected checksum {description['xxh3']}, found {found}")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a published folder; FileNotFoundError where there is none."""
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest.get("files"), dict):
        raise Damaged(folder / MANIFEST, "expected a table of files, found none")
    for name, about in manifest["files"].items():
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise Damaged(folder / MANIFEST, f"expected names inside the folder, found {name!r}")
        expect_described(folder / MANIFEST, name, about, "bytes")
    return manifest


def expect_described(path: Path, name: str, about: object, *numbers: str) -> None:
    """Damaged where a manifest at `path` does not have the checksum of a file and these numbers."""
    if (
        not isinstance(about, dict)
        or not isinstance(about.get("xxh3"), str)
        or any(type(about.get(number)) is not int or about[number] < 0 for number in numbers)
    ):
        raise Damaged(path, f"expected checksum, {' and '.join(numbers)} of {name}, found {str(about)[:100]}")


def is_published(folder: Path) -> bool:
    return (folder / MANIFEST).exists()


def confirm_published(folder: Path) -> bool:
    """As is_published, and syncs it: what a process that died has left visible need not be durable."""
    if not is_published(folder):
        return False
    sync_folder(folder)
    sync_folder(folder.parent)
    return True


@contextmanager
def publishing(folder: Path, *, resume: bool = False, again: bool = False) -> Iterator[dict[str, Any]]:
    """Gives a manifest to fill in while files are written to the folder; publishes both on leaving.

    What an earlier attempt left there is removed first, unless it is to be resumed. An exception publishes nothing.
    `again` makes a folder anew that an unfinished attempt of the same work has published: nothing depends on it yet.
    """
    if is_published(folder):
        if not again:
            raise FileExistsError(errno.EEXIST, "already published", str(folder))
        unpublish(folder)
    if os.path.lexists(folder) and not resume:
        remove_tree(folder)
    make_folder(folder)
    manifest: dict[str, Any] = {}
    with naming(folder):
        yield manifest
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(ASIDE))
    sync_together([*files, *{path.parent for path in files}, folder])
    manifest["format"] = FORMAT
    manifest["files"] = {path.relative_to(folder).as_posix(): describe(path) for path in files}
    put_if_absent(folder / MANIFEST, encode_json(manifest))


def unpublish(folder: Path) -> None:
    """Removes a published folder: the manifest first, so that no moment shows a manifest without its files."""
    if folder.is_dir() and not folder.is_symlink():
        if os.path.lexists(folder / MANIFEST):
            remove_tree(folder / MANIFEST)  # damage may have made a folder of it
        sync_folder(folder)  # also where the manifest was gone: a power cut must not bring it back without its files
    if os.path.lexists(folder):
        remove_tree(folder)
        sync_folder(folder.parent)


def remove_tree(path: Path) -> None:
    """Removes a folder with all that it holds; of a symbolic link only the link, never what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
