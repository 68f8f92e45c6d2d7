"""Seed files as people write them: each bad line is reported with its number, the rest is taken."""

import io
import subprocess
from pathlib import Path

import pytest

from contract.seeds import parse_lines, read_lines

ROOT = Path(__file__).resolve().parent.parent.parent
MESSY = (
    b"\xef\xbb\xbfhttp://a.test/\r\n"
    b"\r\n"
    b"# comment\n"
    b"mailto:me@a.test\n"
    b"http://[bad\n"
    b"www.b.test/x\n"
    b"\xff\xfe\n" + b"x" * 1_000_000 + b"\n" + b"  http://c.test/#f  \n"
    b"ftp://d.test/\n"
    b"localhost:8080/x\n"
    b"/etc/passwd\n"
    b"http://a.test/"
)


def test_messy_lines():
    lines = list(parse_lines(read_lines(io.BytesIO(MESSY))))
    assert [line.url for line in lines if line.url] == [
        "http://a.test/",
        "http://www.b.test/x",
        "http://c.test/",
        "http://localhost:8080/x",
        "http://a.test/",
    ]
    assert [(line.number, line.problem.partition(":")[0]) for line in lines if line.problem] == [
        (4, "other scheme"),
        (5, "unparsable"),
        (7, "not UTF-8"),
        (8, "longer than 16000 bytes"),
        (10, "other scheme"),
        (12, "unparsable"),
    ]


def seed(*arguments, **more):
    return subprocess.run([ROOT / "bin/seed", *arguments], capture_output=True, **more)


def test_the_command_reports_bad_lines_and_takes_the_rest(tmp_path):
    run = seed("--crawl", tmp_path / "c", input=MESSY)
    assert run.returncode == 0, run.stderr
    assert b"4 URLs left" in run.stdout and b"6 bad lines" in run.stdout
    assert b"line 5: unparsable" in run.stderr
    (left,) = (tmp_path / "c" / "inbox").iterdir()
    assert left.read_text().splitlines() == [
        "http://a.test/",
        "http://www.b.test/x",
        "http://c.test/",
        "http://localhost:8080/x",
    ]


@pytest.mark.parametrize("text, code", [(b"", 65), (b"junk:x\n", 65)])
def test_nothing_usable_adds_nothing(tmp_path, text, code):
    run = seed("--crawl", tmp_path / "c", input=text)
    assert run.returncode == code and not (tmp_path / "c").exists()


def test_a_folder_with_other_files_is_not_made_a_crawl(tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    run = seed("--crawl", tmp_path, "http://a.test/")
    assert run.returncode == 78 and b"holds other files" in run.stderr


def test_a_file_that_is_not_there(tmp_path):
    run = seed("--crawl", tmp_path / "c", "--file", tmp_path / "none")
    assert run.returncode == 64 and b"No such file" in run.stderr


def test_a_hosts_file_that_does_not_exist_is_reported_at_once(tmp_path):
    settings = tmp_path / "my.toml"
    settings.write_text('[fetcher]\nhosts_file = "hosts"\n')
    run = seed("--crawl", tmp_path / "crawl", "--config", settings, "http://a.test/", text=True)
    assert run.returncode == 78 and f"fetcher.hosts_file: expected a file, found none: {tmp_path}/hosts" in run.stderr
    assert not (tmp_path / "crawl").exists(), "nothing was made"
    (tmp_path / "hosts").write_text("127.0.0.1 a.test\n")
    made = seed("--crawl", tmp_path / "crawl", "--config", settings, "http://a.test/", text=True)
    assert made.returncode == 0, made.stderr
