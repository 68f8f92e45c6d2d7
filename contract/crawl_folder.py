"""A crawl folder: made once, opened by every command; the command that works there holds its lock."""

import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import publicsuffixlist

from contract import names
from contract.config import Config
from contract.crawl_config import encode_config
from contract.errors import BadConfiguration, BadInput, Locked, Usage
from contract.url import Keys
from storage.errors import Damaged, UnknownFormat
from storage.publish import (
    FORMAT,
    describe,
    encode_json,
    is_published,
    make_folder,
    put,
    put_if_absent,
    read_json,
    read_manifest,
    sync_folder,
    verify,
    write_aside,
)

LOCK_LOOKS, LOCK_LOOK_EVERY_S = 4, 0.05  # bin/status takes the lock for an instant to see whether it is held
LATEST_MS = 253_402_300_800_000  # the end of the year 9999, where dates end
LOCK_VARIABLE = "COLETOR_LOCK"  # the descriptor of the lock that a stage inherits from its supervisor
_held: list[tuple[int, Path]] = []  # descriptors of the locks that this process took, and their files


@dataclass(frozen=True)
class CrawlFolder:
    path: Path
    crawl_id: str
    hash_seed: int
    blocks_first: int
    began_at_ms: int
    suffix_list: bytes  # the public suffix list of the crawl, checked when the folder was opened

    def keys(self) -> Keys:
        return Keys(self.hash_seed, self.suffix_list)


def create(path: Path, blocks_first: int, hash_seed: int | None = None, config: Config = Config()) -> CrawlFolder:
    """Makes the folder where there is none; crawl.json comes last, after all that it names."""
    if not (path / names.CRAWL_FILE).exists():
        if names.numbered(path / names.LOG, ".json"):
            raise missing_description(path)
        if path.is_dir() and any(path.iterdir()) and not (path / names.LOG).is_dir():
            raise BadConfiguration(f"{path} holds other files and is no crawl folder: name an empty or a new one")
        for folder in (names.LOG, names.INBOX, names.CYCLES, names.TEXT, names.CORRUPT):
            make_folder(path / folder)
        bundled = Path(publicsuffixlist.__file__).with_name("public_suffix_list.dat")
        put_if_absent(path / names.SUFFIX_LIST, bundled.read_bytes())
        put_if_absent(path / names.CONFIGURATION, encode_config(config, path))
        put_if_absent(
            path / names.CRAWL_FILE,
            encode_json(
                {
                    "format": FORMAT,
                    "crawl_id": secrets.token_hex(8),
                    "hash_seed": secrets.randbits(64) if hash_seed is None else hash_seed,
                    "blocks_first": blocks_first,
                    "began_at_ms": time.time_ns() // 1_000_000,
                    "suffix_list": describe(path / names.SUFFIX_LIST),
                }
            ),
        )
    return open_folder(path)


def open_folder(path: Path) -> CrawlFolder:
    """Opens a crawl folder and checks its suffix list, from which all domain keys follow."""
    try:
        about = read_json(path / names.CRAWL_FILE)
        suffix_list = read_suffix_list(path / names.SUFFIX_LIST, about["suffix_list"])
        crawl = CrawlFolder(
            path,
            str(about["crawl_id"]),
            int(about["hash_seed"]),
            int(about["blocks_first"]),
            int(about["began_at_ms"]),
            suffix_list,
        )
        if not (
            0 <= crawl.hash_seed < 1 << 64 and 1 <= crawl.blocks_first <= 1 << 16 and 0 <= crawl.began_at_ms < LATEST_MS
        ):
            raise ValueError("a number out of range")
        return crawl
    except (FileNotFoundError, NotADirectoryError):
        if names.numbered(path / names.LOG, ".json"):
            raise missing_description(path) from None
        raise BadConfiguration(
            f"{path} is no crawl folder (no {names.CRAWL_FILE}): name one with --crawl DIR, "
            f"or make it with bin/seed --crawl {path} URL"
        ) from None
    except (Damaged, UnknownFormat) as error:
        raise BadInput(str(error)) from None
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path / names.CRAWL_FILE}: expected the description of a crawl, found {error!r}") from None


def missing_description(path: Path) -> BadInput:
    return BadInput(f"{path} has a log but no {names.CRAWL_FILE}: restore that file from a copy; no other will do")


def read_suffix_list(path: Path, description: dict[str, Any]) -> bytes:
    """The bytes of the list; BadInput unless they are those that the crawl began with."""
    try:
        verify(path, description)
        return path.read_bytes()
    except Damaged as error:
        raise BadInput(
            f"{error}. All domain keys follow from this list: restore it from a copy of the crawl folder; "
            "no other list will do"
        ) from None


def hold_lock(crawl: CrawlFolder) -> int:
    """The descriptor that holds the crawl's lock: inherited from a supervisor, or taken now; TryLater where held."""
    path = crawl.path / names.LOCK
    inherited = os.environ.get(LOCK_VARIABLE, "")
    if inherited.isdigit() and is_same_file(int(inherited), path):
        _held.append((int(inherited), path))
        return int(inherited)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    for _ in range(LOCK_LOOKS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _held.append((descriptor, path))
            return descriptor
        except BlockingIOError:
            time.sleep(LOCK_LOOK_EVERY_S)
    os.close(descriptor)
    raise Locked(f"{crawl.path}: another run works here (it holds {path.name}); try again when it has ended")


def leave_lock() -> None:
    """For a forked process that does not write to the crawl folder: the lock shall end with its parent alone."""
    while _held:
        descriptor, path = _held.pop()
        if is_same_file(descriptor, path):  # its number may meanwhile belong to another file
            os.close(descriptor)


def is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def set_aside(crawl: Path, path: Path, reason: str) -> Path | None:
    """Moves a damaged file or folder to corrupt/ with a note of the reason; None where an earlier run did so."""
    folder = crawl / names.CORRUPT
    make_folder(folder)
    relative = path.relative_to(crawl)
    if not os.path.lexists(path) and any(note["path"] == relative.as_posix() for note in notes_of_damage(crawl)):
        return None
    stem = "-".join(relative.parts)
    target = folder / stem
    number = 1
    while os.path.lexists(target):
        number += 1
        target = folder / f"{stem}.{number}"
    if os.path.lexists(path):
        path.rename(target)
        sync_folder(path.parent)
    note = {"format": FORMAT, "path": relative.as_posix(), "reason": reason, "is_mended": False}
    write_aside(folder / "note", encode_json(note)).rename(target.with_name(target.name + ".json"))
    sync_folder(folder)
    return target


def is_named(crawl: Path, path: Path) -> bool:
    """Whether a manifest names this file; always true outside published folders."""
    if path.parent == Path(names.TEXT):
        manifests = (crawl / names.GENERATIONS).glob(f"[0-9]*/*/{names.MANIFEST}")
        return any(path.name in read_json(manifest)["texts"] for manifest in manifests)
    if path.name == names.MANIFEST or path.parts[0] not in (names.CYCLES, names.GENERATIONS) or len(path.parts) < 4:
        return (crawl / path).parent.exists()
    folder = Path(*path.parts[:3])
    return (
        is_published(crawl / folder) and path.relative_to(folder).as_posix() in read_manifest(crawl / folder)["files"]
    )


def read_notes(crawl: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The notes in corrupt/, each with its path. A damaged .json file that was set aside there is not a note."""
    for path in sorted((crawl / names.CORRUPT).glob("*.json")):
        try:
            note = json.loads(path.read_bytes())
            if isinstance(note["path"], str) and isinstance(note["reason"], str):
                yield path, note
        except (OSError, ValueError, KeyError, TypeError):
            continue


def notes_of_damage(crawl: Path) -> list[dict[str, Any]]:
    """The open notes: the file was not mended, is still missing, and a manifest still names it."""
    notes = []
    for _, note in read_notes(crawl):
        try:
            if (
                not note.get("is_mended")
                and not (crawl / note["path"]).exists()
                and is_named(crawl, Path(note["path"]))
            ):
                notes.append(note)
        except (ValueError, KeyError, TypeError):
            continue  # an impossible path
    return notes


def note_mended(crawl: Path, path: Path) -> None:
    """Closes the notes about a file that was restored; it may be deleted later like any other file."""
    for file, note in read_notes(crawl):
        if note["path"] == path.as_posix() and not note.get("is_mended"):
            put(
                file, encode_json({"format": FORMAT, "path": note["path"], "reason": note["reason"], "is_mended": True})
            )


def expect_outside(target: Path) -> None:
    """Usage where a new file or folder would lie inside a crawl folder, which holds files of the crawl only."""
    within = [folder for folder in target.resolve().parents if (folder / names.CRAWL_FILE).exists()]
    if within:
        raise Usage(f"{target} is inside the crawl folder {within[0]}: name a folder outside of it")
