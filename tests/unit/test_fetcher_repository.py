"""What is written of an exchange: revisits, attempts, large bodies, several writers in one folder."""

import json
import os
import re
import tracemalloc
from pathlib import Path

import pytest
import trio

from contract import names, warc
from contract.config import Fetcher
from contract.url import server_of
from contract.warc import parse_response
from stages.fetcher.bodies import Bodies
from stages.fetcher.exchange import Exchange, Limits, Origin
from stages.fetcher.repository import About, Repository, mark_name
from stages.fetcher.resume import list_page_files, read_history, read_marks
from stages.fetcher.revisit import Revisit
from storage.errors import Damaged
from storage.publish import FORMAT, encode_json

NOW_MS = 1_800_000_000_000
URL = "http://one.test/page"
SERVER = "http://one.test"


def exchanged(
    url: str = URL,
    body: bytes = b"hello",
    status: int = 200,
    *headers: str,
    at_ms: int = NOW_MS,
    trouble: str = "",
    robots_for: str = "",
    bodies: Bodies | None = None,
    conditions: tuple[str, ...] = ("If-None-Match: x",),
) -> Exchange:
    """An exchange that has ended."""
    origin = Origin(server_of(url), "192.0.2.1", "Coletor/1")
    exchange = Exchange(
        origin,
        url,
        Limits(1 << 16, 1 << 30),
        bodies or Bodies(Path(), 1 << 30),
        robots_for=robots_for,
        conditions=conditions,
    )
    for line in (f"HTTP/1.1 {status} Word", "Content-Type: text/html", *headers, ""):
        exchange.take_header(line.encode() + b"\r\n")
    exchange.take_body(body)
    exchange.started_at_ms = at_ms
    exchange.end(trouble)
    return exchange


class WritingRepository(Repository):
    """One that writes at once what it is given."""

    def write_exchange(
        self, exchange: Exchange, *, is_final: bool | None = None, earlier: Revisit | None = None
    ) -> int:
        size_bytes = super().write_exchange(
            exchange, is_final=not exchange.is_robots if is_final is None else is_final, earlier=earlier
        )
        trio.run(self.write, NOW_MS)
        return size_bytes

    def write_outcome(self, *arguments, **options) -> None:
        super().write_outcome(*arguments, **options)
        trio.run(self.write, NOW_MS)


def unanswered(trouble: str, times_ms: dict[str, int]) -> Exchange:
    exchange = Exchange(
        Origin(SERVER, "192.0.2.1", "Coletor/1"), URL, Limits(1 << 16, 1 << 30), Bodies(Path(), 1 << 30)
    )
    exchange.times_ms = times_ms
    exchange.end(trouble)
    return exchange


def open_repository(
    folder, first_number: int = 0, step: int = 1, attempt: int = 1, dictionary: bytes | None = None, **settings
) -> Repository:
    return WritingRepository(
        folder, first_number, About("test", "test", attempt, Fetcher(**settings)), step, dictionary
    )


def records_of(folder) -> list[warc.Record]:
    return [record for _, path in list_page_files(folder / names.PAGES) for record in warc.PageReader(path).records()]


def write_one(folder, exchange: Exchange, **options) -> warc.Record:
    repository = open_repository(folder)
    repository.write_exchange(exchange, **options)
    repository.close()
    info, *_, last = records_of(folder)
    assert info.type == "warcinfo" and len({record.get("WARC-Record-ID") for record in records_of(folder)}) == len(
        records_of(folder)
    )
    return last


def test_ids_are_uuids_of_version_4():
    pattern = r"<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}>"
    ids = {warc.new_id() for _ in range(1000)}
    assert len(ids) == 1000 and all(re.fullmatch(pattern, one) for one in ids)


def test_the_same_body_again_is_a_revisit_of_the_earlier_record(tmp_path):
    earlier = Revisit("", "", warc.sha1_digest(b"hello"), NOW_MS - 123)
    record = write_one(tmp_path, exchanged(URL, b"hello", 200, "ETag: x"), earlier=earlier)
    assert record.type == "revisit" and record.get("WARC-Profile") == warc.IDENTICAL_PAYLOAD
    assert record.block == b"HTTP/1.1 200 Word\r\nContent-Type: text/html\r\nETag: x\r\n\r\n"
    assert record.get("WARC-Payload-Digest") == earlier.payload_digest and record.get("WARC-Truncated") == "length"
    assert record.get("WARC-Refers-To-Target-URI") == URL and record.get("WARC-Refers-To-Date") == warc.format_date(
        NOW_MS - 123
    )
    assert record.get(warc.FINAL) == "yes" and record.get(warc.OUTCOME) == "answered"
    (past,) = read_history(tmp_path).past
    assert past.is_final and past.url == URL and past.bytes == len(record.block)


def test_not_modified_is_a_revisit_with_the_earlier_digest(tmp_path):
    record = write_one(
        tmp_path, exchanged(URL, b"", 304, "ETag: x"), earlier=Revisit("", "", "sha1:" + "A" * 32, NOW_MS - 5)
    )
    assert (
        record.type == "revisit"
        and record.get("WARC-Profile") == warc.NOT_MODIFIED
        and not record.get("WARC-Truncated")
    )
    assert record.get("WARC-Payload-Digest") == "sha1:" + "A" * 32 and record.get(
        "WARC-Refers-To-Date"
    ) == warc.format_date(NOW_MS - 5)
    assert parse_response(record.block).status == 304


def test_a_revisit_of_what_is_hardly_known_claims_no_more(tmp_path):
    record = write_one(tmp_path, exchanged(URL, b"", 304), earlier=Revisit())
    assert record.type == "revisit" and not record.get("WARC-Payload-Digest") and not record.get("WARC-Refers-To-Date")


@pytest.mark.parametrize(
    "exchange, options",
    [
        (exchanged(body=b"new"), {}),
        (exchanged(body=b"same"), {"earlier": None}),
        (exchanged(body=b"same", status=503), {}),
        (exchanged(URL, b"same", 301, "Location: /moved"), {}),
        (exchanged(body=b"same", trouble="timeout_total"), {}),
        (exchanged(status=304), {"earlier": None}),
        (exchanged(status=304, body=b"", conditions=()), {}),
        (exchanged(body=b"", status=404), {"earlier": Revisit("", "", warc.sha1_digest(b""), 1)}),
    ],
)
def test_what_is_no_revisit(tmp_path, exchange, options):
    record = write_one(tmp_path, exchange, **{"earlier": Revisit("", "", warc.sha1_digest(b"same"), 1), **options})
    assert record.type == "response" and record.block.startswith(exchange.response_head())
    assert record.get("WARC-Payload-Digest") == warc.sha1_digest(record.block[len(exchange.response_head()) :])


def test_an_attempt_that_is_repeated_ends_no_url(tmp_path):
    repository = open_repository(tmp_path)
    repository.write_exchange(exchanged(status=503), is_final=False)
    refused = unanswered("connection_refused", {"dns": 7, "total": 9})
    repository.write_exchange(refused, is_final=False)
    repository.write_outcome(URL, "failed", "dns", NOW_MS, is_final=False)
    repository.write_exchange(exchanged())
    repository.close()
    assert [(past.is_final, past.outcome, past.reason) for past in read_history(tmp_path).past] == [
        (False, "failed", "http_5xx"),
        (False, "failed", "connection_refused"),
        (False, "failed", "dns"),
        (True, "answered", ""),
    ]
    assert [past.is_asked for past in read_history(tmp_path).past] == [True, True, False, True]
    assert records_of(tmp_path)[3].get(warc.TIMES) == "waited=0 dns=7 connect=0 first_byte=0 total=9"


def test_robots_names_the_server_that_the_rules_are_for(tmp_path):
    record = write_one(tmp_path, exchanged("https://other.test/robots.txt", robots_for=SERVER))
    (past,) = read_history(tmp_path).past
    assert (
        record.get(warc.ROBOTS_FOR) == past.robots_for == SERVER
        and record.url == past.url == "https://other.test/robots.txt"
    )
    assert past.is_robots and not past.is_final and past.block == record.block


@pytest.mark.parametrize("compression", ["zstd", "gzip"])
@pytest.mark.sampled(1)
def test_a_large_body_is_compressed_in_pieces(tmp_path, compression):
    size = 48 << 20
    exchange = exchanged(body=b"begin", bodies=Bodies(tmp_path, 0))
    for _ in range(47):
        exchange.take_body(bytes(1 << 20))
    exchange.take_body(bytes(size - exchange.body.size_bytes))
    repository = open_repository(tmp_path, warc_compression=compression)
    tracemalloc.start()
    repository.write_exchange(exchange)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    repository.close()
    assert peak_bytes < 8 << 20
    *_, record = records_of(tmp_path)
    body = parse_response(record.block).body
    assert (
        len(body) == size
        and body.startswith(b"begin\0")
        and record.get("WARC-Payload-Digest") == warc.sha1_digest(body)
    )
    assert record.get("WARC-Block-Digest") == warc.sha1_digest(record.block)


def two_writers(folder) -> list[Repository]:
    """Each has written two files, and synced all but the last exchange of its second one."""
    writers = [open_repository(folder, 3 + number, 2, warc_file_max_bytes=2000) for number in range(2)]
    for number, writer in enumerate(writers):
        for page in range(2):
            writer.write_exchange(exchanged(f"{SERVER}/{number}/{page}", os.urandom(2500)))
        trio.run(writer.sync, NOW_MS)
        writer._config = Fetcher()  # from here on nothing is full
        writer.write_exchange(exchanged(f"{SERVER}/{number}/2", b"late"))
        writer.write_exchange(exchanged(f"{SERVER}/{number}/3", b"later"))
        writer.close()
    return writers


def test_several_writers_have_their_own_numbers_and_marks(tmp_path):
    two_writers(tmp_path)
    assert [number for number, _ in list_page_files(tmp_path / names.PAGES)] == [3, 4, 5, 6, 7, 8]
    for first in (3, 4):
        mark = json.loads((tmp_path / mark_name(first)).read_bytes())
        assert sorted(mark["files"]) == [f"{number:05d}" for number in (first, first + 2)]
    history = read_history(tmp_path)
    assert len(history.past) == 8 and history.next_number == 9 and history.attempts == 1


def test_the_marks_of_all_writers_count_on_resume(tmp_path):
    two_writers(tmp_path)
    files = dict(list_page_files(tmp_path / names.PAGES))
    for number in (7, 8):  # torn behind what is synced: cut; the page before stays
        os.truncate(files[number], files[number].stat().st_size - 3)
    sizes = {number: path.stat().st_size for number, path in files.items()}
    read_history(tmp_path, cut=False)
    assert sizes == {number: path.stat().st_size for number, path in files.items()}
    history = read_history(tmp_path)
    assert sorted(past.url[-3:] for past in history.past) == ["0/0", "0/1", "0/2", "1/0", "1/1", "1/2"]
    assert all(files[number].stat().st_size < sizes[number] for number in (7, 8))

    whole = files[6].read_bytes()
    files[6].write_bytes(whole[:-3])
    with pytest.raises(Damaged, match="00006.warc.zst"):
        read_history(tmp_path)
    assert files[6].stat().st_size == len(whole) - 3, "what is damaged is not cut"
    files[6].unlink()
    assert read_history(tmp_path).next_number == 9 and len(read_history(tmp_path).past) == 5


def test_a_number_that_a_mark_names_is_not_given_out_again(tmp_path):
    (tmp_path / names.PAGES).mkdir()
    (tmp_path / mark_name(2)).write_bytes(encode_json({"format": FORMAT, "files": {"00002": 10, "00004": 20}}))
    assert read_marks(tmp_path) == {2: 10, 4: 20} and read_history(tmp_path).next_number == 5


def test_a_worker_reads_only_what_was_there_before_its_attempt(tmp_path):
    two_writers(tmp_path)
    newest = max(list_page_files(tmp_path / names.PAGES))[1]
    newest.write_bytes(b"being written")
    before = read_history(tmp_path, below=5, cut=False)
    assert [past.url[-3:] for past in before.past] == ["0/0", "1/0"] and newest.read_bytes() == b"being written"


def test_marks_of_earlier_attempts_are_left_alone(tmp_path):
    two_writers(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.glob(".aside*")}
    again = open_repository(tmp_path, read_history(tmp_path).next_number, attempt=2)
    again.write_exchange(exchanged(f"{SERVER}/again"))
    trio.run(again.sync, NOW_MS)
    again.close()
    after = {path.name: path.read_bytes() for path in tmp_path.glob(".aside*")}
    assert before.items() < after.items() and set(after) - set(before) == {mark_name(9)}
    assert read_history(tmp_path).attempts == 2
