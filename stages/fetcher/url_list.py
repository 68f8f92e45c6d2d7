"""The list to fetch and what is known of its servers: Lista_de_URLs and Servidores, or a plain text of URLs."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from contract import names
from contract.crawl_folder import LATEST_MS
from contract.errors import Usage
from contract.pause import believed_ready_at_ms
from contract.tables import CYCLE_SERVERS, URL_LIST
from contract.terminal import make_plain
from contract.url import OTHER_SCHEME, UNPARSABLE, NotCanonical, canonicalise
from contract.validators import may_send
from stages.fetcher.revisit import Revisit
from stages.fetcher.server_queues import Known
from storage.errors import Damaged
from storage.tables import column, read_some_columns, read_table

# The list's URLs go into requests and WARC headers as they are: no character in them may end a line.
_SAFE_URL = re.compile(r"https?://[!-~]+/[!-~]*")
_DIGEST = re.compile(r"sha1:[A-Z2-7]{32}")
WHY_NONE = {UNPARSABLE: "none", OTHER_SCHEME: "one of another scheme"}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_KNOWN_NUMBERS = ["robots_expires_at_ms", "delay_ms", "last_request_at_ms", "ready_at_ms", "failures"]
_REVISIT_COLUMNS = ["etag", "last_modified", "payload_digest", "fetched_at_ms"]


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
    """The servers of Servidores. A robots.txt that has expired by `now_ms`, the plan's now, is left out. A wait longer
    than a server may ask for is shortened: a wrong clock wrote it."""
    table = read_table(folder / names.SERVERS, CYCLE_SERVERS, ["server", "robots", *_KNOWN_NUMBERS])
    numbers = zip(*(column(table, name).tolist() for name in _KNOWN_NUMBERS))
    known = {}
    for server, robots, (expires_at_ms, delay_ms, last_request_at_ms, ready_at_ms, failures) in zip(
        table.column("server").to_pylist(), table.column("robots").to_pylist(), numbers
    ):
        known[server] = Known(
            robots_text=robots if expires_at_ms > now_ms else None,
            delay_ms=delay_ms,
            last_request_at_ms=last_request_at_ms,
            ready_at_ms=believed_ready_at_ms(ready_at_ms, now_ms),
            failures=failures,
        )
    return known


def read_list(path: Path) -> list[str]:
    """The URLs of a standalone list, each once: a text with one URL per line, or a table like the scheduler's."""
    try:
        if path.suffix == ".parquet":
            lines = [url.encode("utf-8", "replace") for url in read_standalone_table(path)["url"]]
        else:
            lines = path.read_bytes().removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise Usage(f"{path}: expected a list of URLs, found {error.strerror.lower()}") from None
    return list(dict.fromkeys(canonical_lines(lines, path)))


def read_revisits(path: Path) -> dict[str, Revisit]:
    """The earlier answers of the URLs that a list, the scheduler's or a standalone one, marks as revisits; by canonical
    URL, of which the first row counts. A text has none."""
    if path.suffix != ".parquet":
        return {}
    table = read_standalone_table(path)
    revisits: dict[str, Revisit] = {}
    for url, is_revisit, *known in zip(table["url"], table["revisit"], *(table[name] for name in _REVISIT_COLUMNS)):
        if is_revisit:
            try:
                revisits.setdefault(canonicalise(url), to_revisit(*known))
            except NotCanonical:
                pass  # reported when the list was read
    return revisits


def read_standalone_table(path: Path) -> dict[str, list]:
    """The columns of a standalone table that we need; a missing column or value counts as empty."""
    table = read_some_columns(path, URL_LIST, ["url", "revisit", *_REVISIT_COLUMNS])
    if table.column_names.count("url") != 1:
        raise Damaged(path, f"expected a column `url`, found {table.column_names.count('url') or 'none'}")
    empty = {"url": "", "revisit": False, **Revisit()._asdict()}
    columns = {}
    for name, nothing in empty.items():
        values = table.column(name).to_pylist() if name in table.column_names else [None] * len(table)
        columns[name] = [nothing if value is None else value for value in values]
    return columns


def to_revisit(etag: str, last_modified: str, payload_digest: str, fetched_at_ms: int) -> Revisit:
    """A Revisit in which values that cannot be sent or written as they are count as not known."""
    return Revisit(
        etag if may_send(etag) else "",
        last_modified if may_send(last_modified) else "",
        payload_digest if _DIGEST.fullmatch(payload_digest) else "",
        fetched_at_ms if 0 <= fetched_at_ms < LATEST_MS else 0,
    )


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
            hint = "" if b"://" in line or error.reason == OTHER_SCHEME else " (write http:// or https:// before it)"
            complain(path, number, f"expected an http or https URL, found {WHY_NONE[error.reason]}{hint}", line)


def complain(path: Path, number: int, what: str, line: bytes) -> None:
    print(f"fetcher: {path} line {number} passed over: {what}: {make_plain(line[:100])}", file=sys.stderr)
