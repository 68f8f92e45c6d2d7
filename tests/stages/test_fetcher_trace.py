"""bin/fetcher --trace: what is told of one URL, what is asked for it, and the exit code; nothing is written."""

import gzip
import os
import signal
import ssl
from ipaddress import ip_address

import pytest

from contract.errors import EX_CONFIG, EX_DATAERR, EX_TEMPFAIL, EX_USAGE
from contract.terminal import make_plain
from stages.fetcher.addresses import kind_of
from synthweb.name_answers import give, give_nothing
from synthweb.names import NameServer
from tests.fetcher_lab import (
    NO_ROBOTS,
    PATIENCE_S,
    TLS_CERTIFICATE,
    TLS_KEY,
    RawServer,
    ok,
    override,
    pages_of,
    run_fetcher,
    run_here,
    start_fetcher,
    tls_context,
)

__all__ = ["tls_context"]

RULES = b"User-agent: *\nCrawl-delay: 0.2\nDisallow: /private\nSitemap: http://one.test/map.xml\n"


def settings(tmp_path, **more) -> list[str]:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 one.test tls.test\n127.0.0.2 two.test\n")
    return override(
        **{
            "hosts_file": hosts,
            "allow_private_addresses": True,
            "delay_s": 0,
            "delay_response_factor": 0,
            "connect_timeout_s": 5,
            "total_timeout_s": 10,
            **more,
        }
    )


def trace(tmp_path, server: RawServer, path: str = "/page", scheme: str = "http", host: str = "one.test", **more):
    return run_here("--trace", f"{scheme}://{host}:{server.port}{path}", *settings(tmp_path, **more))


def facts(text: str) -> list[tuple[str, str]]:
    """The names and values of the lines that are in two columns."""
    return [(line[2:16].strip(), line[16:]) for line in text.splitlines() if line.startswith("  ")]


def test_a_plain_page_is_told_from_its_url_to_its_outcome(tmp_path):
    page = gzip.compress(b"<title>hello</title>\nmore\n")
    with RawServer(
        pages_of({"/page?q": ok(page, "Content-Type: text/html", "Content-Encoding: gzip")}, ok(RULES))
    ) as server:
        done = run_here("--trace", f"HTTP://One.Test.:{server.port}/a/../page?q#part", *settings(tmp_path))
        requests = [seen.raw for seen in server.seen]
        rested_s = server.seen[1].started_s - server.seen[0].ended_s
    assert done.returncode == 0 and done.stderr == "" and server.targets == ["/robots.txt", "/page?q"]
    assert rested_s >= 0.2
    titles = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    origin = f"http://one.test:{server.port}"
    assert titles == [
        "URL",
        "name one.test",
        f"robots.txt {origin}/robots.txt",
        "rules",
        "pause",
        f"page {origin}/page?q",
        "outcome",
    ]
    told = facts(done.stdout)
    assert {
        ("canonical", f"{origin}/page?q"),
        ("domain", "one.test"),
        ("scope", "does not refuse it"),
        ("crawl-delay", "0.2 s"),
        ("", "127.0.0.1  allowed by fetcher.allow_private_addresses: loopback; taken"),
        ("sitemaps", "http://one.test/map.xml"),
        ("decided by", "no rule"),
        ("verdict", "allowed"),
        ("0.200 s", "crawl-delay of robots.txt  <- the longest"),
        ("body", f"{len(page)} bytes, Content-Type text/html"),
        ("encoding", "gzip: 26 bytes decoded"),
        ("outcome", "answered"),
        ("status", "200"),
    } <= set(told)
    shown = [line[4:] for line in done.stdout.splitlines() if line.startswith("  >")]
    assert "".join(f"{line}\r\n" for line in shown).encode() == b"".join(requests)  # the bytes that were sent
    assert "  | <title>hello</title>\n  | more\n" in done.stdout and "  < Content-Encoding: gzip\n" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hosts"]


def test_a_refusal_by_robots_names_its_rule_and_asks_for_no_page(tmp_path):
    with RawServer(pages_of({}, ok(RULES))) as server:
        done = trace(tmp_path, server, "/private/a")
        assert server.targets == ["/robots.txt"]
    told = facts(done.stdout)
    assert done.returncode == 0 and ("verdict", "forbidden") in told and ("reason", "robots") in told
    assert ("decided by", "Disallow: /private (line 3, for user-agent *)") in told and ("outcome", "refused") in told


def test_robots_is_followed_to_another_host(tmp_path):
    def answer(seen):
        if seen.host == "two.test":
            return ok(RULES)
        return (
            f"HTTP/1.1 301 Moved\r\nLocation: http://two.test:{server.port}/rules\r\nContent-Length: 0\r\n\r\n".encode()
        )

    with RawServer(answer, "0.0.0.0") as server:
        done = trace(tmp_path, server, "/private/a")
        asked = [(seen.host, seen.target) for seen in server.seen]
    assert asked == [("one.test", "/robots.txt"), ("two.test", "/rules")]
    assert "\nname two.test\n" in done.stdout and "/rules (redirect 1 of at most 5)\n" in done.stdout
    assert ("outcome", "refused") in facts(done.stdout) and done.returncode == 0


@pytest.mark.parametrize(
    "robots, meaning, code",
    [
        (NO_ROBOTS, "there is none: everything is allowed (RFC 9309 2.3.1.3)", 0),
        (b"HTTP/1.1 301 Moved\r\nLocation: mailto:a@b\r\nContent-Length: 0\r\n\r\n", "leads nowhere", 0),
        (
            b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n",
            "cannot be fetched: nothing of this server may be asked",
            EX_TEMPFAIL,
        ),
        (b"", "cannot be fetched: nothing of this server may be asked", EX_TEMPFAIL),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: nonsense\r\n\r\n",
            "cannot be fetched: nothing of this server may be asked",
            EX_DATAERR,
        ),
    ],
)
def test_what_an_answer_for_robots_means(tmp_path, robots, meaning, code):
    with RawServer(pages_of({"/page": ok()}, robots)) as server:
        done = trace(tmp_path, server)
        assert ("/page" in server.targets) == (code == 0)
    assert f"  means         {meaning}" in done.stdout and done.returncode == code
    assert ("outcome", "answered" if code == 0 else "not_reached") in facts(done.stdout)


def test_a_forbidden_address_is_told_with_its_kind_and_not_asked(tmp_path):
    with RawServer(pages_of({})) as server:
        done = trace(tmp_path, server, allow_private_addresses=False)
        assert server.seen == []
    told = facts(done.stdout)
    assert (
        ("", "127.0.0.1  forbidden: loopback (fetcher.allow_private_addresses is not set)") in told
        and ("reason", "forbidden_address") in told
        and done.returncode == 0
    )


def test_names_are_asked_of_the_name_servers_that_are_told(tmp_path):
    scripts = {"here.test": give("127.0.0.1", ttl_s=300), "nowhere.test": give_nothing()}
    with RawServer(pages_of({"/page": ok()})) as server, NameServer(scripts=scripts) as names:
        here, nowhere = (
            trace(tmp_path, server, host=host, hosts_file="", dns_servers=f'["127.0.0.1:{names.port}"]')
            for host in scripts
        )
    assert ("asked", f"DNS, A, then AAAA, of 127.0.0.1 port {names.port}") in facts(here.stdout)
    assert "holds for 300 s" in here.stdout and here.returncode == 0
    told = facts(nowhere.stdout)
    assert "no address: dns" in nowhere.stdout and ("reason", "dns") in told and ("outcome", "not_reached") in told
    assert nowhere.returncode == EX_DATAERR


def test_a_hostile_page_cannot_write_to_the_terminal(tmp_path):
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x08\x7f"
    page = ok(
        f"{evil}\r over\n".encode() * 3, "Content-Type: text/html", f"X-Evil: {evil}", f"Location: /{evil}"
    ).replace(b"200 OK", b"302 \x1b[5m")
    with RawServer(
        pages_of({"/page": page}, ok(f"User-agent: *\nAllow: /page{evil}\nSitemap: http://x/{evil}".encode()))
    ) as server:
        done = trace(tmp_path, server)
    assert done.returncode == 0 and all(line.isprintable() for line in done.stdout.split("\n"))
    assert r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x08\x7f\r over" in done.stdout


def test_a_busy_server_is_told_with_what_it_asks_for(tmp_path):
    with RawServer(pages_of({"/page": b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"})) as server:
        done = trace(tmp_path, server, retries_max=1)
        assert server.targets == ["/robots.txt", "/page"]
    told = dict(facts(done.stdout))
    assert (
        done.returncode == EX_TEMPFAIL
        and told["Retry-After"] == "asks to be left alone for 7 s"
        and told["reason"] == "http_5xx"
    )
    assert 5 < float(told["rests"].split()[0]) <= 7.001


def test_a_redirect_is_shown_and_not_followed(tmp_path):
    with RawServer(
        pages_of({"/page": b"HTTP/1.1 302 Found\r\nLocation: /a b?c&d\r\nContent-Length: 0\r\n\r\n"})
    ) as server:
        done = trace(tmp_path, server)
        target = f"http://one.test:{server.port}/a%20b?c&d"
        assert server.targets == ["/robots.txt", "/page"]
    assert (
        dict(facts(done.stdout))["leads to"]
        == f"{target}, which is not followed; to trace it: bin/fetcher --trace '{target}'"
    )


def test_tls_is_told(tmp_path, tls_context):
    with RawServer(pages_of({"/page": ok()}), tls=tls_context) as server:
        done = trace(tmp_path, server, scheme="https", host="tls.test")
    told = dict(facts(done.stdout))
    assert done.returncode == 0 and told["certificate"] == told["issuer"] == "CN=tls.test"
    assert told["TLS"].startswith("TLSv1.") and told["valid until"] == "Dec 31 23:59:59 9999 GMT"


def test_an_unknown_authority_is_told(tmp_path, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    certificate = tmp_path / "tls.pem"
    certificate.write_text(TLS_KEY + TLS_CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with RawServer(pages_of({}), tls=context) as server:
        done = trace(tmp_path, server, scheme="https", host="tls.test")
        assert server.seen == []
    told = dict(facts(done.stdout))
    assert done.returncode == EX_DATAERR and (told["outcome"], told["reason"], told["certificate"]) == (
        "not_reached",
        "tls",
        "CN=tls.test",
    )
    assert "certificate" in told["libcurl"]


def test_what_is_cut_off_is_told_with_why(tmp_path):
    with RawServer(
        pages_of({"/page": ok(b"x" * 5000), "/typed": ok(b"pdf", "Content-Type: application/pdf")})
    ) as server:
        long = trace(tmp_path, server, body_max_bytes=1000)
        typed = trace(tmp_path, server, "/typed", accept_types='["text/"]')
    assert (
        dict(facts(long.stdout))["cut off"] == "length (WARC-Truncated): it is longer than 1,000 bytes"
        and long.returncode == 0
    )
    assert dict(facts(typed.stdout))["reason"] == "excluded_type" and typed.returncode == 0


def test_a_pause_beyond_the_time_of_a_cycle_is_not_waited_for(tmp_path):
    with RawServer(pages_of({"/page": ok()}, ok(b"User-agent: *\nCrawl-delay: 86400"))) as server:
        done = trace(tmp_path, server)
        assert server.targets == ["/robots.txt"]
    assert done.returncode == EX_TEMPFAIL and "more than fetcher.cycle_max_s leaves" in done.stdout


def test_what_is_refused_before_anybody_is_asked(tmp_path):
    with RawServer(pages_of({})) as server:
        done = trace(tmp_path, server, "/picture.jpg")
        assert (
            server.seen == []
            and done.returncode == 0
            and ("scope", "refused by scope.reject_extensions") in facts(done.stdout)
        )
    for text, reason in (("ftp://one.test/", "other_scheme"), ("http://[", "unparsable"), ("no url", "unparsable")):
        done = run_here("--trace", text, *settings(tmp_path))
        assert done.returncode == EX_USAGE and f"canonical     none, {reason}" in done.stdout
    assert run_here("--trace", "http://one.test/", *settings(tmp_path, contact="")).returncode == EX_CONFIG
    assert run_here("--trace", "http://one.test/", "--out", tmp_path, *settings(tmp_path)).returncode == EX_USAGE


@pytest.mark.parametrize("waits_for", ["answer", "pause"])
@pytest.mark.sampled(1)
def test_an_interrupt_ends_it_at_once_without_a_traceback(tmp_path, waits_for):
    def answer(seen):
        if seen.target == "/robots.txt":
            return ok(b"User-agent: *\nCrawl-delay: 60") if waits_for == "pause" else NO_ROBOTS
        return lambda connection: connection.recv(1)  # nothing, until the client has gone

    with RawServer(answer) as server:
        process = start_fetcher(
            "--trace", f"http://one.test:{server.port}/page", *settings(tmp_path, total_timeout_s=60, slow_s=60)
        )
        if waits_for == "answer":
            server.wait_for(2)
        else:
            while "waits" not in process.stdout.readline():
                assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGINT and err == ""


def test_it_prints_to_a_terminal_that_knows_ascii_only(tmp_path):
    with RawServer(pages_of({"/page": ok("olá".encode(), "Content-Type: text/plain")})) as server:
        done = run_fetcher(
            "--trace", f"http://one.test:{server.port}/page", *settings(tmp_path), PYTHONIOENCODING="ascii"
        )
    assert done.returncode == 0 and r"  | ol\xe1" in done.stdout


@pytest.mark.parametrize(
    "address, kind",
    [
        ("127.0.0.1", "loopback"),
        ("10.0.0.1", "private"),
        ("169.254.169.254", "link-local"),
        ("224.0.0.1", "multicast"),
        ("0.0.0.0", "unspecified"),
        ("100.64.0.1", "not of the public Internet"),
        ("::1", "loopback"),
        ("fe80::1", "link-local"),
        ("fd00::1", "private"),
        ("8.8.8.8", "public"),
        ("2606:4700::1", "public"),
        ("::ffff:127.0.0.1", "loopback, as 127.0.0.1 inside an IPv6 address"),
    ],
)
def test_kinds_of_addresses(address, kind):
    assert kind_of(ip_address(address)) == kind


def test_plain_text_is_printable_whatever_it_was():
    assert (
        make_plain(bytes(range(256))).isprintable()
        and make_plain("\udc80\u2028\x00") == r"\udc80\u2028\x00"
        and make_plain("olá") == "olá"
    )
