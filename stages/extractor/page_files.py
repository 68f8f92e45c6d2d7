"""The files of pages that an extraction reads, and which of them are damaged."""

from pathlib import Path
from typing import NamedTuple

from contract import names
from contract.errors import Usage
from contract.stage import read_input_manifest
from storage.publish import is_published, read_manifest, verify

SUFFIXES = (".warc.zst", ".warc.gz")


class PageFile(NamedTuple):
    path: Path
    name: str  # relative to the folder of the pages, as in the tables' column `file`
    description: dict | None  # bytes and checksum, where a manifest has them

    @property
    def size_bytes(self) -> int:
        """0 where the file is missing."""
        return self.path.stat().st_size if self.path.exists() else 0

    def check(self) -> None:
        """Raises Damaged unless the file is the one that its manifest describes."""
        if self.description is not None:
            verify(self.path, self.description)


def files_of_cycle(fetcher: Path) -> list[PageFile]:
    """The files that the fetcher's manifest names, sorted by name; some may be missing."""
    return named_by(fetcher, read_input_manifest(fetcher))


def files_below(path: Path) -> tuple[Path, list[PageFile]]:
    """For debugging: the files of a fetcher's folder, of a folder of WARC files, or the one file; and their folder."""
    if path.is_file():
        return path.parent, [PageFile(path, path.name, None)]
    if not path.is_dir():
        raise Usage(f"{path}: no such file or folder")
    found = sorted((path / names.PAGES if (path / names.PAGES).is_dir() else path).iterdir())
    there = [PageFile(file, file.relative_to(path).as_posix(), None) for file in found if file.name.endswith(SUFFIXES)]
    described = {file.name: file for file in named_by(path, read_manifest(path))} if is_published(path) else {}
    files = {file.name: file for file in there} | described
    if not files:
        raise Usage(
            f"{path}: expected files ending in {' or '.join(SUFFIXES)}, or a folder that bin/fetcher wrote; found none"
        )
    return path, [files[name] for name in sorted(files)]


def named_by(folder: Path, manifest: dict) -> list[PageFile]:
    files = sorted(manifest["files"].items())
    return [PageFile(folder / name, name, description) for name, description in files if name.endswith(SUFFIXES)]
