"""The command on a list of one's own: what it reads, what it prints, how it ends."""

import json
import os
import shlex
import subprocess
import sys
import time
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contract import names, warc
from contract.config import Fetcher, Scope
from contract.config_check import from_tables
from contract.errors import BadConfiguration
from contract.tables import URL_LIST
from contract.url import Keys
from stages.fetcher.identity import find_version, user_agent
from stages.fetcher.pre_refusals import refuse_before
from stages.fetcher.standalone import hold_folder, limit_time
from stages.fetcher.url_list import Revisit, read_list, read_revisits
from storage.errors import Damaged
from storage.publish import verify
from storage.tables import write_table
from tests.fetcher_lab import (
    NO_REVISIT,
    PATIENCE_S,
    ROOT,
    RawServer,
    fetch,
    finals_in,
    ok,
    outcome_of,
    override,
    pages_of,
    records_in,
    run_fetcher,
    run_here,
    start_fetcher,
)


@pytest.fixture
def hosts(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 one.test\n")
    return override(delay_s=0, hosts_file=path, allow_private_addresses=True)


def test_a_text_is_read_line_by_line_and_junk_is_named(tmp_path, capsys):
    path = tmp_path / "urls.txt"
    path.write_bytes(
        b"\xef\xbb\xbfhttp://A.test\r\n\r\n# a comment\r\nhttp://a.test/#again\nnot a url\n  https://b.test/x y \r\n"
        b"mailto:a@b.test\nhttp://\xff.test/\nhttp://\x00\n//no.scheme/\nhttp://u:p@c.test/?\nhttp://a.test/\xc3\xa9"
    )
    assert read_list(path) == ["http://a.test/", "https://b.test/x%20y", "http://c.test/", "http://a.test/%C3%A9"]
    said = capsys.readouterr().err.splitlines()
    assert [line.split(" passed over: ")[0].rpartition(" ")[2] for line in said] == ["5", "7", "8", "9", "10"]
    assert "one of another scheme: mailto:a@b.test" in said[1] and "expected UTF-8" in said[2]
    assert all(line.isprintable() for line in said)


def test_a_list_of_one_s_own_is_fetched_and_told(tmp_path, hosts):
    with RawServer(pages_of({"/a": ok(b"abc"), "/b": b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"})) as server:
        origin = f"http://one.test:{server.port}"
        path = tmp_path / "urls.txt"
        path.write_text(f"{origin}/a\njunk\n{origin}/a\n{origin}/b\nhttp://nowhere.test/\n")
        done = run_fetcher(path, "--out", tmp_path / "out", *hosts)
        again = run_here(path, "--out", tmp_path / "out", *hosts)
    assert done.returncode == 0 and "line 2 passed over" in done.stderr
    lines = sorted(line.split() for line in done.stdout.splitlines())
    assert [(what, size, url) for what, size, _, url in lines] == [
        ("200", str(len(ok(b"abc"))), f"{origin}/a"),
        ("500", "38", f"{origin}/b"),
        ("not_reached:dns", "0", "http://nowhere.test/"),
    ]
    manifest = json.loads((tmp_path / "out" / names.MANIFEST).read_text())
    assert manifest["stage"] == "fetcher" and list(manifest["inputs"]) == ["urls.txt"]
    assert list(manifest["files"]) == ["Repositorio_de_Paginas/00000.warc.zst"]
    for name, description in manifest["files"].items():
        verify(tmp_path / "out" / name, description)
    assert manifest["counts"]["listed"] == 3 and manifest["counts"]["requests"] == 3
    request = next(record for record in records_in(tmp_path / "out") if record.type == "request")
    assert f"User-Agent: Coletor/{find_version()} (+https://example.org/bot)\r\n".encode() in request.block
    assert again.returncode == 64 and "is finished already" in again.stderr


def test_a_table_is_a_list_too(tmp_path, hosts):
    with RawServer(pages_of({"/a": ok()})) as server:
        url = f"http://one.test:{server.port}/a"
        row = {"order": 0, "url": url, "domain_key": 1, "url_key": 2, "server_key": 3, "depth": 0, **NO_REVISIT}
        write_table(tmp_path / "list.parquet", pa.Table.from_pylist([row], URL_LIST))
        done = run_here(
            tmp_path / "list.parquet", "--out", tmp_path / "out", *hosts, "--set", "fetcher.warc_compression=gzip"
        )
    assert done.returncode == 0 and finals_in(tmp_path / "out")[url].get(warc.OUTCOME) == "answered"
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    bad = run_here(tmp_path / "bad.parquet", "--out", tmp_path / "other")
    assert bad.returncode == 65 and "expected a Parquet file" in bad.stderr


DIGEST = "sha1:" + "B" * 32


def write_own(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_a_list_tells_of_earlier_answers(tmp_path):
    rows = [
        {
            "order": n,
            "url": f"http://a.test/{n}",
            "domain_key": 1,
            "url_key": n,
            "server_key": 3,
            "depth": 0,
            **NO_REVISIT,
        }
        for n in range(3)
    ]
    rows[1] |= {"revisit": True, "etag": '"x"', "last_modified": "Thu", "payload_digest": DIGEST, "fetched_at_ms": 5}
    rows[2] |= {"etag": "of no use"}
    write_table(tmp_path / "list.parquet", pa.Table.from_pylist(rows, URL_LIST))
    assert read_revisits(tmp_path / "list.parquet") == {"http://a.test/1": Revisit('"x"', "Thu", DIGEST, 5)}
    (tmp_path / "urls.txt").write_text("http://a.test/")
    assert read_revisits(tmp_path / "urls.txt") == {}


def test_a_table_of_ones_own_may_have_few_columns(tmp_path):
    urls = ["HTTP://A.test/x#y", "no url", None, "http://a.test/x", "http://b.test/"]
    only = write_own(tmp_path / "only.parquet", url=urls, other=[1, 2, 3, 4, 5])
    assert read_list(only) == ["http://a.test/x", "http://b.test/"] and read_revisits(only) == {}
    some = write_own(
        tmp_path / "some.parquet",
        url=urls,
        revisit=[True, True, None, True, None],
        etag=["first", "", "", "second", None],
    )
    assert read_list(some) == read_list(only) and read_revisits(some) == {"http://a.test/x": Revisit("first")}
    for columns in ({"other": [1]}, {"url": [b"\xff\xfe"]}, {"url": ["http://a.test/"], "fetched_at_ms": ["soon"]}):
        with pytest.raises(Damaged, match="bad.parquet: expected"):
            read_list(write_own(tmp_path / "bad.parquet", **columns))


def test_what_cannot_be_sent_or_written_counts_as_not_known(tmp_path):
    bad = ["a\r\nHost: b", "\x00", " ", "\u00e9", "x" * 1001, ""]
    urls = [f"http://a.test/{number}" for number in range(len(bad))]
    path = write_own(
        tmp_path / "list.parquet",
        url=urls,
        revisit=[True] * len(bad),
        etag=bad,
        last_modified=bad,
        payload_digest=bad,
        fetched_at_ms=[-1, 1 << 62, 0, -(1 << 63), (1 << 63) - 1, 0],
    )
    assert read_revisits(path) == dict.fromkeys(urls, Revisit())


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        ([], 64, "name either a cycle"),
        (["{}/urls.txt"], 64, "--out DIR"),
        (["{}/none.txt", "--out", "{}/out"], 64, "expected a list of URLs"),
        (["{}/urls.txt", "--cycle", "1", "--out", "{}/out"], 64, "name either a cycle"),
        (["{}/urls.txt", "--out", "{}"], 64, "holds other files (urls.txt)"),
        (["{}/urls.txt", "--out", "{}/urls.txt"], 64, "is no folder"),
        (["--cycle", "1", "--set", "fetcher.delay_s=1"], 64, "plan"),
        (["--cycle", "1", "--crawl", "{}/none"], 78, "is no crawl folder"),
        (["--bogus"], 64, "--help"),
        (["{}/urls.txt", "--out", "{}/out", "--set", "fetcher.bogus=1"], 78, "bogus"),
        (["{}/urls.txt", "--out", "{}/out", "--set", "fetcher.agent=a b"], 78, "[fetcher] agent"),
        (
            ["{}/urls.txt", "--out", "{}/out", "--set", "fetcher.contact=a@b", "--set", "fetcher.hosts_file={}/none"],
            78,
            "fetcher.hosts_file",
        ),
    ],
)
def test_mistakes_are_told_with_their_exit_code(tmp_path, arguments, code, words):
    (tmp_path / "urls.txt").write_text("http://one.test/\n")
    done = run_here(*(argument.format(tmp_path) for argument in arguments))
    assert done.returncode == code and words in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_two_runs_do_not_write_to_one_folder(tmp_path):
    (tmp_path / "urls.txt").write_text("http://one.test/\n")
    (tmp_path / "out").mkdir()
    lock = hold_folder(tmp_path / "out")
    done = run_here(tmp_path / "urls.txt", "--out", tmp_path / "out", *override())
    os.close(lock)
    assert done.returncode == 75 and "another run writes here" in done.stderr


def test_help_is_the_manual():
    done = run_here("--help")
    assert done.returncode == 0 and "Example:" in done.stdout and "Repositorio_de_Paginas" in done.stdout


def test_the_agent_cannot_smuggle_a_header():
    assert user_agent(Fetcher(agent="Bot", contact="https://a.test/")) == f"Bot/{find_version()} (+https://a.test/)"
    for settings in ({"agent": "A\r\nX: y"}, {"agent": ""}, {"contact": "a\r\nb"}, {"contact": "a) (b"}):
        with pytest.raises(BadConfiguration):
            from_tables({"fetcher": settings}, "test")


def test_a_domain_that_is_left_out_is_never_asked(tmp_path):
    """Its owner complained after its URLs were known: nothing goes there, not even a request for robots.txt."""
    urls = [
        "http://www.gone.test/a",
        "http://here.test/",
        "https://gone.test:8/",
        "http://here.test/a/photo.JPG?x=1",
        "http://here.test/jpg",
    ]
    refused = refuse_before(urls, Scope(reject_domains=("Gone.test",), reject_extensions=(".jpg",)), Keys(0))
    assert refused == {urls[0]: "reject_domains", urls[2]: "reject_domains", urls[3]: "reject_extensions"}
    result = fetch(tmp_path / "out", list(refused), {}, refused=refused)
    assert result.counts["refused"] == 3 and result.counts["requests"] == 0
    assert {record.url: outcome_of(record)[1] for record in records_in(tmp_path / "out")[1:]} == refused


def test_nobody_is_asked_without_an_address_where_the_crawler_can_be_reached(tmp_path):
    (tmp_path / "urls.txt").write_text("http://one.test/\n")
    done = run_here(tmp_path / "urls.txt", "--out", tmp_path / "out")
    assert done.returncode == 78 and "--set fetcher.contact=" in done.stderr and not (tmp_path / "out").exists()


def test_an_unfinished_folder_belongs_to_its_list(tmp_path, hosts):
    """Another list would end there, and the first one could not go on."""
    with RawServer(pages_of({f"/{n}": ok() for n in range(6)})) as server:
        urls = [f"http://one.test:{server.port}/{n}" for n in range(6)]
        first, second = tmp_path / "first.txt", tmp_path / "second.txt"
        first.write_text("\n".join(urls))
        second.write_text("\n".join(urls[:2]))
        process = start_fetcher(first, "--out", tmp_path / "out", *hosts, "--set", "fetcher.delay_s=1")
        server.wait_for(2)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        refused = run_here(second, "--out", tmp_path / "out", *hosts)
        assert refused.returncode == 64 and "begun with 'first.txt'" in refused.stderr
        done = run_here(first, "--out", tmp_path / "out", *hosts)
    assert done.returncode == 0 and set(finals_in(tmp_path / "out")) == set(urls)
    assert "6 listed: 6 answered, 0 failed, 0 refused, 0 not reached" in done.stderr


def test_a_list_of_one_s_own_has_a_time_limit_only_where_it_is_set(tmp_path):
    def limit(config, *overrides):
        return limit_time(Fetcher(), SimpleNamespace(config=config, set=list(overrides))).cycle_max_s

    def file(text):
        (tmp_path / "mine.toml").write_text(text)
        return tmp_path / "mine.toml"

    assert limit(None, "fetcher.delay_s=2") > 10**6 and limit(None, "fetcher.cycle_max_s=600") == 600
    assert limit(file("[fetcher]\ndelay_s = 2.0\n")) > 10**6 and limit(file("[scope]\n")) > 10**6
    assert limit(file("[fetcher]\ncycle_max_s = 600.0\n")) == 600
    (tmp_path / "urls.txt").write_text("# nothing\n")
    done = run_here(tmp_path / "urls.txt", "--out", tmp_path / "out", *override())
    assert done.returncode == 65 and "expected URLs, one per line" in done.stderr


def test_private_addresses_are_told_how_to_be_allowed(tmp_path):
    (tmp_path / "urls.txt").write_text("http://127.0.0.1:1/\n127.0.0.1:1/\n")
    done = run_here(tmp_path / "urls.txt", "--out", tmp_path / "out", *override())
    assert (
        done.returncode == 0
        and "--set fetcher.allow_private_addresses=true" in done.stderr
        and "write http://" in done.stderr
    )
    assert run_here(tmp_path / "urls.txt", "--out", tmp_path / "other", *override(contact="me")).returncode == 78


def test_a_reader_that_does_not_read_holds_up_no_transfer(tmp_path, hosts):
    """More lines than a pipe takes; the reader begins when the pages are there."""
    with RawServer(lambda seen: ok()) as server:
        count = 1500
        (tmp_path / "urls.txt").write_text(
            "\n".join(f"http://one.test:{server.port}/{'x' * 100}{n}" for n in range(count))
        )
        process = start_fetcher(
            tmp_path / "urls.txt",
            "--out",
            tmp_path / "out",
            *hosts,
            "--set",
            "fetcher.total_timeout_s=60",
            "--set",
            "fetcher.connect_timeout_s=30",
        )
        server.wait_for(count + 1)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0 and [line.split()[0] for line in out.splitlines()] == ["200"] * count, err


@pytest.mark.parametrize("redirect", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.sampled(1)
def test_closed_descriptors_are_no_defect(tmp_path, hosts, redirect):
    with RawServer(lambda seen: ok()) as server:
        (tmp_path / "urls.txt").write_text(f"http://one.test:{server.port}/\n")
        words = [sys.executable, "-m", "stages.fetcher", tmp_path / "urls.txt", "--out", tmp_path / "out", *hosts]
        done = subprocess.run(f"{shlex.join(map(str, words))} {redirect}", shell=True, cwd=ROOT, timeout=PATIENCE_S)
    assert done.returncode == 0 and (tmp_path / "out" / names.MANIFEST).exists()


def test_a_list_must_be_a_file_that_can_be_read_again(tmp_path):
    os.mkfifo(tmp_path / "urls.txt")
    done = run_here(tmp_path / "urls.txt", "--out", tmp_path / "out", *override())
    assert done.returncode == 64 and "save your list to one" in done.stderr


def test_many_refused_urls_of_one_host_take_no_time(tmp_path):
    urls = [f"http://one.test/{n}{'.jpg' if n % 2 else ''}" for n in range(60_000)]
    refused = {url: "reject_extensions" for url in urls if url.endswith(".jpg")}
    began = time.process_time()
    result = fetch(tmp_path / "out", urls, {}, refused=refused)
    assert result.counts["refused"] == 30_000 and time.process_time() - began < 30
