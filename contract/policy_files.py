"""Files that a policy reads: the crawl's own copies, in files/, each under the checksum of its content.

The configuration of a crawl names such a copy. So does every plan, and a rerun reads the same bytes whatever became of
the file that an operator gave. A copy is never changed and never deleted.
"""

import io
import os
import shlex
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from contract import names
from contract.config import Config, lookup
from contract.crawl_folder import CrawlFolder
from contract.errors import BadConfiguration, BadInput
from contract.policies import policy_of
from contract.rank_files import convert
from contract.url import Keys
from storage.errors import Damaged
from storage.publish import make_folder, put

COPY = ".npy"
COPY_BEGINS = b"\x93NUMPY"


@dataclass(frozen=True)
class Adoption:
    """A configuration whose file is the crawl's own copy, and what that copy is to hold; nothing is written yet."""

    config: Config
    path: Path | None = None  # none: there is nothing to copy
    content: bytes = b""

    def write(self) -> Config:
        """Makes the copy, unless it is there and whole."""
        if self.path is not None and not is_whole(self.path):
            make_folder(self.path.parent)
            put(self.path, self.content)
        return self.config


def prepare_adoption(crawl: Path, keys: Keys, config: Config) -> Adoption:
    """Reads and checks the file that the policy reads, where it is not the crawl's own copy already; writes nothing.

    BadInput where the file holds something else than expected; BadConfiguration where it cannot be read.
    """
    key = policy_of(config).file_key
    if not key:
        return Adoption(config)
    path = Path(lookup(config, key))
    if is_copy(crawl, path):
        return Adoption(point_to(config, key, own_copy(crawl, path)))
    try:
        text = path.read_bytes()
    except OSError as error:
        if path.parent.name == names.FILES and path.suffix == COPY:
            raise BadConfiguration(f"{key}: expected the crawl's copy of a file, found none: {path}") from None
        raise BadConfiguration(f"{key}: expected a file, found {path} ({error.strerror})") from None
    if text.startswith(COPY_BEGINS):
        raise BadInput(f"{path}: expected the text of {key}, found the copy of another crawl: name the text itself")
    content = io.BytesIO()
    np.save(content, convert(path, text, keys))
    copy = own_copy(crawl, Path(f"{digest(content.getvalue())}{COPY}"))
    return Adoption(point_to(config, key, copy), copy, content.getvalue())


def adopt(crawl: CrawlFolder, config: Config) -> Config:
    """The configuration with the crawl's own copy instead of each file that its policy reads; makes the copy."""
    return prepare_adoption(crawl.path, crawl.keys(), config).write()


def point_to(config: Config, key: str, path: Path) -> Config:
    section, _, name = key.partition(".")
    return replace(config, **{section: replace(getattr(config, section), **{name: str(path)})})


def own_copy(crawl: Path, path: Path) -> Path:
    """Where a copy of this name lies in a crawl folder; absolute, as configurations have paths."""
    return Path(os.path.abspath(crawl / names.FILES / path.name))


def relocate(crawl: Path, config: Config) -> Config:
    """The configuration for another crawl folder, which has the copies too."""
    key = policy_of(config).file_key
    return point_to(config, key, own_copy(crawl, Path(lookup(config, key)))) if key else config


def is_copy(crawl: Path, path: Path) -> bool:
    return path.parent.name == names.FILES and path.suffix == COPY and (crawl / names.FILES / path.name).exists()


def lost_copy(crawl: Path, config: Config) -> Path | None:
    """The copy that the configuration names, where it is gone."""
    return next((path for path in files_of(crawl, config).values() if path.suffix == COPY and not path.exists()), None)


def advise_policy_file(crawl: Path) -> str:
    """What to do about a copy that is lost or damaged."""
    return (
        f"put it back from a copy of the crawl folder, or have it made again from its text, which FILE names: "
        f"bin/run-cycle --crawl {shlex.quote(str(crawl))} --config FILE"
    )


def is_whole(path: Path) -> bool:
    """Whether a copy is there, with the content that its name says."""
    try:
        return digest(path.read_bytes()) == path.stem
    except OSError:
        return False


def files_of(crawl: Path, config: Config) -> dict[str, Path]:
    """By section.key, the crawl's own copy of each file that the policy reads; found by its name in this folder."""
    key = policy_of(config).file_key
    return {key: crawl / names.FILES / Path(lookup(config, key)).name} if key else {}


def verify_files(crawl: Path, config: Config) -> dict[str, Path]:
    """As files_of(); Damaged where a copy is not as its name says."""
    files = files_of(crawl, config)
    for path in files.values():
        try:
            content = path.read_bytes()
        except OSError as error:
            raise Damaged(path, f"expected the crawl's copy of a file, found none ({error.strerror})") from None
        if digest(content) != path.stem:
            raise Damaged(path, f"expected content of checksum {path.stem}, found another")
    return files


def digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
