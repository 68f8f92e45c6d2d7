"""A crawl of Debian's documentation packages, for what needs the links and URLs of real sites.

  environment/enter bench bench.documentation --crawl DIR [PACKAGE...]

Serves each package with nginx under a name of its own, on loopback, and crawls all of them into DIR until nothing
waits. By default these are all packages of SOURCES, some 50,000 pages; they are fetched into build/bench-pages once.

Example: environment/enter bench bench.documentation --crawl /tmp/documentation sqlite3-doc git-doc
"""

import tempfile
from pathlib import Path
from urllib.parse import quote

from bench.coverage.sites import SOURCES as SITES
from bench.coverage.sites import Source, make_hosts
from bench.nginx import check_programs, serving, write_hosts
from bench.processes import run_child
from contract.command import make_parser, run
from contract.errors import Usage

NAME = "documentation"
LIMIT_S = 3_600.0
ROOT = Path(__file__).resolve().parents[1]
SOURCES = SITES + (
    Source("apache2-doc", "usr/share/doc/apache2-doc/manual"),
    Source("aptitude-doc-en", "usr/share/doc/aptitude/html/en"),
    Source("aptitude-doc-ru", "usr/share/doc/aptitude/html/ru"),
    Source("bind9-doc", "usr/share/doc/bind9-doc/arm"),
    Source("cmake-doc", "usr/share/doc/cmake-data/html"),
    Source("debian-handbook", "usr/share/doc/debian-handbook/html"),
    Source("erlang-doc", "usr/share/doc/erlang-doc/doc"),
    Source("ghc-doc", "usr/share/doc/ghc-doc"),
    Source("gimp-help-pt", "usr/share/gimp/2.0/help/pt"),
    Source("gimp-help-ru", "usr/share/gimp/2.0/help/ru"),
    Source("libboost1.74-doc", "usr/share/doc/libboost1.74-doc"),
    Source("libglib2.0-doc", "usr/share/gtk-doc/html"),
    Source("libgtk-3-doc", "usr/share/gtk-doc/html"),
    Source("nodejs-doc", "usr/share/doc/nodejs/api"),
    Source("octave-doc", "usr/share/doc/octave"),
    Source("openjdk-17-doc", "usr/share/doc/openjdk-17-doc"),
    Source("python-pandas-doc", "usr/share/doc/python-pandas-doc/html"),
    Source("python-sqlalchemy-doc", "usr/share/doc/python-sqlalchemy-doc/html"),
    Source("qtbase5-doc-html", "usr/share/qt5/doc"),
    Source("scala-doc", "usr/share/doc/scala-2.11"),
)
SETTINGS = (
    "blocks.first=1",
    "fetcher.contact=https://bench.test/",
    "fetcher.allow_private_addresses=true",
    "fetcher.delay_s=0.0",
    "fetcher.delay_response_factor=0.0",
    "scheduler.server_max_urls=100000",
    "verifier.prescheduled_max=100000",
)


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these packages of SOURCES")
    arguments = parser.parse_args()
    known = {source.package: source for source in SOURCES}
    strange = [name for name in arguments.packages if name not in known]
    if strange:
        raise Usage(f"{strange[0]}: no such package; expected some of {', '.join(known)}")
    check_programs("nginx")
    crawl_sources(arguments.crawl, tuple(known[name] for name in arguments.packages or known))


def crawl_sources(crawl: Path, sources: tuple[Source, ...]) -> None:
    hosts = make_hosts(sources)
    with tempfile.TemporaryDirectory(prefix="documentation-") as scratch:
        folder = Path(scratch)
        write_hosts(folder / "hosts", list(hosts))
        with serving(list(hosts.values()), folder / "nginx", folder / "access.log") as port:
            seeds = [
                page for site, host in hosts.items() for page in front_pages(host.root, f"http://{site.name}:{port}/")
            ]
            domains = ", ".join(f'"{site.name}"' for site in hosts)
            settings = (*SETTINGS, f"fetcher.hosts_file={folder / 'hosts'}", f"scope.accept_domains=[{domains}]")
            options = [word for setting in settings for word in ("--set", setting)]
            run_child([ROOT / "bin" / "seed", "--crawl", crawl, *seeds, *options], folder / "seed.log")
            print(f"crawling {len(hosts)} sites into {crawl} ...", flush=True)
            command = [ROOT / "bin" / "crawl", "--crawl", crawl, "--until-done", "--quiet"]
            spent = run_child(command, folder / "crawl.log", limit_s=LIMIT_S)
    print(f"crawled in {spent.wall_s:.0f} s; bin/status --crawl {crawl} shows it")


def front_pages(root: Path, site: str) -> list[str]:
    """The index of the site, or else a page of each of its folders: the nearest index there, or else any page."""
    if (root / "index.html").exists():
        return [site]
    found = []
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        pages = sorted(folder.rglob("*.html"), key=lambda page: (page.name != "index.html", len(page.parts), page))
        found += [site + quote(page.relative_to(root).as_posix()) for page in pages[:1]]
    return found


if __name__ == "__main__":
    run(main, NAME)
