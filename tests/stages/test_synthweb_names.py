"""The name server by questions written by hand.

What it says of names that it knows, does not know, and that are scripted.
"""

import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from synthweb.name_answers import (
    REFUSED,
    fail,
    give,
    give_alias,
    in_turn,
    mistake_id,
    mistake_question,
    send_bytes,
    stay_silent,
    truncate,
    write_name,
)
from synthweb.names import NameServer, read_hosts

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 300.0  # reached only where it hangs
NUMBERS = {"A": 1, "CNAME": 5, "SOA": 6, "AAAA": 28}
OPT_4096 = b"\0" + struct.pack("!HHIH", 41, 4096, 0, 0)


def query(name: str, kind: str = "A", id: int = 7, opt: bytes = b"") -> bytes:
    return (
        struct.pack("!6H", id, 0x0100, 1, 0, 0, bool(opt))
        + write_name(name)
        + struct.pack("!HH", NUMBERS[kind], 1)
        + opt
    )


def ask(
    port: int, name: str, kind: str = "A", *, tcp: bool = False, timeout_s: float = PATIENCE_S, opt: bytes = b""
) -> bytes:
    data = query(name, kind, opt=opt)
    if tcp:
        with (
            socket.create_connection(("127.0.0.1", port), timeout_s) as connection,
            connection.makefile("rb") as stream,
        ):
            connection.sendall(len(data).to_bytes(2, "big") + data)
            return stream.read(int.from_bytes(stream.read(2), "big"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(timeout_s)
        udp.sendto(data, ("127.0.0.1", port))
        return udp.recvfrom(65_535)[0]


def read(message: bytes) -> tuple[int, bool, list[tuple[str, int, str]], list[tuple[str, int, str]]]:
    """Code, truncated, answers and authorities as (type, ttl, value) of a message whose names are not compressed."""
    _, flags, _, answers, authorities, _ = struct.unpack_from("!6H", message)
    place = message.index(b"\0", 12) + 5
    found = []
    for _ in range(answers + authorities):
        place = message.index(b"\0", place) + 1
        number, _, ttl, size = struct.unpack_from("!HHIH", message, place)
        data = message[place + 10 : place + 10 + size]
        place += 10 + size
        kind = next(kind for kind, value in NUMBERS.items() if value == number)
        family = {"A": socket.AF_INET, "AAAA": socket.AF_INET6}.get(kind)
        found.append((kind, ttl, socket.inet_ntop(family, data) if family else data.decode("latin-1")))
    assert place == len(message)
    return flags & 15, bool(flags & 0x0200), found[:answers], found[answers:]


@pytest.mark.parametrize("tcp", [False, True])
def test_names_of_a_hosts_file_and_names_that_are_not(tmp_path, tcp):
    path = tmp_path / "hosts"
    path.write_text("# a comment\n127.0.0.1 One.test two.test.\n::1 one.test # too\n\n")
    with NameServer(read_hosts(path), ttl_s=60) as server:
        assert read(ask(server.port, "one.test", tcp=tcp)) == (0, False, [("A", 60, "127.0.0.1")], [])
        assert read(ask(server.port, "ONE.test", "AAAA", tcp=tcp)) == (0, False, [("AAAA", 60, "::1")], [])
        code, _, answers, [(kind, ttl, data)] = read(ask(server.port, "two.test", "AAAA", tcp=tcp))
        assert (code, answers, kind, ttl, data[-4:]) == (0, [], "SOA", 60, "\0\0\0\x3c")
        code, _, answers, [(kind, *_)] = read(ask(server.port, "three.test", tcp=tcp))
        assert (code, answers, kind) == (3, [], "SOA")
        assert server.asked == [("one.test", "A"), ("one.test", "AAAA"), ("two.test", "AAAA"), ("three.test", "A")]
        assert server.count("one.test") == 2 and server.count("one.test", "AAAA") == 1
    with pytest.raises(ValueError, match="line 1: expected an address, found 'x'"):
        path.write_text("x y\n")
        read_hosts(path)


def test_the_case_of_a_question_comes_back():
    with NameServer({"one.test": ["127.0.0.1"]}) as server:
        assert write_name("oNe.TeSt") in ask(server.port, "oNe.TeSt")


def test_answers_that_change():
    scripts = {"rebinds.test": in_turn(give("93.184.216.34", ttl_s=0), give("127.0.0.1"), give("169.254.169.254"))}
    with NameServer(scripts=scripts) as server:
        answers = [read(ask(server.port, "rebinds.test"))[2] for _ in range(4)]
    assert [[(ttl, value) for _, ttl, value in records] for records in answers] == [
        [(0, "93.184.216.34")],
        [(300, "127.0.0.1")],
        [(300, "169.254.169.254")],
        [(300, "169.254.169.254")],
    ]


def test_answers_of_every_other_kind():
    scripts = {
        "a.test": give_alias("b.test"),
        "b.test": give_alias("c.test"),
        "c.test": give("127.0.0.1"),
        "loop.test": give_alias("pool.test"),
        "pool.test": give_alias("loop.test"),
        "fails.test": fail(),
        "refuses.test": fail(REFUSED),
        "six.test": give("::ffff:127.0.0.1"),
        "rubbish.test": send_bytes(b"\xff" * 40),
        "id.test": mistake_id(give("127.0.0.1")),
        "other.test": mistake_question(give("127.0.0.1"), "another.test"),
    }
    with NameServer(scripts=scripts) as server:
        assert [kind for kind, *_ in read(ask(server.port, "a.test"))[2]] == ["CNAME", "CNAME", "A"]
        _, _, loop, _ = read(ask(server.port, "loop.test", opt=OPT_4096))
        assert {kind for kind, *_ in loop} == {"CNAME"} and 2 < len(loop) < 50
        assert read(ask(server.port, "fails.test"))[0] == 2 and read(ask(server.port, "refuses.test"))[0] == 5
        assert read(ask(server.port, "six.test"))[2] == [] and read(ask(server.port, "six.test", "AAAA"))[2] == [
            ("AAAA", 300, "::ffff:127.0.0.1")
        ]
        assert ask(server.port, "rubbish.test").endswith(b"\xff" * 40)
        assert ask(server.port, "id.test")[:2] == b"\0\x08"
        answer = ask(server.port, "other.test")
        assert answer[:2] == b"\0\x07" and write_name("another.test") in answer


def test_what_is_too_long_or_told_to_be_comes_whole_over_tcp():
    many = [f"10.0.{number // 250}.{number % 250}" for number in range(500)]
    with NameServer({"many.test": many}, {"cut.test": truncate(give("127.0.0.1"))}) as server:
        for name, count in (("many.test", 500), ("cut.test", 1)):
            assert read(ask(server.port, name)) == (0, True, [], [])
            assert len(read(ask(server.port, name, tcp=True))[2]) == count


def test_silence_and_questions_that_are_none():
    with NameServer({"one.test": ["127.0.0.1"]}, {"silent.test": stay_silent}) as server:
        with pytest.raises(TimeoutError):
            ask(server.port, "silent.test", timeout_s=0.2)
        with pytest.raises(TimeoutError):
            ask(server.port, "silent.test", timeout_s=0.2, tcp=True)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            for junk in (
                b"",
                b"x",
                bytes(12),
                bytes(range(60)),
                query("one.test")[:-3],
                b"\0\1\1\0\0\1\0\0\0\0\0\0\x3fabc",
            ):
                udp.sendto(junk, ("127.0.0.1", server.port))
        assert read(ask(server.port, "one.test"))[2]
        assert server.asked == [("silent.test", "A")] * 2 + [("one.test", "A")]


@pytest.mark.parametrize("end", ["eof", "signal"])
def test_the_command_tells_its_port_and_ends(tmp_path, end):
    path = tmp_path / "hosts"
    path.write_text("127.0.0.9 one.test\n")
    words = [
        sys.executable,
        "-m",
        "synthweb",
        "names",
        str(path),
        "--ttl",
        "5",
        *(["--until-eof"] if end == "eof" else []),
    ]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            listening, _, place = process.stdout.readline().strip().partition(" ")
            address, _, port = place.partition(":")
            assert (listening, address) == ("listening", "127.0.0.1")
            assert read(ask(int(port), "one.test")) == (0, False, [("A", 5, "127.0.0.9")], [])
            process.stdin.close() if end == "eof" else process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
