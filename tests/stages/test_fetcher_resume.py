"""An attempt that broke off anywhere is gone on with: nothing is lost, nothing final twice, damage is told."""

import errno
import os
import shutil
import signal
import threading
import time

import pytest
import trio

from contract import names, warc
from contract.config import Fetcher
from stages.fetcher import repository
from stages.fetcher.repository import About, Repository, mark_name
from stages.fetcher.resume import Past, cut_after, read_history, read_page_file
from stages.fetcher.server_queues import Known, gather_work
from storage.errors import Damaged
from storage.publish import FORMAT, encode_json, make_folder
from tests.fetcher_lab import (
    NO_ROBOTS,
    PATIENCE_S,
    RawServer,
    fetch,
    finals_in,
    ok,
    override,
    pages_of,
    records_in,
    run_fetcher,
    start_fetcher,
)

HOSTS = {"one.test": "127.0.0.1"}


def first_file(folder):
    return next(path for path in sorted((folder / names.PAGES).iterdir()))


@pytest.fixture(scope="module", params=["zstd", "gzip"])
def some_pages(tmp_path_factory, request):
    """A folder with robots.txt, three pages and a URL that got no answer, and its server's origin."""
    folder = tmp_path_factory.mktemp("pages") / "out"
    with RawServer(
        pages_of({f"/{n}": ok(b"page %d" % n) for n in range(3)}, ok(b"User-agent: *\nDisallow: /no"))
    ) as server:
        origin = f"http://one.test:{server.port}"
        fetch(folder, [f"{origin}/no", *(f"{origin}/{n}" for n in range(3))], HOSTS, warc_compression=request.param)
    return folder, origin


def test_a_file_torn_at_any_byte_is_cut_after_the_last_whole_exchange(tmp_path, some_pages):
    folder, origin = some_pages
    whole = first_file(folder).read_bytes()
    path = tmp_path / first_file(folder).name
    *_, request, response = records_in(folder)
    assert response.url == f"{origin}/2" and response.offset + response.length == len(whole)
    complete = read_page_file(first_file(folder), 0)
    for size in range(request.offset, len(whole) + 1):
        path.write_bytes(whole[:size])
        read = read_page_file(path, 0)
        is_whole = size == len(whole)
        assert read.whole_bytes == (len(whole) if is_whole else request.offset)
        assert read.past == (complete.past if is_whole else complete.past[:-1])
    path.write_bytes(whole[: response.offset + 5])
    with pytest.raises(Damaged, match=rf"{path.name} at byte {response.offset}: expected a whole record"):
        read_page_file(path, len(whole))
    cut_after(path, request.offset)
    assert path.stat().st_size == request.offset
    cut_after(path, 0)
    assert not path.exists()


def test_a_flipped_byte_is_damage_before_the_synced_point_and_a_torn_end_behind_it(tmp_path, some_pages):
    folder, _ = some_pages
    whole = first_file(folder).read_bytes()
    path = tmp_path / first_file(folder).name
    records = records_in(folder)
    request = records[-2]
    middle = records[-1].offset + records[-1].length // 2
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 0x55]) + whole[middle + 1 :])
    assert read_page_file(path, request.offset).whole_bytes == request.offset
    with pytest.raises(Damaged):
        read_page_file(path, len(whole))
    path.write_bytes(whole[: request.offset] + whole[records[-1].offset :])  # a response without its request
    assert read_page_file(path, request.offset).whole_bytes == request.offset
    path.write_bytes(whole[:50])
    assert read_page_file(path, 0).whole_bytes == 0


def test_history_tells_what_was_done(tmp_path, some_pages):
    original, origin = some_pages
    folder = tmp_path / "out"
    shutil.copytree(original, folder)
    history = read_history(folder)
    assert history.next_number == 1 and history.attempts == 1
    assert [(past.url.removeprefix(origin), past.is_final, past.outcome, past.reason) for past in history.past] == [
        ("/robots.txt", False, "answered", ""),
        ("/no", True, "refused", "robots"),
        *((f"/{n}", True, "answered", "") for n in range(3)),
    ]
    assert history.past[0].is_robots and history.past[0].block.endswith(b"Disallow: /no")
    (folder / mark_name(0)).write_bytes(encode_json({"format": FORMAT, "files": {"00000": 10**6}}))
    with pytest.raises(Damaged, match="expected 1000000 bytes of whole exchanges"):
        read_history(folder)
    for wrong in ({"file": 1}, {"files": {"x": 1}}, {"files": {"00000": None}}, {"files": 3}):
        (folder / mark_name(0)).write_bytes(encode_json({"format": FORMAT, **wrong}))
        with pytest.raises(Damaged, match="synced-00000: expected numbers of files and their lengths"):
            read_history(folder)


def test_active_time_is_summed_over_attempts(tmp_path):
    make_folder(tmp_path / names.PAGES)
    for attempt, number, began_ms, ended_ms in [(1, 0, 1000, 5000), (1, 1, 4000, 9000), (2, 2, 60_000, 61_500)]:
        pages = Repository(tmp_path, number, About("test", "test", attempt, Fetcher()))
        pages.open_file(began_ms)
        pages.write_outcome("http://a.test/", "failed", "dns", ended_ms, is_final=True)
        trio.run(pages.write, ended_ms)
        pages.close()
    history = read_history(tmp_path)
    assert history.active_ms == 8000 + 1500 and history.attempts == 2 and history.next_number == 3


def test_work_is_gathered_from_what_was_done():
    config, now_ms = Fetcher(delay_s=2.0, server_failures_max=3), 1_000_000
    urls = [f"http://a.test/{n}" for n in range(4)] + ["http://b.test/", "http://c.test/", "https://a.test/"]

    def past(url, outcome, robots_for="", block=b""):
        return Past(url, robots_for, not robots_for, outcome, "", True, 0, block)

    rules = ok(b"User-agent: *\nCrawl-delay: 9\n")
    history = [
        past("http://elsewhere.test/robots.txt", "answered", "http://a.test", rules),
        past("http://a.test/0", "failed"),
        past("http://a.test/1", "answered"),
        past("http://a.test/2", "failed"),
        past("http://b.test/robots.txt", "failed", "http://b.test"),
        past("http://foreign.test/", "answered"),
    ]
    known = {"http://c.test": Known(failures=2, delay_ms=5000, last_request_at_ms=999_000)}
    a, c = gather_work(urls, known, history, config, now_ms, is_resumed=True)
    assert [host.name for host in (a, c)] == ["a.test", "c.test"], (
        "b.test is left alone: its robots.txt was not to be had"
    )
    assert [list(server.urls) for server in a.servers] == [["http://a.test/3"], ["https://a.test/"]]
    assert a.servers[0].failures == 1 and not a.servers[0].needs_robots and a.servers[1].needs_robots
    assert a.pause_ms == 9000 and a.ready_at_ms == now_ms + 9001
    assert c.servers[0].failures == 2 and c.ready_at_ms == now_ms + 5001
    a, b, c = gather_work(urls, known, [], config, now_ms, is_resumed=False)
    assert a.ready_at_ms <= now_ms and c.ready_at_ms == 999_000 + 5001


def test_a_resumed_attempt_asks_only_what_is_left_and_rests_first(tmp_path, some_pages):
    original, origin = some_pages
    folder = tmp_path / "out"
    shutil.copytree(original, folder)
    path = first_file(folder)
    os.truncate(path, path.stat().st_size - 3)
    with RawServer(lambda seen: ok(b"again")) as server:
        # The same URLs, whose port is now another server's: only the cut one is asked, without robots.txt.
        before_s = time.monotonic()
        urls = [f"{origin}/no", *(f"{origin}/{n}" for n in range(3))]
        assert server.port != int(origin.rpartition(":")[2])
        result = fetch(folder, urls, HOSTS, delay_s=0.2, connect_timeout_s=1.0)
        assert time.monotonic() - before_s >= 0.2
    assert result.counts["answered"] == 2 and result.counts["refused"] == 1 and result.counts["failed"] == 1
    assert result.counts["requests"] == 4 and result.counts["robots_requests"] == 1
    assert finals_in(folder)[f"{origin}/2"].get(warc.REASON) == "connection_refused"
    assert len(list((folder / names.PAGES).iterdir())) == 2


def test_cycle_time_that_is_used_up_leaves_the_rest(tmp_path, some_pages):
    original, origin = some_pages
    folder = tmp_path / "out"
    shutil.copytree(original, folder)
    result = fetch(folder, [f"{origin}/new"], HOSTS, cycle_max_s=0.001)
    assert result.counts["not_reached"] == 1 and len(list((folder / names.PAGES).iterdir())) == 1


def test_an_empty_list_leaves_a_file_that_says_so(tmp_path):
    result = fetch(tmp_path / "out", [], {})
    assert result.counts["listed"] == 0 and [record.type for record in records_in(tmp_path / "out")] == ["warcinfo"]


class Stopper:
    """Answers, but holds back every request from the n-th on until it is released."""

    def __init__(self):
        self.hold_from = 10**9
        self.release = threading.Event()
        self._seen = 0
        self._lock = threading.Lock()

    def __call__(self, seen):
        with self._lock:
            self._seen += 1
            is_held = self._seen >= self.hold_from
        if is_held:
            self.release.wait(PATIENCE_S)
        return NO_ROBOTS if seen.target == "/robots.txt" else ok(b"x" * 3000)


@pytest.mark.parametrize("sync_every_pages", [1, 1000])
@pytest.mark.sampled(1)
def test_killed_at_any_point_it_goes_on(tmp_path, sync_every_pages):
    stopper = Stopper()
    out, hosts = tmp_path / "out", tmp_path / "hosts"
    hosts.write_text("127.0.0.1 one.test\n127.0.0.2 two.test\n")
    with RawServer(stopper, "0.0.0.0") as server:
        urls = [f"http://{name}.test:{server.port}/{n}" for n in range(12) for name in ("one", "two")]
        (tmp_path / "urls.txt").write_text("\n".join(urls))
        command = [
            tmp_path / "urls.txt",
            "--out",
            out,
            *override(
                delay_s=0,
                hosts_file=hosts,
                allow_private_addresses=True,
                sync_every_pages=sync_every_pages,
                warc_file_max_bytes=2000,
            ),
        ]
        for hold_from in (2, 9, 18):
            stopper.hold_from = hold_from
            process = start_fetcher(*command)
            server.wait_for(hold_from)  # a host is held, or both
            process.kill()
            process.communicate(timeout=PATIENCE_S)
            assert not (out / names.MANIFEST).exists()
        stopper.hold_from = 10**9
        stopper.release.set()
        done = run_fetcher(*command)
    assert done.returncode == 0, done.stderr
    assert set(finals_in(out)) == set(urls)
    attempts = {
        record.block.split(b"attempt: ")[1].split(b"\r")[0] for record in records_in(out) if record.type == "warcinfo"
    }
    assert len(attempts) >= 3 and not list(out.glob(".aside*")) and (out / names.MANIFEST).exists()
    assert len(server.seen) <= len(urls) + 2 * 4 + 2 * 3, "robots.txt and what was in flight at each kill, and no more"


def test_a_signal_ends_in_order_and_a_second_one_at_once(tmp_path):
    stopper = Stopper()
    out, hosts = tmp_path / "out", tmp_path / "hosts"
    hosts.write_text("127.0.0.1 one.test\n")
    with RawServer(stopper) as server:
        (tmp_path / "urls.txt").write_text("".join(f"http://one.test:{server.port}/{n}\n" for n in range(9)))
        command = [
            tmp_path / "urls.txt",
            "--out",
            out,
            *override(delay_s=0, hosts_file=hosts, allow_private_addresses=True),
        ]
        for number in (signal.SIGTERM, signal.SIGINT):
            stopper.hold_from, stopper.release = len(server.seen) + 3, threading.Event()
            process = start_fetcher(*command)
            server.wait_for(stopper.hold_from)
            process.send_signal(number)
            while "stopping" not in (line := process.stderr.readline()):
                assert line
            if number == signal.SIGTERM:
                stopper.release.set()  # what is in flight may end
            else:
                process.send_signal(number)
            out_text, err_text = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 75 and not (out / names.MANIFEST).exists()
            if number == signal.SIGTERM:
                assert "interrupted: run it again to resume" in err_text
                assert out_text.splitlines()[-1].startswith("200 "), "the one in flight is kept"
        stopper.release.set()


def test_a_full_disk_ends_the_attempt_and_does_not_poison_the_next(tmp_path, monkeypatch):
    write, room = os.write, 4000

    def write_to_full_disk(descriptor, data):
        nonlocal room
        taken = min(len(data), room)
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room -= taken
        return write(descriptor, data[:taken])

    folder = tmp_path / "out"
    with RawServer(pages_of({f"/{n}": ok(os.urandom(900)) for n in range(8)})) as server:
        urls = [f"http://one.test:{server.port}/{n}" for n in range(8)]
        monkeypatch.setattr(repository.os, "write", write_to_full_disk)
        monkeypatch.setattr(repository.os, "ftruncate", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "no")))
        with pytest.raises(OSError, match="No space left on device") as caught:
            fetch(folder, urls, HOSTS)
        assert caught.value.errno == errno.ENOSPC and caught.value.filename.endswith("00000.warc.zst")
        monkeypatch.undo()
        assert first_file(folder).stat().st_size == 4000
        result = fetch(folder, urls, HOSTS)
    assert result.counts["answered"] == 8 and set(finals_in(folder)) == set(urls)


def test_files_rotate_and_are_synced_in_order(tmp_path):
    folder = tmp_path / "out"
    with RawServer(pages_of({f"/{n}": ok(os.urandom(500)) for n in range(10)})) as server:
        urls = [f"http://one.test:{server.port}/{n}" for n in range(10)]
        fetch(folder, urls, HOSTS, warc_file_max_bytes=2500, sync_every_pages=2)
    paths = sorted((folder / names.PAGES).iterdir())
    assert [path.name for path in paths] == [f"{n:05d}.warc.zst" for n in range(len(paths))] and len(paths) > 3
    for path in paths:
        first, *rest = warc.PageReader(path).records()
        assert first.type == "warcinfo" and first.get("WARC-Filename") == path.name and rest
    assert set(finals_in(folder)) == set(urls) and not list(folder.glob(".aside*"))
