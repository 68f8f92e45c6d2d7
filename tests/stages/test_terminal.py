"""No command lets text of the web, or of a file of the crawl folder, control a terminal; a pipe gets every byte."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from contract import names
from contract.terminal import make_harmless, make_plain
from tests.extractor_lab import WarcFile, alone, http
from tests.fetcher_lab import RawServer, ok
from tests.golden import GOLDEN

ROOT = Path(__file__).resolve().parents[2]
# It sets a title, clears the screen, and has C1, marks of direction, DEL and backspace.
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x7f\u2066\x08"
EVIL_NAME = EVIL.replace("/", "")
SHOWN = make_plain(EVIL)
# What rich and our own colours write: cursor, erased lines, styles.
OWN = re.compile(r"\x1b\[(?:\?25[lh]|[0-9;]*[mK]|[0-9]*A)|\r(?!\n)")
SITE = "http://example.com"
PAGE = f"<title>{EVIL}</title><a href='/{EVIL}'>x</a><p>{EVIL}".encode()


def on_terminal(*command, cwd: Path, writes_own: bool = False) -> tuple[int, str]:
    """Exit code and output of a command whose streams are a terminal, which must get no sequence that is not ours."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    output = b""
    try:
        while select.select([ours], [], [], 120)[0]:
            piece = os.read(ours, 1 << 16)
            output += piece
    except OSError:
        pass  # the other end is closed: the command has ended
    finally:
        os.close(ours)
    code = process.wait(300)
    text = output.decode("utf-8")
    text = (OWN.sub("", text) if writes_own else text).replace("\r\n", "\n").replace("\t", " ")
    bad = sorted({character for character in text if not character.isprintable() and character != "\n"})
    assert not bad, (command, bad, text[:2000])
    return code, text


def bin_of(name: str) -> list:
    """A command as bin/ has it; bench and test, whose environments may not be there, by their module."""
    module = re.search(r"environment/enter\"? (\w+) ([\w.]+)", (ROOT / "bin" / name).read_text())
    return [ROOT / "bin" / name] if module[1] == "core" else [sys.executable, "-P", "-m", module[2]]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder of pages, tables, lists and crawls in which everything that can be hostile is."""
    folder = tmp_path_factory.mktemp("terminal")
    crawl = folder / EVIL_NAME / "crawl"
    shutil.copytree(GOLDEN, crawl)
    (crawl / names.CORRUPT).mkdir(exist_ok=True)
    (crawl / names.CORRUPT / "log-1").write_bytes(b"x")
    note = {"path": f"log/{EVIL}", "reason": f"expected x, found {EVIL}"}
    (crawl / names.CORRUPT / "log-1.json").write_text(json.dumps(note))
    (crawl / names.CYCLES / EVIL_NAME).mkdir()
    (crawl / names.INBOX).mkdir(exist_ok=True)
    (crawl / names.INBOX / "seeds.txt").write_text(f"http://x.test/{EVIL}\n")
    (folder / "bad.txt").write_text(f"{EVIL}\nhttp://[{EVIL}\n", "utf-8")
    (folder / "evil.json").write_text(json.dumps({"title": EVIL}, ensure_ascii=False))
    (folder / "damaged.parquet").write_bytes(EVIL.encode())
    kind = f"text/html; {EVIL}".encode().decode("latin-1")
    pages = WarcFile().answer(SITE + "/", http(PAGE, 200, kind), address=EVIL)
    failed = {"Coletor_Outcome": "failed", "Coletor_Reason": EVIL, "Coletor_Final": "yes"}
    pages.add("metadata", SITE + "/x", EVIL.encode(), **failed)
    alone(folder, pages)
    shutil.copytree(folder / "pages", folder / EVIL_NAME / "pages")
    (folder / EVIL_NAME / "damaged").mkdir()
    (folder / EVIL_NAME / "damaged" / "00000.warc.zst").write_bytes(pages.data()[:-20])
    return folder


def response_offset(file: Path) -> int:
    shown = subprocess.run([ROOT / "bin/show", file, "--json"], capture_output=True, text=True, check=True).stdout
    return next(row["offset"] for row in map(json.loads, shown.splitlines()) if row["type"] == "response")


CRAWL, BAD = f"{EVIL_NAME}/crawl", f"nowhere-{EVIL_NAME}"
CONTACT = ["--set", "fetcher.contact=https://a.example/"]
METADATA = f"out/{names.METADATA}"
# Of each file of bin/: arguments, and whether it writes sequences of its own (None: it prints JSON, which has other
# escapes). Each must print the hostile text, made harmless.
COMMANDS = {
    "bench": [([EVIL], False)],
    "check": [(["--crawl", CRAWL], False), (["--crawl", BAD], False)],
    "crawl": [(["--crawl", BAD], True), ([EVIL], True)],
    "dashboard": [(["--crawl", BAD], False)],
    "export": [(["urls", "--crawl", BAD, "--out", "exported"], False), ([EVIL], False)],
    "extractor": [([f"{EVIL_NAME}/pages"], False), ([f"{EVIL_NAME}/damaged"], False), ([BAD], False)],
    "fetcher": [
        (["bad.txt", "--out", "fetched", *CONTACT], False),
        (["--trace", EVIL, *CONTACT], True),
        ([BAD, "--out", "fetched-too", *CONTACT], False),
    ],
    "fork": [(["--crawl", CRAWL, f"{CRAWL}-fork"], False), (["--crawl", BAD, "fork"], False)],
    "graph": [(["build", "--crawl", BAD], False), ([EVIL], False)],
    "page": [
        (["--crawl", CRAWL, EVIL], False),
        (["--crawl", CRAWL, f"http://s1.test/{EVIL}"], None),
        (["--crawl", BAD, SITE], False),
    ],
    "reconsider": [
        (["--crawl", CRAWL, "--server", EVIL], False),
        (["--crawl", CRAWL, "--reason", EVIL], False),
        (["--crawl", BAD, "--given-up"], False),
    ],
    "report": [(["--crawl", BAD, "--out", "report.html"], False)],
    "run-cycle": [(["--crawl", BAD], True), ([EVIL], True)],
    "scheduler": [(["--crawl", BAD, "--cycle", "1"], False)],
    "seed": [(["--crawl", CRAWL, f"http://s1.test/{EVIL}"], False), (["--crawl", CRAWL, "--file", BAD], False)],
    "simulate": [([EVIL], False)],
    "show": [
        (["pages/00000.warc.zst", "--limit", "0", "--columns", "reason,url"], False),
        (["pages/00000.warc.zst", "--at", response_offset], False),
        ([METADATA, "--columns", "title"], False),
        ([METADATA, "--columns", "status,title", "--csv"], False),
        ([METADATA, "--json"], None),
        ([METADATA, "--columns", EVIL], False),
        ([METADATA, "--where", f"status>{EVIL}"], False),
        (["evil.json"], False),
        ([f"{CRAWL}/inbox/seeds.txt"], False),
        ([f"{CRAWL}/cycles"], False),
        (["damaged.parquet"], None),
        ([f"{EVIL_NAME}/damaged/00000.warc.zst", "--limit", "0"], False),
        (["--duplicates", CRAWL, BAD], False),
        ([BAD], False),
    ],
    "sql": [
        (["--crawl", CRAWL, "select chr(27) || ']0;owned' || chr(7) || 'a' || chr(8) as title"], None),
        (["--crawl", CRAWL, f"select '{EVIL}' as title"], False),
        (["--crawl", CRAWL, f"select '{EVIL}' as title", "--csv"], False),
        (["--crawl", CRAWL, f'select 1 as "{EVIL}"'], False),
        (["--crawl", CRAWL, f"select {EVIL}"], None),
        (["--crawl", BAD, "select 1"], False),
    ],
    "status": [(["--crawl", CRAWL], False), (["--crawl", CRAWL, "--json"], None), (["--crawl", BAD], False)],
    "test": [],  # pytest prints nothing of a crawl
    "lint": [],  # nor do ruff and mypy
    "train-qrank": [(["--crawl", BAD, "--out", "weights"], False)],
    "verifier": [(["--crawl", BAD, "--cycle", "1"], False)],
    "why": [
        (["--crawl", CRAWL, f"http://s1.test/{EVIL}"], False),
        (["--crawl", CRAWL, EVIL], False),
        (["--crawl", CRAWL, "--json", EVIL], None),
        (["--crawl", BAD, SITE], False),
    ],
}
CASES = [(name, number) for name, cases in COMMANDS.items() for number in range(len(cases))]


def test_no_command_is_left_out():
    assert set(COMMANDS) == {path.name for path in (ROOT / "bin").iterdir()}
    assert [name for name, cases in COMMANDS.items() if not cases] == ["test", "lint"]


@pytest.mark.parametrize("name, number", CASES)
@pytest.mark.sampled(10)
def test_nothing_hostile_reaches_a_terminal(place, name, number):
    arguments, kind = COMMANDS[name][number]
    arguments = [response_offset(place / arguments[0]) if word is response_offset else word for word in arguments]
    _, text = on_terminal(*bin_of(name), *arguments, cwd=place, writes_own=bool(kind))
    assert "Traceback" not in text, text
    if kind is not None:
        assert SHOWN[:20].replace(" ", "") in re.sub(r"\s", "", text), text


def test_a_trace_of_a_hostile_server_shows_what_it_said_harmlessly(place, tmp_path):
    def answer(seen):
        if seen.target == "/robots.txt":
            return ok(f"User-agent: *\nDisallow: /{EVIL}".encode())
        return ok(PAGE, f"X-Evil: {EVIL}".replace("\x7f", "").encode().decode("latin-1"))

    (tmp_path / "hosts").write_text("127.0.0.1 one.test\n")
    keys = ("delay_s=0.0", "allow_private_addresses=true", f'hosts_file="{tmp_path / "hosts"}"')
    settings = [*CONTACT, *(word for key in keys for word in ("--set", f"fetcher.{key}"))]
    with RawServer(answer) as server:
        url = f"http://one.test:{server.port}/"
        code, text = on_terminal(ROOT / "bin/fetcher", "--trace", url, *settings, cwd=place, writes_own=True)
    assert code == 0 and text.count("\\x1b]0;owned\\x07") >= 3, text


DISPLAY = """if True:
    import sys
    from contract.config import Config
    from contract.terminal import guard
    from supervise.display import Display
    from tests.made_up_flights import make_flight, make_flights, make_plan
    evil = sys.argv[1]
    guard()
    fetching = make_flight(1, "fetcher", listed=2, waiting=1)
    flights = make_flights(fetching, make_flight(2, evil), make_flight(3, evil, waits=True))
    with Display(False, Config(), flights) as display:
        display.line(f"fetcher: {evil}")
        display.progress(1)
        display.report("abandoned", plan=make_plan(1), reason=evil)
        print(evil, file=sys.stderr)
"""


def test_the_live_view_is_drawn_and_what_it_is_given_is_harmless(place):
    code, text = on_terminal(sys.executable, "-c", DISPLAY, EVIL, cwd=ROOT, writes_own=True)
    assert code == 0 and text.count("\\x1b]0;owned\\x07") >= 4 and "now" in text and "run" in text, text


CRASH = "from contract.command import run; run(lambda: print({0!r}) or int({0!r}), 'x')"


def test_an_error_that_nobody_caught_is_harmless_too(place):
    code, text = on_terminal(sys.executable, "-c", CRASH.format(EVIL), cwd=ROOT)
    assert code == 1 and "ValueError" in text and SHOWN in text


def test_a_pipe_gets_every_byte(place):
    """A record as it was stored, and a table's rows one per line."""
    file = place / "pages/00000.warc.zst"
    offset = str(response_offset(file))
    shown = subprocess.run([ROOT / "bin/show", file, "--at", offset], capture_output=True, check=True).stdout
    assert shown.endswith(PAGE + b"\n") and b"\r\n\r\n" in shown
    (place / "sample.dat").write_text(f"{EVIL}é\n")
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [ROOT / "bin/show", place / "sample.dat"]
    rows = subprocess.run(command, capture_output=True, check=True, env=ascii_only).stdout
    assert rows.splitlines()[-1] == SHOWN.encode() + b"\\xe9"


def test_names_that_are_no_utf_8_end_no_command(place, tmp_path):
    (tmp_path / os.fsdecode(b"a\xff.dat")).write_bytes(b"x")
    strict = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}  # as most locales have it
    shown = subprocess.run([ROOT / "bin/show", tmp_path / os.fsdecode(b"a\xff.dat")], capture_output=True, env=strict)
    assert shown.returncode == 0 and b"a\\udcff.dat" in shown.stdout and not shown.stderr
    code, text = on_terminal(ROOT / "bin/show", tmp_path, cwd=tmp_path)
    assert code == 0 and "a\\udcff.dat" in text


@pytest.mark.parametrize(
    "text, harmless",
    [
        ("plain", "plain"),
        ("a\tb\nc\r\nd", "a\tb\nc\nd"),
        ("a\rb", "a\\rb"),
        ("\x1b[0m", "\\x1b[0m"),
        ("\x85\u2028", "\\x85\\u2028"),
        ("\udcff", "\\udcff"),
        ("", ""),
    ],
)
def test_lines_and_tabs_stay(text, harmless):
    assert make_harmless(text) == harmless
