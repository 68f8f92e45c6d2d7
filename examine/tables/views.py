"""DuckDB, used here only: a connection on which the tables of a crawl are views, and which reads nothing else.

DuckDB never opens a file of the crawl. It gets rows from Arrow: datasets of Parquet files, into which it pushes the
columns and the conditions of a query, and streams of what is not Parquet (known_urls.py). So its own access to files,
to the network and to extensions is off from the start, whatever a query says. It keeps results of a query that exceed
its memory in a folder of its own, which is removed at the end. Only one SELECT is run at a time, and nothing can be
written: views have no rows of their own.
"""

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import duckdb

from contract.crawl_folder import CrawlFolder
from contract.errors import TryLater, Usage
from contract.log import replay
from examine.link_sources import read_link_sources
from examine.page_text import detect_language
from examine.tables.definitions import VIEWS, tables_of
from examine.tables.known_urls import Journal, KnownUrls, Stream, live_generations
from examine.tables.layout import unique_names
from examine.tables.link_sources import NAME, NO_SOURCES, IsLinkSource
from examine.tables.memory import TOO_LITTLE
from examine.tables.stage_tables import StageTables
from storage.errors import Damaged

MEMORY_BYTES = 1 << 30
ROWS_AT_ONCE = 2048
INTERRUPT_EVERY_S = 0.1
CLOSE_TRIES = 100
MESSAGE_MAX = 300  # characters of what DuckDB says
WITH_ZONE = "WITH TIME ZONE"
FROM_ARROW = "reading the stream registered as"  # how DuckDB begins when Arrow could not read


@dataclass
class Result:
    columns: list[str]  # each name once
    rows: Iterator[tuple]


class Views:
    """The views of a crawl. `left_out` names what `allow_partial` left out. Use it with `with`."""

    def __init__(self, crawl: CrawlFolder, memory_bytes: int = MEMORY_BYTES, *, allow_partial: bool = False):
        self._crawl = crawl
        self._log = replay(crawl.path, crawl.blocks_first)
        self._tables = StageTables(crawl.path, self._log, allow_partial)
        self._streams: list[Stream] = []
        self._made: set[str] = set()
        self._thread = ThreadPoolExecutor(1)
        self._folder = tempfile.TemporaryDirectory(prefix="coletor-sql-")
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "enable_external_access": False,
                "python_enable_replacements": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "temp_directory": self._folder.name,
                "memory_limit": f"{max(1, memory_bytes >> 10)}KiB",
                "lock_configuration": True,
            },
        )
        self._connection.create_function("detect_language", detect_language, [str], str, null_handling="special")
        self._knows_link_sources = False

    def __enter__(self) -> "Views":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        for _ in range(CLOSE_TRIES):
            try:
                self._connection.interrupt()
                self._connection.close()
                break
            except duckdb.Error:  # a result that was not read to its end is busy until the interrupt reaches it
                time.sleep(INTERRUPT_EVERY_S)
        self._folder.cleanup()

    @property
    def left_out(self) -> list[str]:
        return self._tables.left_out

    def query(self, sql: str) -> Result:
        """The result of one SELECT; its rows are read as they are asked for. Usage where DuckDB refuses it."""
        try:
            expect_select(self._connection.extract_statements(sql))
            self._make({name.lower() for name in self._connection.get_table_names(sql)})
            self._do(self._connection.execute, sql)
            types = [str(column[1]) for column in self._connection.description]
            names = list(unique_names([column[0] for column in self._connection.description]))
            if any(WITH_ZONE in kind for kind in types):  # for which Python would need a library of time zones
                self._do(self._connection.execute, without_zones(sql, types))
        except duckdb.Error as error:
            raise self._explain(error) from None
        except Damaged as error:
            raise self._judge(error) from None
        return Result(names, self._rows())

    def _rows(self) -> Iterator[tuple]:
        try:
            while rows := self._do(self._connection.fetchmany, ROWS_AT_ONCE):
                yield from rows
        except duckdb.Error as error:
            raise self._explain(error) from None

    def _do(self, work: Callable, argument: object) -> Any:
        """DuckDB's work, in another thread: no signal reaches one that is inside DuckDB, but Ctrl-C must end it."""
        future = self._thread.submit(work, argument)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():  # DuckDB forgets an interrupt that comes before the query runs
                self._connection.interrupt()
                wait([future], INTERRUPT_EVERY_S)
            raise

    def _make(self, named: set[str]) -> None:
        """Makes the views that a query names; all of them for one that names none, such as SHOW TABLES."""
        if not self._knows_link_sources:
            self._make_link_sources()
        for name in tables_of(named & set(VIEWS) or set(VIEWS)):
            if name not in self._made:
                if name in VIEWS:
                    self._connection.execute(VIEWS[name].sql(name))
                else:
                    self._connection.register(name, self._open(name))
                self._made.add(name)

    def _make_link_sources(self) -> None:
        """Makes the function that tells whether a URL is a link source."""
        found = read_link_sources(self._crawl.path)
        if found:
            judge = IsLinkSource(self._crawl.path, live_generations(self._log), found)
            self._connection.create_function(NAME, judge, ["VARCHAR", "UBIGINT", "UBIGINT"], "BOOLEAN", type="arrow")
        else:
            self._connection.execute(NO_SOURCES)
        self._knows_link_sources = True

    def _open(self, name: str) -> object:
        if name not in ("_known_urls", "_journal"):
            return self._tables.dataset(name.removeprefix("_"))
        path = self._crawl.path
        stream = Journal(path) if name == "_journal" else KnownUrls(path, live_generations(self._log))
        self._streams.append(stream)
        return stream

    def _explain(self, error: duckdb.Error) -> Exception:
        """What the user can do about it: an error of SQL, of memory, or of the files."""
        if isinstance(error, duckdb.OutOfMemoryException):
            return TryLater(TOO_LITTLE)
        for stream in self._streams:
            if stream.error is not None:
                return self._judge(stream.error)
        if FROM_ARROW in str(error):
            try:
                self._tables.verify_used()
            except (Damaged, OSError) as found:
                return self._judge(found)
        if isinstance(error, duckdb.CatalogException) and "Table with name" in str(error):
            return Usage(f"{one_line(str(error)).partition('!')[0]}: the views are {', '.join(VIEWS)}")
        return Usage(one_line(str(error)))

    def _judge(self, error: Exception) -> Exception:
        """A generation that a running crawl replaced, and then deleted, is no damage."""
        if isinstance(error, Damaged) and replay(self._crawl.path, self._crawl.blocks_first).length > self._log.length:
            return TryLater(f"{error}; the crawl has gone on meanwhile, so this may be no damage: run the query again")
        return error


def expect_select(statements: list) -> None:
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        raise Usage(f"expected one SELECT, found {' and '.join(kinds) or 'nothing'}: a crawl is only read")


def without_zones(sql: str, types: list[str]) -> str:
    """The query with times in UTC instead of times with a zone."""
    names = [f"c{number}" for number in range(len(types))]
    casts = [f"{name} AT TIME ZONE 'UTC'" if WITH_ZONE in kind else name for name, kind in zip(names, types)]
    return f"SELECT {', '.join(casts)} FROM ({sql.rstrip().rstrip(';')}\n) AS result({', '.join(names)})"


def one_line(message: str) -> str:
    """DuckDB's message without its picture of the query."""
    text = " ".join(re.split(r"\n\s*LINE \d+:", message)[0].split())
    return text if len(text) <= MESSAGE_MAX else text[: MESSAGE_MAX - 3] + "..."
