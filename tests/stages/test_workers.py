"""Worker processes.

Pages that kill, hang or fill them are rows; the same bytes from any number of them; killed ones are replaced.
"""

import ctypes
import faulthandler
import gc
import os
import re
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from contract import names, warc
from contract.config import Config
from contract.errors import ColetorError, TryLater
from contract.url import Keys
from stages.extractor import chunks, reading, targets, workers
from stages.extractor.__main__ import extract_pages
from stages.extractor.chunks import cut_file
from stages.extractor.documents import html
from stages.extractor.reading import Reading
from stages.extractor.workers import Workers
from storage.frames import Gzip, Zstd, skippable, train_dictionary
from tests.extractor_lab import Tables, WarcFile, configured, http, page_file
from tests.sampling import sampling

SITE = "http://example.com"
MB = 1 << 20
KEYS = Keys(0)


def crash(kind: int) -> None:
    faulthandler.disable()  # of pytest
    os.kill(os.getpid(), kind)


def grow() -> None:
    pieces = []
    while True:  # of zeros that are never looked at: they cost no processor time, of which the page has a bound too
        pieces.append(bytes(16 * MB))


def hang() -> None:
    while True:
        pass


def hang_in_c() -> None:
    re.fullmatch(r"(a+)+", "a" * 60 + "b")


def fill_until_abort() -> None:
    """As a parser in C does that finds no memory and cannot say so."""
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    while library.malloc(ctypes.c_size_t(64 * MB)):
        pass
    crash(signal.SIGABRT)


TRAPS = {  # a word in the page, what it does to its worker, and what the page's row then says
    b"segv": (lambda: crash(signal.SIGSEGV), "died"),
    b"exit": (lambda: os._exit(0), "died"),
    b"quit": (lambda: sys.exit(3), "died"),
    b"abort": (fill_until_abort, "died"),
    b"loop": (hang, "timeout"),
    b"regex": (hang_in_c, "timeout"),
    b"grow": (grow, "memory"),
    b"array": (lambda: np.ones(1 << 40), "memory"),
    b"raise": (lambda: 1 // 0, "unreadable"),
}
SMALL = configured("extractor", page_max_s=0.5, page_memory_max_bytes=64 * MB)
ROOT = Path(__file__).resolve().parents[2]
HUGE = 320 * MB  # of a record


@pytest.fixture(autouse=True)
def traps(monkeypatch):
    """Workers are forked, so what stands here in the place of the reader of HTML stands there too."""
    read = html.read

    def spring(content, *rest):
        if found := re.match(rb"<trap (\w+)>", content):
            TRAPS[found[1]][0]()
        return read(content, *rest)

    monkeypatch.setattr(html, "read", spring)


@pytest.fixture
def children():
    """What a test has started and lives on when it has ended is a fault.

    Earlier tests of this process may have left the resource tracker of multiprocessing, which lives as long as we do.
    """
    before = set(psutil.Process().children())
    yield
    assert set(psutil.Process().children()) <= before


pytestmark = pytest.mark.usefixtures("children")


def with_workers(config: Config, number: int) -> Config:
    return replace(config, extractor=replace(config.extractor, workers=number))


def extract(folder: Path, config: Config, number: int) -> Tables:
    extract_pages(folder / "pages", folder / f"out {number}", with_workers(config, number))
    return Tables(folder / f"out {number}")


def extract_by_command(folder: Path, number: int) -> Tables:
    """In a process of its own, with the least memory that the configuration allows."""
    pages, out = folder / "pages", folder / f"out {number}"
    settings = (f"workers={number}", f"page_memory_max_bytes={256 * MB}")
    options = [word for setting in settings for word in ("--set", f"extractor.{setting}")]
    subprocess.run([ROOT / "bin" / "extractor", pages, "--out", out, *options], check=True, capture_output=True)
    return Tables(out)


def assert_same(*found: Tables) -> Tables:
    """The same tables, to the byte, and the same counts."""
    first, *others = found
    for other in others:
        assert {**other.files(), names.MANIFEST: b""} == {
            **first.files(),
            names.MANIFEST: b"",
        } and other.counts == first.counts
    return first


def write_files(folder: Path, **files: bytes) -> None:
    (folder / "pages").mkdir()
    for name, data in files.items():
        (folder / "pages" / name.replace("__", ".warc.")).write_bytes(data)


def plain_page(number: int) -> str:
    return (
        f"<title>{number}</title><a href=/{number + 1}>next</a><a href=/common>c</a><a "
        f"href=http://other{number % 7}.org/>o</a>"
    )


def plain_file(start: int, count: int) -> WarcFile:
    return page_file({f"{SITE}/{number}": plain_page(number) for number in range(start, start + count)})


@pytest.mark.parametrize("chunk_records", [3, 128])
@pytest.mark.sampled(1)
def test_the_same_bytes_from_any_number_of_workers(tmp_path, monkeypatch, chunk_records):
    """Files of every form.

    Attempts before the answer in another file, revisits, robots, URLs twice, URLs that are none.
    """
    monkeypatch.setattr(chunks, "CHUNK_RECORDS", chunk_records)
    packer = Zstd(3, train_dictionary([plain_page(number).encode() * 3 for number in range(500)], 4096))
    first = WarcFile(packer).robots(SITE, b"User-agent: *\nCrawl-delay: 3\n")
    first.answer(SITE + "/late", http(b"", 503), "failed", "http_5xx", final=False)
    for number in range(20):
        first.answer(f"{SITE}/d{number}", http(plain_page(number).encode()))
    second = (
        WarcFile(Gzip()).answer(SITE + "/late", http(b"<a href=/found>")).answer(SITE + "/d3", http(b"<a href=/lost>"))
    )
    second.answer("mailto:x@y", http(b"<a href=/lost>")).no_answer(SITE + "/gone", "failed", "dns").no_answer(
        SITE + "/no", "refused", "robots"
    )
    second.add("revisit", SITE + "/old", http(b"", 304), Coletor_Final="yes", Coletor_Outcome="answered")
    second.add("response", "http://plain.org/a b", http(b"<a href=c>")).robots("http://plain.org", b"Disallow: /")
    third = plain_file(100, 70)
    for place in range(0, len(third.members), 9):
        third.members[place] = skippable(b"somebody's note") + third.members[place]
    write_files(
        tmp_path,
        a__zst=packer.opening + first.data(),
        b__gz=second.data(),
        c__zst=third.data(),
        d__zst=plain_file(0, 10).data()[:-9],
    )
    tables = assert_same(
        *(
            extract(tmp_path, configured("extractor", keep_links="all", near_duplicates=True), number)
            for number in (1, 2, 5)
        )
    )
    collected = tables.by_url(names.COLLECTED)
    assert collected[SITE + "/late"]["attempts"] == 2 and collected[SITE + "/old"]["status"] == 304
    assert {"http://plain.org/a%20b", SITE + "/gone", SITE + "/no", SITE + "/169", SITE + "/8"} < set(collected)
    assert SITE + "/9" not in collected and tables.counts["damaged_files"] == 1
    assert SITE + "/found" in tables.by_url(names.EXTRACTED) and SITE + "/lost" not in tables.by_url(names.EXTRACTED)
    assert tables.counts["repeated_finals"] == 1 and tables.counts["skipped_records"] == 1
    assert tables.servers()[SITE]["delay_ms"] == 3000


def test_pages_that_end_their_workers_are_rows(tmp_path, capfd):
    """Each kind several times in one chunk, among pages that must not suffer."""
    pages = {}
    for place, word in enumerate(TRAPS):
        pages |= {
            f"{SITE}/{2 * place}": plain_page(2 * place),
            f"{SITE}/{word.decode()}": b"<trap " + word + b"><title>t</title><a href=/lost>",
        }
    pages |= {f"{SITE}/more{number}": b"<trap exit><a href=/lost>" for number in range(6)} | {
        SITE + "/last": "<a href=/end>"
    }
    write_files(tmp_path, a__zst=page_file(pages).data(), b__zst=plain_file(50, 5).data())
    numbers = (1, 2, 5) if sampling.is_complete else (1, 5)
    tables = assert_same(*(extract(tmp_path, SMALL, number) for number in numbers))
    metadata = tables.by_url(names.METADATA)
    assert len(metadata) == len(pages) + 5
    for word, (_, trouble) in TRAPS.items():
        row = metadata[f"{SITE}/{word.decode()}"]
        assert (row["trouble"], row["parsed"], row["reader"], row["title"], row["links_inside"]) == (
            trouble,
            False,
            "",
            "",
            0,
        ), word
        assert row["type"] == "text/html" and row["content_digest"] != bytes(16) and row["bytes"] > 20
    assert {row["trouble"] for url, row in metadata.items() if "/more" in url} == {"died"}
    assert tables.counts["pages_in_trouble"] == len(TRAPS) + 6 and tables.counts["pages_parsed"] == len(TRAPS) + 1 + 5
    extracted = tables.by_url(names.EXTRACTED)
    assert (
        SITE + "/lost" not in extracted
        and SITE + "/end" in extracted
        and extracted[SITE + "/common"]["links_in"] == len(TRAPS) + 5
    )
    told = capfd.readouterr().err
    assert "Traceback" not in told
    assert re.search(
        r"a\.warc\.zst: the record at offset \d+ ended its worker \(timeout, exit code -27\); its document is not read",
        told,
    )


def test_traps_behind_frames_of_others(tmp_path):
    """The place of a record is its own, not that of a note before it."""
    file = page_file({SITE + "/a": "<trap exit>", SITE + "/b": "<a href=/c>", SITE + "/d": "<trap segv>"})
    file.members = [skippable(b"note") + member for member in file.members]
    write_files(tmp_path, a__zst=file.data())
    tables = assert_same(*(extract(tmp_path, SMALL, number) for number in (1, 2)))
    assert {url: row["trouble"] for url, row in tables.by_url(names.METADATA).items()} == {
        SITE + "/a": "died",
        SITE + "/b": "",
        SITE + "/d": "died",
    }


def test_a_record_that_is_larger_than_memory(tmp_path):
    """Only its head is read: the row is there, without links, and what comes behind it is read as ever.

    By the command: a worker may also use what its parent has freed, which is much in a process that runs tests.
    """
    huge = http(b"", 200, "text/html; charset=utf-8", "ETag: x") + bytes(HUGE)
    file = (
        page_file({SITE + "/before": "<a href=/1>"})
        .answer(SITE + "/huge", huge)
        .answer(SITE + "/after", http(b"<a href=/2>"))
    )
    packed = WarcFile(Gzip(1)).answer(SITE + "/packed", huge)
    lying = warc.write_head("response", warc.write_headers([("WARC-Target-URI", SITE + "/lie")]), "", 10**30) + huge
    write_files(tmp_path, a__zst=file.data(), b__gz=packed.data(), c__zst=Zstd().compress(lying))
    tables = assert_same(*(extract_by_command(tmp_path, number) for number in (1, 2)))
    metadata = tables.by_url(names.METADATA)
    for url in (SITE + "/huge", SITE + "/packed"):
        row = metadata[url]
        assert (row["trouble"], row["bytes"], row["etag"], row["type"]) == ("memory", HUGE, "x", "text/html")
        assert row["content_digest"] == bytes(16) and not row["duplicate"] and row["links_inside"] == 0
    assert metadata[SITE + "/lie"]["trouble"] == "memory" and metadata[SITE + "/lie"]["bytes"] < 2 << 30
    assert metadata[SITE + "/after"]["parsed"] and SITE + "/2" in tables.by_url(names.EXTRACTED)


def test_a_record_that_ends_its_worker_before_its_document_is_read(tmp_path, monkeypatch, capfd):
    decode, victim = workers.Reading.take, SITE + "/2"

    def take(self, record, file, links, poison, is_cut):
        if record.url == victim and record.type == "response" and not is_cut:
            crash(signal.SIGSEGV)
        return decode(self, record, file, links, poison, is_cut)

    monkeypatch.setattr(Reading, "take", take)
    write_files(tmp_path, a__zst=plain_file(0, 5).data())
    tables = assert_same(*(extract(tmp_path, SMALL, number) for number in (1, 2)))
    rows = tables.by_url(names.METADATA)
    assert [rows[f"{SITE}/{number}"]["trouble"] for number in range(5)] == ["", "", "died", "", ""]
    assert "nothing but its head is read" in capfd.readouterr().err


def test_a_worker_that_cannot_but_die_is_an_error(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(Reading, "take", lambda *_: crash(signal.SIGSEGV))
    write_files(tmp_path, a__zst=plain_file(0, 5).data())
    with pytest.raises(
        ColetorError, match=r"a\.warc\.zst: the record at offset 0 ended its worker \(died, exit code -11\)"
    ):
        extract(tmp_path, SMALL, 2)
    assert "Traceback" not in capfd.readouterr().err and not (tmp_path / "out 2" / names.MANIFEST).exists()


def test_a_worker_that_dies_before_it_reads_anything_is_an_error(tmp_path, capfd):
    write_files(tmp_path, a__zst=plain_file(0, 5).data())
    pool = Workers(with_workers(SMALL, 2).extractor, lambda: 1 // 0, print)
    with pytest.raises(ColetorError, match="no document"):
        list(pool.read(cut_file(tmp_path / "pages" / "a.warc.zst", "a")))
    pool.close()
    assert "ZeroDivisionError" in capfd.readouterr().out


def test_a_worker_ends_nothing_that_came_with_the_fork(tmp_path):
    """Garbage that holds threads or connections, as of databases, would fall over what is not there."""

    class Held:
        def __init__(self):
            self.itself, self.holder = self, os.getpid()

        def __del__(self):
            if os.getpid() != self.holder:
                os._exit(9)

    def make() -> Reading:
        gc.collect()
        return Reading(SMALL, KEYS, None, 2027)

    write_files(tmp_path, a__zst=plain_file(0, 3).data())
    gc.disable()
    try:
        Held()
        pool = Workers(with_workers(SMALL, 1).extractor, make, print)
        ((_, result),) = pool.read(cut_file(tmp_path / "pages" / "a.warc.zst", "a"))
        pool.close()
    finally:
        gc.enable()
    assert len(result.findings) == 3


def test_a_file_that_went_while_it_was_read(tmp_path):
    write_files(tmp_path, a__zst=plain_file(0, 3).data())
    cut = list(cut_file(tmp_path / "pages" / "a.warc.zst", "a"))
    (tmp_path / "pages" / "a.warc.zst").unlink()
    pool = Workers(with_workers(SMALL, 1).extractor, lambda: Reading(SMALL, KEYS, None, 2027), print)
    ((_, result),) = pool.read(cut)
    pool.close()
    assert "found none" in result.damage[1]


def test_a_machine_that_opens_no_more_files(tmp_path):
    write_files(tmp_path, a__zst=plain_file(0, 3).data())
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 12, before[1]))
    try:
        with pytest.raises(TryLater, match="cannot start worker .*Too many open files.* workers lower"):
            extract(tmp_path, SMALL, 64)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_memory_does_not_grow_with_the_pages(tmp_path, monkeypatch):
    """What a worker remembers is full after the first part.

    Two more of as many pages, all different, add next to nothing.
    """
    for module, name in ((reading, "URLS_SENT_MAX"), (targets, "URLS_REMEMBERED"), (targets, "TEXTS_REMEMBERED")):
        monkeypatch.setattr(module, name, 2_000)
    files = []
    for part in range(3):
        bodies = {
            f"http://s{page}.example/{part}": "".join(f"<a href=/{part}/{page}/{link}>x</a>" for link in range(100))
            for page in range(300)
        }
        files.append(tmp_path / f"{part}")
        files[-1].write_bytes(page_file(bodies).data())
    pool = Workers(with_workers(Config(), 1).extractor, lambda: Reading(Config(), KEYS, None, 2027), print)
    resident = {}
    for chunk, _ in pool.read(chunk for file in files for chunk in cut_file(file, file.name)):
        resident[chunk.name] = psutil.Process(pool._workers[0].process).memory_info().rss
    pool.close()
    assert resident["2"] - resident["0"] < 6 * MB, resident  # 60,000 links and their URLs would be 40 MB
