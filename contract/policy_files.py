"""Files that a policy reads: the crawl's own copies, in files/, each under the checksum of its content.

The configuration of a crawl names such a copy. So does every plan, and a rerun reads the same bytes whatever became of
the file that an operator gave. A copy is never changed and never deleted.
"""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from contract import names
from contract.config import Config, lookup
from contract.crawl_folder import CrawlFolder
from contract.errors import BadConfiguration
from contract.policies import policy_of
from contract.policies.policy import PolicyFile
from contract.url import Keys
from storage.errors import Damaged
from storage.publish import make_folder, put


@dataclass(frozen=True)
class Adoption:
    """A configuration whose files are the crawl's own copies, and what these are to hold; nothing is written yet."""

    config: Config
    contents: Mapping[Path, bytes] = field(default_factory=dict)

    def write(self) -> Config:
        """Makes the copies, unless they are there and whole."""
        for path, content in self.contents.items():
            if not is_whole(path):
                make_folder(path.parent)
                put(path, content)
        return self.config


def prepare_adoption(crawl: Path, keys: Keys, config: Config) -> Adoption:
    """Reads and checks the files that the policy reads, but for the crawl's own copies; writes nothing.

    BadInput where a file holds something else than expected; BadConfiguration where it cannot be read.
    """
    contents = {}
    for file in policy_of(config).files:
        path = path_of(file, config)
        if path is None:
            continue
        if is_copy(crawl, path, file.suffix):
            copy = own_copy(crawl, path)
        else:
            content = file.convert(path, read_given(file, path), keys)
            copy = own_copy(crawl, Path(f"{digest(content)}{file.suffix}"))
            contents[copy] = content
        config = point_to(config, file.key, copy)
    return Adoption(config, contents)


def path_of(file: PolicyFile, config: Config) -> Path | None:
    """What the configuration names, or else the default."""
    named = lookup(config, file.key)
    return Path(named) if named else file.default


def read_given(file: PolicyFile, path: Path) -> bytes:
    try:
        if path.is_file():  # a pipe or a device may have no end
            return path.read_bytes()
        found = "no file, or a folder, pipe or device"
    except OSError as error:
        found = str(error.strerror)
    if path.parent.name == names.FILES and path.suffix == file.suffix:
        raise BadConfiguration(f"{file.key}: expected the crawl's copy of a file, found none: {path}")
    raise BadConfiguration(f"{file.key}: expected a file, found {path} ({found})")


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
    for key, path in files_of(crawl, config).items():
        if has_digest(path):
            config = point_to(config, key, own_copy(crawl, path))
    return config


def is_copy(crawl: Path, path: Path, suffix: str) -> bool:
    """Whether a path names a copy of the crawl's own, one of files of this suffix."""
    is_named = path.parent.name == names.FILES and path.suffix == suffix and has_digest(path)
    return is_named and (crawl / names.FILES / path.name).exists()


def has_digest(path: Path) -> bool:
    """Whether a name is that of a copy, which is its checksum."""
    return re.fullmatch(r"[0-9a-f]{32}\.\w+", path.name) is not None


def lost_copy(crawl: Path, config: Config) -> Path | None:
    """The copy that the configuration names, where it is gone."""
    return next((path for path in files_of(crawl, config).values() if has_digest(path) and not path.exists()), None)


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
    """By section.key, the crawl's own copy of each file that the policy reads; found by its name in this folder.

    Until a first run has made the copies (bin/seed was killed before), these are names of files that are not there.
    """
    named = {file.key: path_of(file, config) for file in policy_of(config).files}
    return {key: crawl / names.FILES / path.name for key, path in named.items() if path}


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
