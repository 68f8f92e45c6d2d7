"""Which visits an export takes: the options --server, --suffix, --status, --type, --language, --from, --until."""

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from contract.accumulators import DAY_MS
from contract.url import host_of, server_of
from storage.arrays import Array
from storage.tables import column

FOREVER_MS = 1 << 62
STATUSES = re.compile(r"([0-9])xx|([0-9]{3})(?:-([0-9]{3}))?")


@dataclass(frozen=True)
class Filters:
    """An empty tuple takes all. `newest`: of each URL one visit of those in the dates, chosen before other filters."""

    servers: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    statuses: tuple[tuple[int, int], ...] = ()  # (first, last)
    types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    from_ms: int = 0
    until_ms: int = FOREVER_MS
    newest: bool = False

    def describe(self) -> dict[str, Any]:
        """Those that were given, as JSON has them."""
        unset = asdict(Filters())
        return {name: value for name, value in asdict(self).items() if value != unset[name]}

    def in_dates(self, at_ms: Array) -> Array:
        return (at_ms >= self.from_ms) & (at_ms < self.until_ms)

    def takes_server(self, server: str) -> bool:
        """Whether --server and --suffix let a server pass, such as https://www.example.br."""
        host = host_of(server)
        return (not self.servers or server in self.servers or host in self.servers) and (
            not self.suffixes or f".{host}".endswith(tuple(f".{suffix}" for suffix in self.suffixes))
        )

    def judge(self, visits: pa.Table) -> Array:
        """Which rows pass, bool; without `newest`. `visits` has columns of METADATA."""
        taken = self.in_dates(column(visits, "fetched_at_ms"))
        if self.servers or self.suffixes:
            taken &= self._judge_servers(visits)
        if self.statuses:
            status = column(visits, "status")
            taken &= np.logical_or.reduce([(status >= first) & (status <= last) for first, last in self.statuses])
        if self.types:
            taken &= judge_texts(visits, "type", lambda text: any(matches_type(text, wanted) for wanted in self.types))
        if self.languages:
            taken &= judge_texts(visits, "language", self._takes_language)
        return taken

    def _takes_language(self, text: str) -> bool:
        """pt takes pt, pt-BR and pt_BR."""
        plain = text.lower().replace("_", "-")
        return any(plain == language or plain.startswith(f"{language}-") for language in self.languages)

    def _judge_servers(self, visits: pa.Table) -> Array:
        """Each server is judged once."""
        _, first, server = np.unique(column(visits, "server_key"), return_index=True, return_inverse=True)
        urls = visits.column("url").take(pa.array(first)).to_pylist()
        return np.array([self.takes_server(server_of(url)) for url in urls], bool)[server]


def judge_texts(visits: pa.Table, name: str, takes: Callable[[str], bool]) -> Array:
    """Each distinct text is judged once."""
    encoded = visits.column(name).combine_chunks().dictionary_encode()
    if not len(encoded.dictionary):
        return np.zeros(len(visits), bool)
    verdicts = np.array([takes(text) for text in encoded.dictionary.to_pylist()], bool)
    taken: Array = verdicts[encoded.indices.to_numpy(zero_copy_only=False)]
    return taken


def matches_type(text: str, wanted: str) -> bool:
    """text/* takes every text type."""
    return text.startswith(wanted[:-1]) if wanted.endswith("/*") else text == wanted


def add_filters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("filters (those that may be repeated take what any of them takes)")
    for option, metavar, meaning, kind in (
        ("--server", "SERVER", "https://www.example.br, or a host: www.example.br; may be repeated", as_server),
        ("--suffix", "SUFFIX", "hosts that end so: br, gov.br, example.br; may be repeated", as_suffix),
        ("--status", "STATUS", "404, 2xx or 400-499; may be repeated", as_statuses),
        ("--type", "TYPE", "text/html or text/*; may be repeated", str.lower),
        ("--language", "LANGUAGE", "as the page declares it: pt takes pt-BR too; may be repeated", str.lower),
    ):
        group.add_argument(option, action="append", default=[], metavar=metavar, help=meaning, type=kind)
    group.add_argument("--from", dest="from_ms", type=as_start, default=0, metavar="DATE", help="2026-11-30 (UTC)")
    group.add_argument(
        "--until", dest="until_ms", type=as_end, default=FOREVER_MS, metavar="DATE", help="up to the end of that day"
    )
    group.add_argument("--newest", action="store_true", help="of each URL only the newest visit that brought a page")


def filters_of(arguments: argparse.Namespace) -> Filters:
    return Filters(
        *(as_set(found) for found in (arguments.server, arguments.suffix, arguments.status)),
        *(as_set(found) for found in (arguments.type, arguments.language)),
        arguments.from_ms,
        arguments.until_ms,
        arguments.newest,
    )


def as_set(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(sorted(set(values)))


def as_server(text: str) -> str:
    return text.lower().rstrip("/")


def as_suffix(text: str) -> str:
    return text.lower().strip(".")


def as_statuses(text: str) -> tuple[int, int]:
    """(first, last) of 404, 2xx or 400-499."""
    found = STATUSES.fullmatch(text.lower())
    if not found:
        raise ValueError
    hundred, first, last = found.groups()
    low, high = (int(f"{hundred}00"), int(f"{hundred}99")) if hundred else (int(first), int(last or first))
    if low > high:
        raise ValueError
    return low, high


def as_start(text: str) -> int:
    return in_ms(datetime.fromisoformat(text))


def as_end(text: str) -> int:
    """The end of the day; of a text with a time, that moment."""
    at = datetime.fromisoformat(text)
    return in_ms(at) + (DAY_MS if len(text) <= len("2026-11-30") else 0)


def in_ms(at: datetime) -> int:
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


as_statuses.__name__, as_start.__name__, as_end.__name__ = "status", "date", "date"  # argparse names them in messages
