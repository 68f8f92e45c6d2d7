"""bin/export: a killed export is continued, what is missing is named, and nothing unfinished is left."""

import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from contract import names
from contract.errors import EX_DATAERR, EX_USAGE, BadInput, Locked, Usage
from examine.export import kinds
from examine.export.folder import LOCK, NOTE, REQUEST, ExportFolder
from storage.publish import ASIDE, is_published, read_manifest
from tests.export_lab import GOLDEN, SOME_CYCLE, export, files_of, run_export
from tests.stages.test_warc_tools import run_tool


@pytest.fixture
def crawl(tmp_path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "crawl"))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["warc", "wacz", "urls"])
def test_an_export_that_stopped_anywhere_is_continued_with_the_same_result(tmp_path, monkeypatch, kind):
    export(kind, tmp_path / "whole")
    steps = 0

    def stop(number: int):
        """Every rename, note and removal counts as a step; at this one the process would have died."""

        def step(event, _):
            nonlocal steps
            if is_armed and event in ("os.rename", "os.link", "os.remove", "open"):
                steps += 1
                if steps == number:
                    raise KeyboardInterrupt

        return step

    is_armed, hooks = False, []
    sys.addaudithook(lambda event, arguments: hooks[0](event, arguments) if hooks else None)
    finished = number = 0
    while not finished:
        number += 7
        out, steps = tmp_path / f"out-{number}", 0
        hooks[:] = [stop(number)]
        is_armed = True
        try:
            export(kind, out)
            finished = number
        except KeyboardInterrupt:
            pass
        finally:
            is_armed = False
            hooks.clear()
        if not finished:
            assert not is_published(out) or files_of(out) != {}
            export(kind, out)
        assert files_of(out) == files_of(tmp_path / "whole")
        shutil.rmtree(out)
    assert finished > 7 * 5, "it was stopped at many moments"


@pytest.mark.long
def test_a_killed_export_is_continued(tmp_path):
    export("warc", tmp_path / "whole")
    chance = random.Random(0)
    was_killed = 0
    for number in range(4):
        out = tmp_path / f"out-{number}"
        command = [sys.executable, "-P", "-m", "examine.export", "warc", "--crawl", GOLDEN, "--out", out]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        target = chance.randrange(4)
        while process.poll() is None and len(list(out.glob("*.warc.gz")) if out.exists() else []) < target:
            pass
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        was_killed += not is_published(out)
        export("warc", out)
        assert files_of(out) == files_of(tmp_path / "whole")
    assert was_killed


def test_an_export_covers_what_was_committed_when_it_began(tmp_path, crawl):
    export("cdxj", tmp_path / "early", crawl=crawl)
    last = len(list((crawl / names.LOG).iterdir())) - 1
    entry = (crawl / names.LOG).joinpath(names.log_entry(last))
    later = entry.read_bytes()
    entry.unlink()
    export("cdxj", tmp_path / "short", crawl=crawl)
    lines = [len((tmp_path / name / "index.cdxj").read_bytes().splitlines()) for name in ("early", "short")]
    assert lines[1] < lines[0] and read_manifest(tmp_path / "short")["export"]["log_length"] == last
    entry.write_bytes(later)
    export("cdxj", tmp_path / "short", crawl=crawl)  # it is whole already
    assert len((tmp_path / "short" / "index.cdxj").read_bytes().splitlines()) == lines[1]


def test_urls_are_written_anew_where_the_crawl_went_on_before_they_were_whole(tmp_path, crawl, monkeypatch):
    last = len(list((crawl / names.LOG).iterdir())) - 1
    path = crawl / names.LOG / names.log_entry(last)
    entry = path.read_bytes()
    path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(ExportFolder, "publish", lambda *_: pytest.fail("stopped here", pytrace=False))
        with pytest.raises(pytest.fail.Exception):
            export("urls", tmp_path / "out", crawl=crawl)
    path.write_bytes(entry)
    manifest = export("urls", tmp_path / "out", crawl=crawl)
    assert manifest["export"]["log_length"] == last + 1
    export("urls", tmp_path / "whole")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("newest", [[], ["--newest"]])
@pytest.mark.parametrize("lost", ["cycle", "table", "pages", "record"])
def test_what_is_missing_ends_the_export_or_is_named(tmp_path, crawl, lost, newest):
    folder = crawl / names.cycle(SOME_CYCLE)
    pages = folder / names.FETCHER / names.PAGES / "00000.warc.zst"
    whole = export("warc", tmp_path / "whole", crawl=crawl)
    if lost == "cycle":
        shutil.rmtree(folder)
    elif lost == "table":
        (folder / names.EXTRACTOR / names.METADATA).write_bytes(b"no table")
    elif lost == "pages":
        pages.unlink()
    else:
        damaged = np.fromfile(pages, np.uint8)
        damaged[-100] ^= 255
        damaged.tofile(pages)
    with pytest.raises(BadInput, match=names.cycle(SOME_CYCLE)):
        export("warc", tmp_path / "out", *newest, crawl=crawl)
    assert not is_published(tmp_path / "out")
    partial = export("warc", tmp_path / "out", "--allow-partial", *newest, crawl=crawl)
    assert partial["is_partial"] and names.cycle(SOME_CYCLE) in partial["missing"][0] and not whole["is_partial"]
    assert 0 < partial["counts"]["responses"] < whole["counts"]["responses"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["pages", "ufmg", "wacz"])
def test_other_kinds_leave_out_what_a_damaged_file_of_pages_has_lost(tmp_path, crawl, kind):
    path = crawl / names.cycle(SOME_CYCLE) / names.FETCHER / names.PAGES / "00000.warc.zst"
    damaged = np.fromfile(path, np.uint8)
    damaged[-100] ^= 255
    damaged.tofile(path)
    with pytest.raises(BadInput, match=names.cycle(SOME_CYCLE)):
        export(kind, tmp_path / "out", crawl=crawl)
    partial = export(kind, tmp_path / "out", "--allow-partial", crawl=crawl)
    assert partial["is_partial"] and len(partial["missing"]) == 1
    with pytest.raises(BadInput, match="partial export"):
        export(kind, tmp_path / "out", crawl=crawl)
    export(kind, tmp_path / "whole")
    assert sum(partial["counts"].values()) < sum(read_manifest(tmp_path / "whole")["counts"].values())


def test_what_a_later_attempt_lacks_is_not_in_the_export(tmp_path, crawl, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(ExportFolder, "finish", lambda *_: pytest.fail("stopped here", pytrace=False))
        with pytest.raises(pytest.fail.Exception):
            export("warc", tmp_path / "out", crawl=crawl)
    (first,) = (tmp_path / "out").glob("*.warc.gz")
    shutil.rmtree(crawl / names.cycle(int(first.name.partition(".")[0])))
    partial = export("warc", tmp_path / "out", "--allow-partial", crawl=crawl)
    assert partial["is_partial"] and first.name not in partial["files"]
    assert first.name.encode() not in (tmp_path / "out" / "index.cdxj").read_bytes()


def test_what_was_missing_and_is_there_again_is_exported(tmp_path, crawl, monkeypatch):
    path = crawl / names.cycle(SOME_CYCLE) / names.EXTRACTOR / names.METADATA
    content = path.read_bytes()
    path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(ExportFolder, "publish", lambda *_: pytest.fail("stopped here", pytrace=False))
        with pytest.raises(pytest.fail.Exception):
            export("cdxj", tmp_path / "out", "--allow-partial", crawl=crawl)
    path.write_bytes(content)
    assert not export("cdxj", tmp_path / "out", crawl=crawl)["is_partial"]
    export("cdxj", tmp_path / "whole", crawl=crawl)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def test_damage_is_exit_65_without_a_traceback(tmp_path, crawl):
    (crawl / names.cycle(SOME_CYCLE) / names.EXTRACTOR / names.METADATA).unlink()
    done = run_export("pages", "--crawl", crawl, "--out", tmp_path / "out")
    assert done.returncode == EX_DATAERR and "expected a file, found none" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_void_entry_of_the_log_changes_nothing(tmp_path, crawl):
    export("cdxj", tmp_path / "before", crawl=crawl)
    last = len(list((crawl / names.LOG).iterdir())) - 1
    shutil.copy(crawl / names.LOG / names.log_entry(last), crawl / names.LOG / names.log_entry(last + 1))
    export("cdxj", tmp_path / "after", crawl=crawl)
    index = [(tmp_path / name / "index.cdxj").read_bytes() for name in ("before", "after")]
    assert index[0] == index[1] and read_manifest(tmp_path / "after")["export"]["log_length"] == last + 2


def test_two_exports_into_one_folder_do_not_meet(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with open(out / LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Locked):
            export("urls", out)
    export("urls", out)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(Usage, match="name a new folder"):
        export("urls", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    export("urls", tmp_path / "out")
    with pytest.raises(Usage, match="other options"):
        export("urls", tmp_path / "out", "--state", "waiting")


def test_a_folder_with_hidden_files_is_left_alone(tmp_path):
    (tmp_path / ".mine").write_text("mine")
    with pytest.raises(Usage, match="name a new folder"):
        export("urls", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".mine"]


def test_a_new_beginning_removes_only_what_an_export_wrote(tmp_path):
    folder = ExportFolder(tmp_path / "out", {"log_length": 1})
    for name in ("notes.txt", ".mine", "0000.txt", "0000.parquet", f"{NOTE}0000.json"):
        (tmp_path / "out" / name).touch()
    folder.restart(2)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"notes.txt", ".mine", REQUEST, LOCK}


def test_no_export_is_made_inside_a_crawl_folder(tmp_path, crawl):
    (tmp_path / "link").symlink_to(crawl / names.CYCLES)
    for out in (crawl / names.CYCLES / "00000099", tmp_path / "link" / "00000099"):
        with pytest.raises(Usage, match="inside the crawl folder"):
            export("urls", out, crawl=crawl)
        assert not out.exists()


@pytest.mark.parametrize(
    "kind, options",
    [
        ("urls", ["--newest"]),
        ("warc", ["--state", "waiting"]),
        ("pages", ["--format", "csv"]),
        ("warc", ["--from", "x"]),
        ("warc", ["--status", "1xxx"]),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, kind, options):
    with pytest.raises((Usage, SystemExit)) as error:
        export(kind, tmp_path / "out", *options)
    assert EX_USAGE in (getattr(error.value, "exit_code", None), getattr(error.value, "code", None))
    assert not (tmp_path / "out").exists()


def test_nothing_unfinished_is_left(tmp_path):
    warc = tmp_path / "out"
    export("warc", warc)
    assert not [path for path in warc.iterdir() if path.name.startswith(ASIDE)]
    assert run_tool("warcio", "check", next(iter(sorted(warc.glob("*.warc.gz"))))).returncode == 0
    assert set(kinds.FORMS) == set(kinds.COLUMNS) | {kinds.URLS}
