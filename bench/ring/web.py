"""The web of the benchmark: twelve real manuals, five times each, under 60 names or under 12, and what nginx logged."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.coverage.asking import read_log
from bench.nginx import Host, Site, serving, write_hosts
from bench.pages import fetch_packages

SECOND_BYTE = 60  # names on 127.60.x.y
COPIES = 5  # of each manual
ANY_AGENT = ""  # read_log takes agents whose names begin with this


class Manual(NamedTuple):
    """A documentation package of Debian, and the folder in it that has the index."""

    package: str
    folder: str


# 60 to 290 pages each; the mean is about 25 KB, near that of the other benchmarks. All tools must be able to ask for
# the same URLs. So there is no manual whose pages begin with <?xml (spider-rs finds no links there), and none with
# links that have rel=nofollow (wget and Scrapy follow them).
MANUALS = (
    Manual("exim4-doc-html", "usr/share/doc/exim4-doc-html/spec_html"),
    Manual("libcairo2-doc", "usr/share/gtk-doc/html/cairo"),
    Manual("libgcrypt20-doc", "usr/share/doc/libgcrypt20-doc/html"),
    Manual("libgdk-pixbuf2.0-doc", "usr/share/doc/libgdk-pixbuf2.0-doc/html/gdk-pixbuf"),
    Manual("libglib2.0-doc", "usr/share/gtk-doc/html/gio"),
    Manual("libgtk2.0-doc", "usr/share/doc/libgtk2.0-doc/tutorial"),
    Manual("libgtk2.0-doc", "usr/share/gtk-doc/html/gtk2"),
    Manual("libharfbuzz-doc", "usr/share/gtk-doc/html/harfbuzz"),
    Manual("libjson-glib-doc", "usr/share/doc/json-glib-1.0"),
    Manual("libsoup2.4-doc", "usr/share/gtk-doc/html/libsoup-2.4"),
    Manual("postfix-doc", "usr/share/doc/postfix/html"),
    Manual("python-flask-doc", "usr/share/doc/python-flask-doc/html"),
)


class Asked(NamedTuple):
    """What one run asked for, by nginx's log: URLs with names, whether the tool used names or addresses."""

    urls: frozenset[str]
    requests: int  # robots.txt and repetitions included
    found: int  # URLs answered with 200


@dataclass(frozen=True)
class Web:
    sites: list[Site]
    port: int
    log: Path
    hosts_file: Path
    scheme: str = "http"

    @property
    def seeds(self) -> list[str]:
        """One URL per name."""
        return [f"{self.scheme}://{site.name}:{self.port}/" for site in self.sites]

    @property
    def direct_seeds(self) -> list[str]:
        """The same by address, for tools that take names from DNS only."""
        return [f"{self.scheme}://{site.address}:{self.port}/" for site in self.sites]

    def position(self) -> int:
        """The end of the log: what a run asks for comes after it."""
        return self.log.stat().st_size

    def asked_since(self, position: int) -> Asked:
        with open(self.log, "rb") as file:
            file.seek(position)
            text = file.read().decode("utf-8", "replace")
        return read_asked(text, {site.address: site.name for site in self.sites})


def read_asked(text: str, names: dict[str, str]) -> Asked:
    """What lines of the log say. `names`: address -> name. The last answer to a URL counts."""
    answers = {with_name(url, names): answer.status for url, answer in read_log(text, ANY_AGENT).items()}
    return Asked(frozenset(answers), text.count("\n"), sum(status == 200 for status in answers.values()))


def with_name(url: str, names: dict[str, str]) -> str:
    scheme, _, rest = url.partition("://")
    host = re.match("[^:/]*", rest)[0]
    return f"{scheme}://{names.get(host, host)}{rest[len(host) :]}"


def make_sites(count: int) -> list[Site]:
    """Names that are registered domains of their own, so that blocks share them out."""
    return [Site(f"manual-{number:02d}.test", f"127.{SECOND_BYTE}.1.{1 + number}") for number in range(count)]


def allot(sites: int, manuals: int, copies: int = COPIES) -> list[list[int]]:
    """Which manuals each site has: each manual so many times in all, and as many on each site as on the others."""
    each = manuals * copies // sites
    return [[(site * each + turn) % manuals for turn in range(each)] for site in range(sites)]


def unpack_manuals(manuals: tuple[Manual, ...]) -> list[Path]:
    """The folder of each; missing packages are fetched."""
    cache = fetch_packages(manual.package for manual in manuals)
    return [cache / manual.package / manual.folder for manual in manuals]


def build_hosts(sites: list[Site], manuals: list[Path], copies: int, folder: Path) -> list[Host]:
    """A site with one manual serves it as it is; one with several has a folder of each, and an index of them."""
    hosts = []
    for site, numbers in zip(sites, allot(len(sites), len(manuals), copies)):
        root = manuals[numbers[0]]
        if len(numbers) > 1:
            root = folder / site.name
            root.mkdir(parents=True)
            for number in numbers:
                (root / str(number)).symlink_to(manuals[number])
            links = "".join(f'<li><a href="{number}/">manual {number}</a>\n' for number in numbers)
            (root / "index.html").write_text(f"<!doctype html><title>{site.name}</title>\n<ul>\n{links}</ul>\n")
        hosts.append(Host(root, [site.address], site.name))
    return hosts


@contextmanager
def serving_web(names: int, folder: Path, manuals: list[Path], copies: int = COPIES) -> Iterator[Web]:
    """The manuals, each so many times, under so many names, while the block lasts."""
    folder.mkdir()
    sites = make_sites(names)
    write_hosts(folder / "hosts", sites)
    log = folder / "access.log"
    hosts = build_hosts(sites, manuals, copies, folder / "sites")
    with serving(hosts, folder / "nginx", log) as port:
        yield Web(sites, port, log, folder / "hosts")


def compare(ours: frozenset[str], theirs: frozenset[str]) -> tuple[list[str], list[str]]:
    """URLs that only we asked for, and those that only they did."""
    return sorted(ours - theirs), sorted(theirs - ours)


def count_by_folder(urls: list[str]) -> Counter[str]:
    """How many of the URLs lie in each folder, hosts aside: what to look at first where sets differ."""
    return Counter(url.split("/", 3)[-1].rpartition("/")[0] for url in urls)
