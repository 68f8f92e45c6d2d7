"""The stream of the display: a terminal or pipe that takes nothing drops text, and delays nobody."""

import io
import os
import pty
import threading

import pytest

from supervise.unbreakable_stream import CANCEL, Unbreakable, write_in_time

NEVER_S = 3600.0  # a test that waits so long has failed


class Descriptor(io.StringIO):
    """A stream of a descriptor."""

    encoding = "utf-8"

    def __init__(self, descriptor):
        super().__init__()
        self._descriptor = descriptor

    def fileno(self):
        return self._descriptor

    def isatty(self):
        return os.isatty(self._descriptor)


@pytest.fixture(params=["pipe", "terminal"])
def ends(request):
    """Where to read and where to write; nobody reads yet."""
    pair = os.pipe() if request.param == "pipe" else pty.openpty()
    yield pair
    for descriptor in pair:
        os.close(descriptor)


@pytest.fixture
def stream(ends):
    stream = Unbreakable(Descriptor(ends[1]), wait_max_s=0.0)
    yield stream
    os.close(stream._unblocked)


def read_all(descriptor):
    """What can be read now."""
    os.set_blocking(descriptor, False)
    found = b""
    try:
        while piece := os.read(descriptor, 1 << 16):
            found += piece
    except BlockingIOError:
        pass
    return found.replace(b"\r\n", b"\n")


def test_what_nobody_reads_is_dropped_and_never_waited_for(ends, stream):
    """Without the poll this test would not end: the buffer of a pipe has 64 kB, that of a terminal less."""
    for _ in range(5_000):
        assert stream.write("x" * 99 + "\n") == 100
    assert os.get_blocking(ends[1]), "others share the descriptor"
    lines = read_all(ends[0]).split(b"\n")
    assert 20 < len(lines) < 2_000
    stream.write("once more\n")
    assert read_all(ends[0]).strip(CANCEL + b"\n") == b"once more"


def test_a_text_that_was_cut_off_is_ended_before_the_next(ends, stream):
    stream.write("y" * 300_000)
    assert set(read_all(ends[0])) == set(b"y")
    stream.write("\x1b[2Jnext\n")
    lead = CANCEL if stream.isatty() else b""
    assert read_all(ends[0]) == lead + b"\n\x1b[2Jnext\n"
    stream.write("and so on\n")
    assert read_all(ends[0]) == b"and so on\n"


def test_it_waits_for_a_reader_that_reads(ends):
    """A thread reads all the time, as tee does; nothing is lost."""
    stream, found = Unbreakable(Descriptor(ends[1]), wait_max_s=NEVER_S), b""

    def read():
        nonlocal found
        while not found.endswith(b"end"):
            found += os.read(ends[0], 1_000)

    reader = threading.Thread(target=read)
    reader.start()
    stream.write("z" * 200_000)
    stream.write("end")
    reader.join()
    os.close(stream._unblocked)
    assert len(found) == 200_003


def test_after_a_drop_it_does_not_wait_until_a_write_succeeds(ends, monkeypatch):
    waits = []
    monkeypatch.setattr(
        "supervise.unbreakable_stream.write_in_time",
        lambda descriptor, data, wait_max_s: (waits.append(wait_max_s), write_in_time(descriptor, data, 0.0))[1],
    )
    stream = Unbreakable(Descriptor(ends[1]), wait_max_s=7.0)
    stream.write("x" * 300_000)
    stream.write("x")
    read_all(ends[0])
    stream.write("x")
    stream.write("x")
    os.close(stream._unblocked)
    assert waits == [7.0, 0.0, 0.0, 7.0]


def test_a_reader_that_has_ended_is_no_error():
    reading, writing = os.pipe()
    stream = Unbreakable(Descriptor(writing))
    os.close(reading)
    assert stream.write("lost") == 4
    os.close(writing)
    os.close(stream._unblocked)


def test_a_file_gets_everything_at_its_place(tmp_path):
    with open(tmp_path / "out", "a") as file:
        file.write("before\n")
        file.flush()
        Unbreakable(file).write("ä" * 10_000)
    assert (tmp_path / "out").read_text() == "before\n" + "ä" * 10_000
