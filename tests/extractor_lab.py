"""Pages, WARC files and cycles for the extractor's tests, made byte by byte."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contract import crawl_folder, names, warc
from contract.canonical import Canonical
from contract.config import Config
from contract.crawl_folder import CrawlFolder
from contract.generation import COLUMNS, SIDE_COLUMNS, GenerationWriter
from contract.log import CRAWL
from contract.plan import Plan, write_plan
from contract.scope.requisites import Requisites
from contract.scope.rules import Scope
from contract.tables import ANSWERED, COLLECTED_STATE, CYCLE_SERVERS, TAKEN_ALONG, URL_LIST, WAITING
from contract.url import Keys, server_of
from stages.extractor.__main__ import extract_cycle, extract_pages
from stages.extractor.answer import Answer, AnswerReader
from stages.extractor.link_judge import Judged, LinkJudge
from stages.extractor.targets import Targets
from storage.frames import Zstd
from storage.publish import publishing
from storage.tables import write_table

NOW_MS = 1_800_000_000_000
PAGE = "http://example.com/dir/page.html"
HASH_SEED = 17
KEYS = Keys(HASH_SEED)  # made once: reading the suffix list takes a tenth of a second


def http(body: bytes = b"", status: int = 200, kind: str | None = "text/html; charset=utf-8", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Word", *([f"Content-Type: {kind}"] if kind is not None else []), *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def read_answer(
    body: bytes | str = b"",
    kind: str | None = "text/html; charset=utf-8",
    *headers: str,
    status: int = 200,
    url: str = PAGE,
    config: Config = Config(),
) -> Answer:
    content = body.encode() if isinstance(body, str) else body
    return AnswerReader(config).read(url, warc.parse_response(http(content, status, kind, *headers)))


def judge_answer(
    answer: Answer, *, url: str = PAGE, depth: int = 0, config: Config = Config(), year: int = 0
) -> Judged:
    scope = Scope(config.scope, KEYS, year)
    targets, requisites = Targets(Canonical(config.url), scope, KEYS), Requisites(config, scope, KEYS, year)
    return LinkJudge(config.extractor, scope, targets, requisites).judge(url, depth, answer)


class WarcFile:
    """The bytes of a file of pages, record by record; each exchange begins a second after the one before."""

    def __init__(self, compressor=None, at_ms: int = NOW_MS):
        self._compressor = compressor or Zstd()
        self._at_ms = at_ms
        self.members: list[bytes] = []
        self.add("warcinfo", "", b"software: test\r\n")

    def add(self, kind: str, url: str, block: bytes, **headers: str) -> "WarcFile":
        named = [("WARC-Record-ID", warc.new_id()), ("WARC-Date", warc.format_date(self._at_ms))]
        named += [("WARC-Target-URI", url)] if url else []
        named += [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.members.append(self._compressor.compress(warc.encode_record(kind, named, block)))
        return self

    def answer(
        self,
        url: str,
        block: bytes,
        outcome: str = ANSWERED,
        reason: str = "",
        *,
        total: int = 30,
        final: bool = True,
        robots: str = "",
        address: str = "192.0.2.1",
        message: str = "",
    ) -> "WarcFile":
        self._at_ms += 1000
        self.add("request", url, b"GET / HTTP/1.1\r\n\r\n")
        return self.add(
            "response",
            url,
            block,
            WARC_IP_Address=address,
            WARC_Payload_Digest=warc.sha1_digest(block),
            **coletor(outcome, reason, total, final, robots, message),
        )

    def no_answer(
        self,
        url: str,
        outcome: str,
        reason: str,
        *,
        total: int = 0,
        final: bool = True,
        robots: str = "",
        address: str = "",
        message: str = "",
    ) -> "WarcFile":
        """Without an address nobody was asked."""
        self._at_ms += 1000
        asked = {"WARC_IP_Address": address} if address else {}
        told = coletor(outcome, reason, total, final and not robots, robots, message)
        return self.add("metadata", url, b"outcome\r\n", **asked, **told)

    def robots(self, server: str, body: bytes, status: int = 200, path: str = "/robots.txt", **options) -> "WarcFile":
        headers = options.pop("headers", ())
        options = {"robots": server, **options}
        return self.answer(server + path, http(body, status, "text/plain", *headers), final=False, **options)

    def data(self) -> bytes:
        return b"".join(self.members)


def coletor(outcome: str, reason: str, total: int, final: bool, robots: str, message: str) -> dict[str, str]:
    headers = {"Coletor_Final": "yes"} if final else {}
    headers |= {"Coletor_Robots": robots} if robots else {}
    headers |= {"Coletor_Reason": reason} if reason else {}
    headers |= {"Coletor_Message": message} if message else {}
    return headers | {
        "Coletor_Outcome": outcome,
        "Coletor_Times": f"waited=1 dns=4 connect=2 first_byte=3 total={total}",
    }


def page_file(pages: dict[str, bytes | str]) -> WarcFile:
    """A file of HTML pages that were all answered."""
    file = WarcFile()
    for url, body in pages.items():
        file.answer(url, http(body.encode() if isinstance(body, str) else body))
    return file


def alone(folder: Path, *files: WarcFile, config: Config = Config(), out: str = "out") -> "Tables":
    """The tables of files of pages without a crawl."""
    (folder / "pages").mkdir(exist_ok=True)
    for number, file in enumerate(files):
        (folder / "pages" / f"{number:05d}.warc.zst").write_bytes(file.data())
    extract_pages(folder / "pages", folder / out, config)
    return Tables(folder / out)


class Tables:
    """What an extraction wrote: rows of each table, and the books."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.manifest = json.loads((folder / names.MANIFEST).read_bytes())
        self.counts = self.manifest["counts"]

    def rows(self, name: str) -> list[dict]:
        return pq.read_table(self.folder / name).to_pylist()

    def by_url(self, name: str) -> dict[str, dict]:
        rows = self.rows(name)
        found = {row["url"]: row for row in rows}
        assert len(found) == len(rows) and rows == sorted(rows, key=lambda row: (row["domain_key"], row["url_key"]))
        return found

    def servers(self) -> dict[str, dict]:
        rows = self.rows(names.SERVERS)
        assert rows == sorted(rows, key=lambda row: row["server_key"])
        return {row["server"]: row for row in rows}

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}


class Cycle:
    """A cycle of a crawl folder, up to what the fetcher left."""

    def __init__(
        self,
        folder: Path,
        listed: dict[str, int],
        *files: WarcFile,
        known: dict[str, dict] | None = None,
        config: Config = Config(),
        cash: dict[str, int] | None = None,
        counted: frozenset[str] = frozenset(),
        known_pages: dict[str, bytes] | None = None,
    ):
        """`counted`: URLs of the list whose links were counted before; `known_pages`: the content of pages that the
        block has as collected and parsed, by URL; those whose content is empty are not parsed."""
        self.crawl: CrawlFolder = crawl_folder.create(folder, 1, HASH_SEED)
        if known_pages is not None:
            write_generation(self.crawl.path / names.generation(0, 2), known_pages)
        self.plan = Plan(3, CRAWL, 0, 1, None if known_pages is None else 2, NOW_MS, config)
        write_plan(self.crawl.path, self.plan)
        self.path = self.crawl.path / names.cycle(3)
        self.fetcher = self.path / names.FETCHER
        with publishing(self.path / names.SCHEDULER) as manifest:
            write_table(self.path / names.SCHEDULER / names.URL_LIST, list_table(listed, cash or {}, counted))
            write_table(self.path / names.SCHEDULER / names.SERVERS, server_table(listed, known or {}))
            manifest["counts"] = {}
        with publishing(self.fetcher) as manifest:
            (self.fetcher / names.PAGES).mkdir()
            for number, file in enumerate(files):
                self.page_path(number).write_bytes(file.data())
            manifest["counts"] = {"listed": len(listed)}

    def page_path(self, number: int) -> Path:
        return self.fetcher / names.PAGES / f"{number:05d}.warc.zst"

    def extract(self, out: Path | None = None) -> Tables:
        extract_cycle(self.crawl, self.plan, out)
        return Tables(out or self.path / names.EXTRACTOR)

    def notes(self) -> list[dict]:
        return crawl_folder.notes_of_damage(self.crawl.path)


def write_generation(folder: Path, pages: dict[str, bytes]) -> None:
    """The collected pages of a generation, and one waiting row before each, with the columns that are looked at."""
    keys = sorted(map(KEYS.of, pages))
    contents = {KEYS.of(url): content for url, content in pages.items()}
    digests = b"".join(sha256(contents[key]).digest()[:16] for key in keys)
    with publishing(folder) as manifest:
        writer = GenerationWriter(folder)
        row = {
            "key": [key + below for key in keys for below in (-1, 0)],
            "state": [WAITING, COLLECTED_STATE] * len(keys),
        }
        writer.rows.append({name: np.array(row[name], COLUMNS[name]) for name in row})
        writer.side.append(
            {"content_digest": np.frombuffer(digests, "V16"), "parsed": np.array([bool(contents[key]) for key in keys])}
        )
        for name, dtype in COLUMNS.items():
            if name not in row:
                writer.rows.append({name: np.zeros(2 * len(keys), dtype)})
        for name, dtype in SIDE_COLUMNS.items():
            if name not in ("content_digest", "parsed"):
                writer.side.append({name: np.zeros(len(keys), dtype)})
        writer.close_rows()
        manifest |= {"texts": {}, "seen": 0}


def list_table(listed: dict[str, int], cash: dict[str, int], counted: frozenset[str] = frozenset()) -> pa.Table:
    servers = [KEYS.server(server_of(url)) for url in listed]
    return pa.table(
        {
            "order": range(len(listed)),
            "url": list(listed),
            "domain_key": [server.domain_key for server in servers],
            "url_key": [KEYS.of(url) for url in listed],
            "server_key": [server.key for server in servers],
            "depth": list(listed.values()),
            "revisit": [url in counted for url in listed],
            **dict.fromkeys(("etag", "last_modified", "payload_digest"), [""] * len(listed)),
            "fetched_at_ms": [0] * len(listed),
            "counted": [url in counted for url in listed],
            **dict.fromkeys(("score", "vrank"), [0] * len(listed)),
            **{name: [0] * len(listed) for name in TAKEN_ALONG},
            "cash_taken": [cash.get(url, 0) for url in listed],
        },
        schema=URL_LIST,
    )


def server_table(listed: dict[str, int], known: dict[str, dict]) -> pa.Table:
    blank = {
        "robots": None,
        "robots_expires_at_ms": 0,
        "delay_ms": 0,
        "last_request_at_ms": 0,
        "ready_at_ms": 0,
        "address": "",
        "requests": 0,
        "mean_ms": 0,
        "failures": 0,
        "last_failure_reason": "",
        "last_failure_message": "",
        "last_failure_at_ms": 0,
        "sitemaps": [],
    }
    rows = []
    for name in dict.fromkeys(server_of(url) for url in listed):
        server = KEYS.server(name)
        rows.append(
            {"server": name, "server_key": server.key, "domain_key": server.domain_key, **blank, **known.get(name, {})}
        )
    return pa.Table.from_pylist(sorted(rows, key=lambda row: row["server_key"]), schema=CYCLE_SERVERS)


def configured(section: str, **values) -> Config:
    return replace(Config(), **{section: replace(getattr(Config(), section), **values)})
