"""Hostile bodies, documents and pages, read by a process of its own: the memory that each takes is bounded."""

import subprocess
import sys
from pathlib import Path

import brotlicffi
import pytest

from tests.sampling import sampling
from tests.unit.test_body import PACK, zeros
from tests.unit.test_html_hostile import HOSTILE

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS_MAX_BYTES = 900 << 20  # of address space, interpreter and input included
# Of address space: ELEMENTS_MAX elements that are made anew, the page, and the interpreter.
PAGES_MAX_BYTES = 1_200 << 20
DOCUMENTS = ("deep", "attributes", "one line", "references", "sections, closed", "names", "laughs in text")
SPEND = """
import re, sys, time
from contract.body import decode_body
from contract.warc import HttpMessage
def peak_kib():
    return int(re.search("VmHWM:.*?([0-9]+)", open("/proc/self/status").read())[1])
body, encoding = open(sys.argv[1], "rb").read(), sys.argv[2]
decode_body(HttpMessage(200, [("Content-Encoding", encoding)], body[:100]), 100)
before, begun = peak_kib(), time.process_time()
content, trouble = decode_body(HttpMessage(200, [("Content-Encoding", encoding)], body), 10 << 20)
assert trouble == "too_long" and len(content) == 10 << 20
print(peak_kib() - before, round((time.process_time() - begun) * 1000))
"""


@pytest.mark.parametrize("encoding", ["br", "zstd", "br, br", "zstd, zstd"])
@pytest.mark.sampled(2)
def test_a_bomb_takes_little_memory(tmp_path, encoding):
    packer = brotlicffi.Compressor(quality=1)
    body = (
        zeros(100_000)
        if "zstd" in encoding
        else b"".join(packer.process(bytes(1 << 24)) for _ in range(16)) + packer.finish()
    )
    if "," in encoding:
        body = PACK[encoding.split(", ")[1]](body)
    (tmp_path / "bomb").write_bytes(body)
    done = subprocess.run(
        [sys.executable, "-c", SPEND, tmp_path / "bomb", encoding],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    grown_kib, took_ms = map(int, done.stdout.split())
    print(encoding, len(body), "bytes:", grown_kib, "KiB", took_ms, "ms")
    assert grown_kib < 64 << 10, "twice the content, a window, and some"


def some(names):
    """All of them, or in the quick run every third."""
    first, stride = sampling.stride(3)
    return names[first - 1 :: stride]


def test_memory_of_documents_is_bounded():
    """In a process of its own, which the kernel gives no more."""
    program = """if True:
        import resource, sys
        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
        from stages.extractor.documents import feed
        from tests.unit.test_documents_hostile import XML
        print(sum(bool(feed.read(XML[name], "utf-8").links) for name in sys.argv[2:]))
    """
    names = some(DOCUMENTS)
    ended = subprocess.run(
        [sys.executable, "-c", program, str(DOCUMENTS_MAX_BYTES), *names], capture_output=True, text=True, cwd=ROOT
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, str(len(names))), ended.stderr[-2000:]


def test_memory_of_pages_is_bounded():
    """In a process of its own, which the kernel gives no more."""
    program = """if True:
        import resource, sys
        from tests.unit.test_html_hostile import HOSTILE, links
        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
        print(sum(("a", "x") in links(HOSTILE[name]) for name in sys.argv[2:]))
    """
    names = some([name for name in HOSTILE if b"href=x>" in HOSTILE[name][:20]])
    ended = subprocess.run(
        [sys.executable, "-c", program, str(PAGES_MAX_BYTES), *names], capture_output=True, text=True, cwd=ROOT
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, str(len(names))), ended.stderr[-2000:]
