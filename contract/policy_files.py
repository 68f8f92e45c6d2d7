"""Files that a policy reads: the crawl's own copies, in files/, each under the checksum of its content.

The configuration of a crawl names such a copy. So does every plan, and a rerun reads the same bytes whatever became of
the file that an operator gave. A copy is never changed and never deleted.
"""

import io
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from contract import names
from contract.config import Config, lookup
from contract.crawl_folder import CrawlFolder
from contract.errors import BadConfiguration
from contract.policies import policy_of
from contract.rank_files import convert
from storage.errors import Damaged
from storage.publish import make_folder, put_if_absent

COPY = ".npy"


def adopt(crawl: CrawlFolder, config: Config) -> Config:
    """The configuration with the crawl's own copy instead of each file that its policy reads; makes the copy.

    BadInput where the file holds something else than expected; BadConfiguration where it cannot be read.
    """
    key = policy_of(config).file_key
    if not key:
        return config
    path = Path(lookup(config, key))
    if is_copy(crawl.path, path):
        return config
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BadConfiguration(f"{key}: expected a file, found {path} ({error.strerror})") from None
    content = io.BytesIO()
    np.save(content, convert(path, text, crawl.keys()))
    make_folder(crawl.path / names.FILES)
    copy = crawl.path / names.FILES / f"{digest(content.getvalue())}{COPY}"
    put_if_absent(copy, content.getvalue())
    section, _, name = key.partition(".")
    return replace(config, **{section: replace(getattr(config, section), **{name: str(copy.absolute())})})


def is_copy(crawl: Path, path: Path) -> bool:
    return path.parent.name == names.FILES and path.suffix == COPY and (crawl / names.FILES / path.name).exists()


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
