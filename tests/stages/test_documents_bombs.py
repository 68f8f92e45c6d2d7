"""Binary documents that are made to take all time and memory are read within bounds.

Each is read in a process of its own that may take 20 s of CPU and 1 GB of memory: what a worker has left for a page.
"""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from stages.extractor.documents import office, swf
from tests.sample_documents import (
    END,
    FAT,
    FREE,
    directory_entry,
    get_url,
    make_compound,
    make_swf,
    make_zip,
    relationships,
)

ROOT = Path(__file__).resolve().parent.parent.parent
BODY = "word/document.xml"
READ = """
import resource, sys
from importlib import import_module
module = import_module("stages.extractor.documents." + sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
read = module.read(sys.stdin.buffer.read(), "")
print(len(read.links), len(read.text))
"""


def read_apart(name: str, content: bytes) -> tuple[int, int]:
    """The number of links and of characters that a reader finds, in a process with limits."""
    command = [sys.executable, "-P", "-c", READ, name]
    done = subprocess.run(command, input=content, capture_output=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr.decode()
    links, characters = done.stdout.split()
    return int(links), int(characters)


LAUGHS = "".join(f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' for number in range(1, 10))
DEFAULTS = b'<!DOCTYPE d [<!ATTLIST a x CDATA "' + b"y" * 1_000_000 + b'">]><d>'
EMPTY_BLOCKS = b"\x00\x00\x00\xff\xff" * 1_000_000  # deflate: a million blocks of nothing
OVERLAID = struct.pack("<4sHHHIIIIHH", b"PK\x03\x04", 20, 0, 8, 0, 0, 0, 0, 6, 0) + b"a.rels"


@pytest.mark.parametrize(
    "parts, expected",
    [
        ({BODY: b"<w:t>" + b" " * (200 << 20)}, (0, 0)),
        ({BODY: b"<d>" + b"<a/>" * (10 << 20)}, (0, 0)),
        ({BODY: b"<a>" * (10 << 20)}, (0, 0)),
        ({BODY: b"<a b='" + b"x" * (20 << 20) + b"'/>"}, (0, 0)),
        ({BODY: b"<a " + b" ".join(b"a%d=''" % number for number in range(200_000)) + b"/>"}, (0, 0)),
        ({BODY: b"<w:t>" + b"a&amp;" * (2 << 20)}, (0, office.TEXT_MAX_CHARACTERS)),
        (
            {BODY: b"<d>" + b"".join(b"<a xlink:href='http://x/%d'/>" % number for number in range(100_000))},
            (office.LINKS_MAX, 0),
        ),
        (
            {
                BODY: f'<!DOCTYPE d [<!ENTITY l0 "lol">{LAUGHS}]><d><t>&l9;</t></d>',
                "a.rels": relationships("http://a/"),
            },
            (1, 0),
        ),
        ({BODY: DEFAULTS + b"<a/>" * 100_000, "a.rels": relationships("http://a/")}, (1, 0)),
        ({f"{number}.rels": "" for number in range(office.ENTRIES_MAX + 1)}, (0, 0)),
    ],
    ids=["blanks", "elements", "depth", "attribute", "attributes", "text", "links", "entities", "defaults", "entries"],
)
@pytest.mark.sampled(1)
def test_zip_files_of_hostile_xml(parts, expected):
    assert read_apart("office", make_zip(parts)) == expected


def test_a_zip_file_without_directory_whose_entries_lie_over_each_other():
    assert read_apart("office", OVERLAID * office.ENTRIES_MAX + EMPTY_BLOCKS) == (0, 0)
    assert read_apart("office", b"PK\x03\x04" * (2 << 20)) == (0, 0)


def test_a_zip_file_whose_directory_names_one_entry_thousands_of_times():
    packed = EMPTY_BLOCKS + b"\x03\x00"
    entry = struct.pack("<4sHHHIIIIHH", b"PK\x03\x04", 20, 0, 8, 0, 0, len(packed), 0, 6, 0) + b"a.rels" + packed
    named = (
        struct.pack("<4sHHHHIIIIHHHHHII", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, len(packed), 0, 6, 0, 0, 0, 0, 0, 0)
        + b"a.rels"
    )
    directory = named * 9_000
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 9_000, 9_000, len(directory), len(entry), 0)
    assert read_apart("office", entry + directory + end) == (0, 0)


@pytest.mark.parametrize("packing", [b"CWS", b"ZWS"])
@pytest.mark.sampled(1)
def test_flash_that_unpacks_to_far_more(packing):
    tags = (12, get_url(b"first.html")), (21, bytes(swf.UNPACKED_MAX_BYTES * 8)), (12, get_url(b"last.html"))
    content = make_swf(*tags, packing=packing)
    assert len(content) < 200_000
    assert read_apart("swf", content) == (1, 0)


@pytest.mark.parametrize(
    "tags",
    [
        [(12, b"\x83\x10\x00a" * 1_000_000)],
        [(12, b"\x83\x04\x00a\0" * 1_000_000)],
        [(12, b"")] * 1_000_000,
        [(12, b"\x83\x10\x0f!" * 1_000_000)],
    ],
    ids=["actions", "actions that end", "tags", "long actions"],
)
@pytest.mark.sampled(1)
def test_flash_full_of_what_is_looked_for(tags):
    assert read_apart("swf", make_swf(*tags, packing=b"CWS")) == (0, 0)


def test_flash_that_asks_for_a_dictionary_of_gigabytes():
    content = make_swf((12, get_url(b"first.html")), packing=b"ZWS")
    assert read_apart("swf", content[:13] + b"\xff\xff\xff\xff" + content[17:]) == (0, 0)


@pytest.mark.parametrize("place", [44, 64, 72], ids=["sectors of the table", "of the small one", "of the outer one"])
@pytest.mark.sampled(2)
def test_compound_files_that_claim_billions_of_sectors(place):
    content = make_compound({"WordDocument": b'HYPERLINK "http://a.example/"'})
    assert read_apart("doc", content[:place] + b"\xff\xff\xff\x0f" + content[place + 4 :]) == (1, 0)


def test_compound_files_whose_streams_are_all_the_same_sectors_and_whose_chain_is_a_ring():
    count = 400
    table = [FAT] + [2 + number % 125 for number in range(127)]
    names = [directory_entry("Root Entry", 5, END, 0, child=1)]
    names += [
        directory_entry(f"s{number}", 2, 2, 60_000, right=number + 1 if number < count else FREE)
        for number in range(1, count + 1)
    ]
    content = make_compound({})
    content = content[:512] + struct.pack("<128I", *table) + b"".join(names).ljust(126 * 512, b"\0")
    assert read_apart("doc", content) == (0, 0)


@pytest.mark.parametrize(
    "content",
    [
        b'HYPERLINK "' * 1_000_000,
        'HYPERLINK "'.encode("utf-16-le") * 500_000 + b"\0" + 'HYPERLINK "a'.encode("utf-16-le") * 300_000,
        b"http://" + b"a" * (10 << 20),
        b"http://a" + b"(" * (5 << 20) + b")" * (5 << 20),
    ],
    ids=["fields", "wide fields", "one URL", "brackets"],
)
@pytest.mark.sampled(2)
def test_compound_files_full_of_what_is_looked_for(content):
    assert read_apart("doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + content)[0] <= 2
