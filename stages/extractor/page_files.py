"""The files of pages that an extraction reads, and which of them are damaged."""

from pathlib import Path
from typing import NamedTuple

from contract import names
from contract.errors import BadInput, Usage
from storage.errors import Damaged
from storage.publish import is_published, read_manifest, verify

SUFFIXES = (".warc.zst", ".warc.gz")


class PageFile(NamedTuple):
    path: Path
    name: str  # below the folder that the tables' column `file` is relative to
    description: dict | None  # bytes and checksum, where a manifest tells them

    def check(self) -> None:
        """Damaged unless the file is the one that its manifest describes."""
        if self.description is not None:
            verify(self.path, self.description)


def files_of_cycle(fetcher: Path) -> list[PageFile]:
    """The files that the fetcher's manifest names, by name, whether they are there or not."""
    try:
        manifest = read_manifest(fetcher)
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"{fetcher} has no {names.MANIFEST}: the fetcher has not finished, run it first") from None
    return named_by(fetcher, manifest)


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
        raise Usage(f"{path}: expected files ending in {' or '.join(SUFFIXES)}, or a folder that bin/fetcher wrote; found none")
    return path, [files[name] for name in sorted(files)]


def named_by(folder: Path, manifest: dict) -> list[PageFile]:
    found = []
    for name, description in sorted(manifest["files"].items()):
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise Damaged(folder / names.MANIFEST, f"expected names inside the folder, found {name!r}")
        if name.endswith(SUFFIXES):
            found.append(PageFile(folder / name, name, description))
    return found
