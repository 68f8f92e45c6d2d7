"""The sites that are served: documentation packages, each under a name and an address of its own."""

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from bench.nginx import Host, Site
from bench.pages import fetch_packages

PROXY = "127.2.0.1"  # where all names are served, for a client that asks as one asks a proxy


class Source(NamedTuple):
    package: str
    folder: str  # within the package; index.html is in it
    disallow: str = ""  # what robots.txt forbids


SOURCES = (
    Source("git-doc", "usr/share/doc/git-doc"),
    Source("sqlite3-doc", "usr/share/doc/sqlite3", "/releaselog/"),
    Source("python3.11-doc", "usr/share/doc/python3.11/html", "/_sources/whatsnew/"),
    Source("postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html"),
    Source("python-django-doc", "usr/share/doc/python-django-doc/html", "/_modules/"),
)
QUICK_SOURCES = SOURCES[:2]


def make_hosts(sources: tuple[Source, ...]) -> dict[Site, Host]:
    root = fetch_packages(source.package for source in sources)
    found = {}
    for number, source in enumerate(sources):
        site = Site(f"{source.package.replace('.', '-')}.test", f"127.2.1.{number + 1}")
        found[site] = Host(
            root / source.package / source.folder,
            [site.address, PROXY],
            site.name,
            f"User-agent: *\nDisallow: {source.disallow}\n",
        )
    return found


def read_file(hosts: dict[Site, Host], url: str) -> str:
    """What a site serves at a URL that leads to a file, or to a folder with an index; else nothing."""
    parts = urlsplit(url)
    root = next((host.root for site, host in hosts.items() if site.name == parts.hostname), None)
    path = root / unquote(parts.path).lstrip("/") if root else None
    path = path / "index.html" if path and path.is_dir() else path
    return path.read_text(errors="replace") if path and path.is_file() else ""


def file_count(hosts: list[Host]) -> int:
    return sum(path.is_file() for host in hosts for path in host.root.rglob("*"))
