"""The list to fetch and what is known of its servers: Lista_de_URLs and Servidores, or a plain text of URLs."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from contract import names
from contract.errors import Usage
from contract.tables import SERVERS, URL_LIST
from contract.url import NotCanonical, canonicalise
from stages.fetcher.servers import Known
from storage.errors import Damaged
from storage.tables import column, read_table

# The list's URLs go into requests and WARC headers as they are: nothing in them may end a line.
_SAFE_URL = re.compile(r"https?://[!-~]+/[!-~]*")
_SAFE_VALUE = re.compile(r"[!-~](?:[ -~]{0,998}[!-~])?")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Earlier(NamedTuple):
    """What an earlier visit left of a page that is visited again."""
    etag: str = ""
    last_modified: str = ""
    payload_digest: str = ""
    fetched_at_ms: int = 0

    def conditions(self) -> tuple[str, ...]:
        """The headers that ask for the page only if it has changed (RFC 9110 13.1)."""
        pairs = (("If-None-Match", self.etag), ("If-Modified-Since", self.last_modified))
        return tuple(f"{name}: {value}" for name, value in pairs if _SAFE_VALUE.fullmatch(value))


def read_scheduled(folder: Path) -> list[str]:
    """The URLs of the scheduler's list, in its order."""
    path = folder / names.URL_LIST
    table = read_table(path, URL_LIST, ["order", "url"]).sort_by("order")
    urls = table.column("url").to_pylist()
    for row, url in enumerate(urls):
        if not _SAFE_URL.fullmatch(url):
            raise Damaged(path, f"expected a canonical URL in row {row}, found {url[:100]!r}")
    return list(dict.fromkeys(urls))


def read_known_servers(folder: Path, now_ms: int) -> dict[str, Known]:
    """What Servidores tells; a robots.txt that has expired by `now_ms` is left out."""
    table = read_table(folder / names.SERVERS, SERVERS, [
        "server", "robots", "robots_expires_at_ms", "delay_ms", "last_request_at_ms", "failures",
    ])
    numbers = zip(*(column(table, name).tolist() for name in table.column_names[2:]))
    known = {}
    for server, robots, (expires_at_ms, delay_ms, last_request_at_ms, failures) in zip(
        table.column("server").to_pylist(), table.column("robots").to_pylist(), numbers
    ):
        known[server] = Known(robots if expires_at_ms > now_ms else None, delay_ms, last_request_at_ms, failures)
    return known


def read_list(path: Path) -> list[str]:
    """The URLs of somebody's own list, each once: a text with one a line, or a table like the scheduler's."""
    try:
        if path.suffix == ".parquet":
            lines = (url.encode("utf-8", "replace") for url in read_table(path, URL_LIST, ["url"]).column("url").to_pylist())
        else:
            lines = path.read_bytes().removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise Usage(f"{path}: expected a list of URLs, found {error.strerror.lower()}") from None
    return list(dict.fromkeys(canonical_lines(lines, path)))


def canonical_lines(lines: Iterable[bytes], path: Path) -> Iterable[str]:
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith(b"#"):
            continue
        try:
            yield canonicalise(line.decode("utf-8"))
        except UnicodeDecodeError:
            complain(path, number, "expected UTF-8", line)
        except NotCanonical as error:
            complain(path, number, f"expected an http or https URL, found it {error.reason.replace('_', ' ')}", line)


def complain(path: Path, number: int, what: str, line: bytes) -> None:
    shown = line[:100].decode("utf-8", "backslashreplace")
    printable = "".join(char if char.isprintable() else "?" for char in shown)
    print(f"fetcher: {path} line {number} passed over: {what}: {printable}", file=sys.stderr)
