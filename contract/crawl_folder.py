"""A crawl folder: made once, opened by every command, its lock held by the one that works there."""

import fcntl
import json
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

import publicsuffixlist

from contract import names
from contract.errors import BadConfiguration, BadInput, Locked
from contract.url import Keys
from storage.errors import Damaged, UnknownFormat
from storage.publish import (
    FORMAT, encode_json, is_published, make_folder, put_if_absent, read_json, read_manifest, sync_folder, write_aside,
)

LOCK_LOOKS, LOCK_LOOK_EVERY_S = 4, 0.05  # bin/status holds the lock for an instant to see whether somebody else does
LATEST_MS = 253_402_300_800_000  # the end of the year 9999, where dates end
LOCK_VARIABLE = "COLETOR_LOCK"  # the descriptor of the lock that a stage inherits from its supervisor


@dataclass(frozen=True)
class CrawlFolder:
    path: Path
    crawl_id: str
    hash_seed: int
    blocks_first: int
    began_at_ms: int

    def keys(self) -> Keys:
        return Keys(self.hash_seed, (self.path / names.SUFFIX_LIST).read_bytes())


def create(path: Path, blocks_first: int, hash_seed: int | None = None) -> CrawlFolder:
    """Makes the folder where there is none; crawl.json comes last, so that what it names is there."""
    if not (path / names.CRAWL).exists():
        if names.numbered(path / names.LOG, ".json"):
            raise BadInput(f"{path} has a log but no {names.CRAWL}: put that file back from a copy; no other one will do")
        if path.is_dir() and any(path.iterdir()) and not (path / names.LOG).is_dir():
            raise BadConfiguration(f"{path} holds other files and is no crawl folder: name an empty or a new one")
        for folder in (names.LOG, names.INBOX, names.CYCLES, names.TEXT, names.CORRUPT):
            make_folder(path / folder)
        bundled = Path(publicsuffixlist.__file__).with_name("public_suffix_list.dat")
        put_if_absent(path / names.SUFFIX_LIST, bundled.read_bytes())
        put_if_absent(path / names.CRAWL, encode_json({
            "format": FORMAT, "crawl_id": secrets.token_hex(8), "hash_seed": secrets.randbits(64) if hash_seed is None else hash_seed,
            "blocks_first": blocks_first, "began_at_ms": time.time_ns() // 1_000_000,
        }))
    return open_folder(path)


def open_folder(path: Path) -> CrawlFolder:
    try:
        about = read_json(path / names.CRAWL)
        crawl = CrawlFolder(
            path, str(about["crawl_id"]), int(about["hash_seed"]), int(about["blocks_first"]), int(about["began_at_ms"])
        )
        if not (0 <= crawl.hash_seed < 1 << 64 and 1 <= crawl.blocks_first <= 1 << 16 and 0 <= crawl.began_at_ms < LATEST_MS):
            raise ValueError("a number that cannot be")
        return crawl
    except (FileNotFoundError, NotADirectoryError):
        if names.numbered(path / names.LOG, ".json"):
            raise BadInput(f"{path} has a log but no {names.CRAWL}: put that file back from a copy; no other one will do") from None
        raise BadConfiguration(f"{path} is no crawl folder (no {names.CRAWL}): name one with --crawl DIR, or make it with bin/seed --crawl {path} URL") from None
    except (Damaged, UnknownFormat) as error:
        raise BadInput(str(error)) from None
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path / names.CRAWL}: expected the description of a crawl, found {error!r}") from None


def hold_lock(crawl: CrawlFolder) -> int:
    """The descriptor that holds the crawl's lock: inherited from a supervisor, or taken now; TryLater where held."""
    path = crawl.path / names.LOCK
    inherited = os.environ.get(LOCK_VARIABLE, "")
    if inherited.isdigit() and is_same_file(int(inherited), path):
        return int(inherited)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    for _ in range(LOCK_LOOKS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            time.sleep(LOCK_LOOK_EVERY_S)
    os.close(descriptor)
    raise Locked(f"{crawl.path}: another run works here (it holds {path.name}); try again when it has ended")


def is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def set_aside(crawl: Path, path: Path, reason: str) -> Path:
    """Moves a damaged file to corrupt/, with the reason beside it."""
    folder = crawl / names.CORRUPT
    make_folder(folder)
    relative = path.relative_to(crawl)
    if not path.exists() and any(note["path"] == relative.as_posix() for note in notes_of_damage(crawl)):
        return folder  # noted before
    stem = "-".join(relative.parts)
    target = folder / stem
    number = 1
    while target.exists():
        number += 1
        target = folder / f"{stem}.{number}"
    if path.exists():
        path.rename(target)
        sync_folder(path.parent)
    note = {"format": FORMAT, "path": relative.as_posix(), "reason": reason}
    write_aside(folder / "note", encode_json(note)).rename(target.with_name(target.name + ".json"))
    sync_folder(folder)
    return target


def is_named(crawl: Path, path: Path) -> bool:
    """Whether a manifest names this file; files that stand outside published folders always count."""
    if path.parent == Path(names.TEXT):
        manifests = (crawl / names.GENERATIONS).glob(f"[0-9]*/*/{names.MANIFEST}")
        return any(path.name in read_json(manifest)["texts"] for manifest in manifests)
    if path.name == names.MANIFEST or path.parts[0] not in (names.CYCLES, names.GENERATIONS) or len(path.parts) < 4:
        return (crawl / path).parent.exists()
    folder = Path(*path.parts[:3])
    return is_published(crawl / folder) and path.relative_to(folder).as_posix() in read_manifest(crawl / folder)["files"]


def notes_of_damage(crawl: Path) -> list[dict]:
    """What lies in corrupt/: path and reason of each file set aside that is still missing and that a manifest still names."""
    notes = []
    for path in sorted((crawl / names.CORRUPT).glob("*.json")):
        try:
            note = json.loads(path.read_bytes())
            missing = not (crawl / note["path"]).exists() and is_named(crawl, Path(note["path"]))
        except (ValueError, KeyError, TypeError):
            continue  # a damaged .json file itself, set aside
        if missing:
            notes.append(note)
    return notes
