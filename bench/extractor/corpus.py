"""The pages that are read, in two forms: WARC for the extractor, decoded for its peers."""

import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from bench.pages import CACHE, PACKAGES, choose_pages, fetch_packages
from contract import names, warc
from contract.errors import BadInput, TryLater
from contract.tables import ANSWERED
from stages.extractor.charset import choose_charset, to_utf_8
from storage.frames import Zstd
from storage.publish import publishing
from synthweb import Web

# Of each package every n-th page by name. With these parts the mean is 28 KB and 106 links: they balance manuals of few
# links (PostgreSQL) and references of many (Java's API, pandas). pandas alone would be 93 KB and 474 links.
PARTS = {**dict.fromkeys(PACKAGES, 1), "openjdk-17-doc": 2, "python-pandas-doc": 5}
PAGES_MIN = 100
SYNTHETIC_SERVERS = 450  # make some 5,000 pages
FETCHED_AT_MS = 1_790_000_000_000
TYPE = "text/html"  # as nginx has it: the charset stands in the page
HTTP_HEAD = (
    "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 21 Sep 2026 14:13:20 GMT\r\n"
    "Content-Type: {type}\r\nContent-Length: {size}\r\n"
    "Last-Modified: Mon, 07 Sep 2026 09:00:00 GMT\r\nConnection: keep-alive\r\n"
    'ETag: "68bd4a90-{size:x}"\r\nAccept-Ranges: bytes\r\n\r\n'
)
REQUEST = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Coletor/1.0 (+https://bench.test/)\r\nAccept: */*\r\n"
    "Accept-Encoding: gzip, br, zstd\r\n\r\n"
)


class Page(NamedTuple):
    url: str
    path: Path


class Corpus(NamedTuple):
    pages: list[Page]
    about: str  # where they come from


def open_corpus(folder: Path | None, most: int) -> Corpus:
    """At most so many pages: of a given folder, or of the packages, or of synthweb where those cannot be fetched."""
    if folder is not None:
        corpus = Corpus(pages_below(folder.resolve(), "", "pages", 1), str(folder))
    else:
        try:
            root = fetch_packages(PARTS)
            corpus = Corpus(
                [page for package, every in PARTS.items() for page in pages_below(root, package, package, every)],
                "Debian packages "
                + ", ".join(name if every == 1 else f"{name} (1/{every})" for name, every in PARTS.items()),
            )
        except TryLater as error:
            corpus = Corpus(
                synthetic_pages(CACHE / "synthweb"), f"SYNTHETIC, small and with few links, because {error}"
            )
    if len(corpus.pages) < PAGES_MIN:
        raise BadInput(f"expected at least {PAGES_MIN} HTML pages, found {len(corpus.pages)} in {corpus.about}")
    return corpus._replace(pages=corpus.pages[:: -(-len(corpus.pages) // most)])


def pages_below(root: Path, package: str, name: str, every: int) -> list[Page]:
    paths = choose_pages(root / package).paths[::every]
    return [
        Page(f"http://{name}.test{path}", root / package / unquote(path[1:], errors="surrogateescape"))
        for path in paths
    ]


def synthetic_pages(folder: Path) -> list[Page]:
    folder.mkdir(parents=True, exist_ok=True)
    web = Web(1, SYNTHETIC_SERVERS, 80)
    pages = []
    for number, url in enumerate(sorted(web.truth())):
        parts = urlsplit(url)
        answer = web.answer(parts.hostname, url[url.index("/", len("http://")) :])
        if answer.status == 200 and dict(answer.headers)["Content-Type"].startswith(TYPE):
            pages.append(Page(url, folder / f"{number}.html"))
            pages[-1].path.write_bytes(answer.body)
    return pages


def write_pages(pages: list[Page], folder: Path, prefixes: tuple[str, ...] = ("",)) -> None:
    """A folder of pages as the fetcher leaves it: all of them once per prefix, with which names of servers begin."""
    compressor = Zstd()
    with publishing(folder) as manifest:
        (folder / names.PAGES).mkdir()
        with open(folder / names.PAGES / "00000.warc.zst", "wb") as file:
            file.write(compressor.compress(warc.encode_record("warcinfo", dated(0), b"software: Coletor\r\n")))
            for prefix in prefixes:
                for number, page in enumerate(pages):
                    for record in encode_exchange(
                        page.url.replace("://", f"://{prefix}", 1), page.path.read_bytes(), number
                    ):
                        file.write(compressor.compress(record))
        manifest["counts"] = {"listed": len(pages) * len(prefixes), "answered": len(pages) * len(prefixes)}


def encode_exchange(url: str, body: bytes, number: int) -> Iterable[bytes]:
    host, path = url.removeprefix("http://").split("/", 1)
    about = [("WARC-Target-URI", url), ("WARC-IP-Address", "192.0.2.1")]
    yield warc.encode_record(
        "request",
        [*dated(number), *about, ("Content-Type", warc.HTTP_REQUEST)],
        REQUEST.format(path="/" + path, host=host).encode(),
    )
    times = {"waited": 120, "dns": 4, "connect": 2, "first_byte": 30, "total": 35}
    yield warc.encode_record(
        "response",
        [
            *dated(number),
            *about,
            ("Content-Type", warc.HTTP_RESPONSE),
            ("WARC-Concurrent-To", warc.new_id()),
            ("WARC-Payload-Digest", warc.sha1_digest(body)),
            (warc.FINAL, warc.YES),
            (warc.OUTCOME, ANSWERED),
            (warc.TIMES, warc.format_times(times)),
        ],
        HTTP_HEAD.format(type=TYPE, size=len(body)).encode() + body,
    )


def dated(number: int) -> list[tuple[str, str]]:
    return [("WARC-Record-ID", warc.new_id()), ("WARC-Date", warc.format_date(FETCHED_AT_MS + number))]


def write_decoded(pages: list[Page], path: Path) -> None:
    """For the peers: URL and body in UTF-8 of each page, pickled one behind the other."""
    with open(path, "wb") as file:
        for page in pages:
            body = page.path.read_bytes()
            pickle.dump((page.url, to_utf_8(body, choose_charset(body, TYPE, has_markup=True))), file)
