"""Workers that are killed from outside: nothing changes, and a page is blamed only if it is the cause."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from contract.config import Config
from contract.errors import TryLater
from stages.extractor import chunks, workers
from stages.extractor.chunks import cut_file
from stages.extractor.documents import html
from stages.extractor.reading import Reading
from stages.extractor.workers import Workers
from tests.stages.test_workers import KEYS, SMALL, plain_file, traps, with_workers, write_files

__all__ = ["traps"]


def killed_pool(path: Path, config: Config, kill_at: set[int], monkeypatch) -> tuple[list, list[str]]:
    """What a pool reads whose workers are killed from outside, in the middle of these documents (counted over all
    workers).
    """
    counter = np.memmap(path.parent / "counter", np.int64, "w+", shape=1)
    read = html.read

    def killed(content, *rest):
        counter[0] += 1
        if int(counter[0]) in kill_at:
            os.kill(os.getpid(), signal.SIGKILL)  # the same as by somebody else
        return read(content, *rest)

    monkeypatch.setattr(html, "read", killed)
    told = []
    pool = Workers(config.extractor, lambda: Reading(config, KEYS, None, 2027), told.append)
    try:
        return [comparable(result) for _, result in pool.read(cut_file(path, "a"))], told
    finally:
        pool.close()
        monkeypatch.setattr(html, "read", read)


def comparable(result) -> tuple:
    return result.findings, result.links.to_key.tolist(), result.links.kinds.tolist(), result.skipped, result.damage


def test_a_worker_that_is_killed_from_outside_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_RECORDS", 10)
    write_files(tmp_path, a__zst=plain_file(0, 30).data())
    path = tmp_path / "pages" / "a.warc.zst"
    one = with_workers(SMALL, 1)
    whole, told = killed_pool(path, one, set(), monkeypatch)
    assert told == [] and sum(len(findings) for findings, *_ in whole) == 30
    for kill_at in ({1}, {5, 17}, {3, 7}, {30}):  # 7 is another page of the same chunk, on its second reading
        found, told = killed_pool(path, one, kill_at, monkeypatch)
        assert (
            found == whole
            and len(told) == len(kill_at)
            and all("killed; it is read once more" in line for line in told)
        )


def test_who_is_killed_twice_over_the_same_page_has_met_poison(tmp_path, monkeypatch):
    write_files(tmp_path, a__zst=plain_file(0, 5).data())
    found, told = killed_pool(tmp_path / "pages" / "a.warc.zst", with_workers(SMALL, 1), {1, 2, 3, 4}, monkeypatch)
    assert [page.row.trouble for findings, *_ in found for _, page in findings] == ["died", "died", "", "", ""] and len(
        told
    ) == 4


def test_all_workers_are_killed_at_once(tmp_path):
    """After the first result, whatever they do then, and after the last: what they had goes to others."""
    write_files(tmp_path, a__zst=plain_file(0, 300).data())
    pool = Workers(with_workers(SMALL, 3).extractor, lambda: Reading(SMALL, KEYS, None, 2027), print)
    found = []
    for _, result in pool.read(cut_file(tmp_path / "pages" / "a.warc.zst", "a")):
        found.append(result)
        for worker in pool._workers if len(found) in (1, 5) else ():
            os.kill(worker.process, signal.SIGKILL)
    assert len(found) == 5 and sum(len(result.findings) for result in found) == 300
    pool.close()


def test_a_worker_that_is_killed_twice_outside_of_a_document(tmp_path, monkeypatch):
    write_files(tmp_path, a__zst=plain_file(0, 3).data())
    monkeypatch.setattr(workers.pickle, "dumps", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    pool = Workers(with_workers(SMALL, 1).extractor, lambda: Reading(SMALL, KEYS, None, 2027), print)
    with pytest.raises(TryLater, match="killed twice"):
        list(pool.read(cut_file(tmp_path / "pages" / "a.warc.zst", "a")))
    pool.close()


def test_a_worker_that_dies_in_the_middle_of_a_result(tmp_path, monkeypatch):
    write_files(tmp_path, a__zst=plain_file(0, 3).data())
    mark = tmp_path / "done once"

    def send_half(self, data):
        if mark.exists():
            return whole(self, data)
        mark.touch()
        os.write(self.fileno(), len(data).to_bytes(4, "big") + data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGTERM)

    whole = workers.Connection.send_bytes
    monkeypatch.setattr(workers.Connection, "send_bytes", send_half)
    pool = Workers(with_workers(SMALL, 1).extractor, lambda: Reading(SMALL, KEYS, None, 2027), print)
    results = [result for _, result in pool.read(cut_file(tmp_path / "pages" / "a.warc.zst", "a"))]
    pool.close()
    assert mark.exists() and sum(len(result.findings) for result in results) == 3
