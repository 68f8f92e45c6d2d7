"""The pages of benchmarks: HTML files of Debian's documentation packages, fetched by name into build/bench-pages."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import NamedTuple
from urllib.parse import quote

from contract.errors import BadInput, TryLater

CACHE = Path(__file__).resolve().parents[1] / "build" / "bench-pages"
PACKAGES = ("git-doc", "postgresql-doc-15", "python-django-doc", "python3.11-doc", "sqlite3-doc")
SIZE_MIN_BYTES = 1_000  # below are pages that only lead to another
SIZE_MAX_BYTES = 262_144  # the few indexes above would be most of the bytes; with this bound the mean is about 28 KB
FILES_MIN = 100


class Pages(NamedTuple):
    folder: Path
    paths: list[str]  # of URLs, each with its slash and escaped
    mean_bytes: float


def open_pages(folder: Path | None) -> Pages:
    """The pages of a given folder, or those of the packages, fetched once."""
    pages = choose_pages(fetch_packages(PACKAGES), PACKAGES) if folder is None else choose_pages(folder.resolve())
    if len(pages.paths) < FILES_MIN:
        raise BadInput(
            f"{pages.folder}: expected at least {FILES_MIN} .html files of {SIZE_MIN_BYTES} to {SIZE_MAX_BYTES} bytes, "
            f"found {len(pages.paths)}"
        )
    return pages


def choose_pages(folder: Path, within: Iterable[str] = ("",)) -> Pages:
    """The HTML files below a folder, or below some of its folders, that are neither tiny nor huge."""
    sizes = {}
    for name in within:
        for path in html_files(folder / name):
            size_bytes = os.path.getsize(path)
            if SIZE_MIN_BYTES <= size_bytes <= SIZE_MAX_BYTES:
                sizes["/" + quote(os.path.relpath(path, folder), errors="surrogateescape")] = size_bytes
    return Pages(folder, sorted(sizes), mean(sizes.values()) if sizes else 0.0)


def html_files(folder: Path) -> Iterable[str]:
    for parent, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(parent, name)
            if name.endswith((".html", ".htm")) and not os.path.islink(path):
                yield path


def fetch_packages(packages: Iterable[str]) -> Path:
    """The folder that holds one folder per package; missing packages are fetched."""
    for package in packages:
        if not (CACHE / package).exists():
            unpack(package, CACHE)
    return CACHE


def unpack(package: str, folder: Path) -> None:
    """Downloads a package without installing it; its folder appears whole or not at all."""
    downloads = folder / ".packages"
    downloads.mkdir(parents=True, exist_ok=True)
    print(f"fetching the Debian package {package} ...", flush=True)
    aside = folder / f".{package}"
    try:
        subprocess.run(
            ["apt-get", "download", "-q", package], cwd=downloads, check=True, capture_output=True, text=True
        )
        archive = max(downloads.glob(f"{package}_*.deb"), key=os.path.getmtime)
        subprocess.run(["dpkg", "-x", archive, aside], check=True, capture_output=True, text=True)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        reason = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]
        raise TryLater(
            f"{package}: apt-get could not download and unpack it ({reason}); run apt-get update, "
            "or name a folder of HTML files with --pages"
        ) from None
    aside.rename(folder / package)


def make_list(pages: Pages, servers: list[str], count: int) -> list[str]:
    """`count` distinct URLs, the servers in turn, each with its own part of the pages."""
    if count > len(servers) * len(pages.paths):
        raise BadInput(
            f"expected at most {len(servers) * len(pages.paths)} pages: "
            f"{len(pages.paths)} files on {len(servers)} sites"
        )
    each = -(-count // len(servers))  # rounded up
    return [
        servers[number % len(servers)]
        + pages.paths[(number % len(servers) * each + number // len(servers)) % len(pages.paths)]
        for number in range(count)
    ]
