"""Files of ranks: good lines become an array sorted by key; every other line is named with what was expected."""

from pathlib import Path

import numpy as np
import pytest

from contract.errors import BadInput
from contract.rank_files import RANKS, make_ranks, read_ranks
from contract.url import Keys

KEYS = Keys(17)
FILE = Path("ranks.txt")


def ranks_of(text: bytes) -> dict[int, float]:
    found = make_ranks(FILE, text, KEYS)
    assert found.dtype == RANKS and (np.diff(found["key"].astype(object)) > 0).all()
    return dict(zip(found["key"].tolist(), found["rank"].tolist()))


def test_urls_and_servers():
    text = b"https://a.br/x 2\nhttps://a.br 0.5\nhttps://a.br/ 3\n"
    assert ranks_of(text) == {KEYS.of("https://a.br/x"): 2, KEYS.of("https://a.br"): 0.5, KEYS.of("https://a.br/"): 3}
    assert KEYS.of("https://a.br") == KEYS.server("https://a.br").key


@pytest.mark.parametrize(
    "name, canonical",
    [
        ("HTTPS://A.br:443", "https://a.br"),
        ("http://a.br.", "http://a.br"),
        ("http://[2001:DB8::1]:8080", "http://[2001:db8::1]:8080"),
        ("http://a.br?x=1", "http://a.br/?x=1"),
        ("http://a.br/#top", "http://a.br/"),
        ("http://a.br/a/../b", "http://a.br/b"),
    ],
)
def test_names_are_read_as_the_crawl_spells_them(name, canonical):
    assert ranks_of(f"{name} 1".encode()) == {KEYS.of(canonical): 1}


def test_what_counts_for_nothing():
    assert ranks_of(b"") == ranks_of(b"\n\r\n  \t \n# a comment\n#\n") == {}
    assert ranks_of(b"  http://a.br/ \t 1e-3 \r\nhttp://b.br/ 1\r\n") == {
        KEYS.of("http://a.br/"): np.float32(0.001),
        KEYS.of("http://b.br/"): 1,
    }


@pytest.mark.parametrize(
    "line",
    [
        b"http://a.br/",
        b"http://a.br/ 1 2",
        b"0.5 http://a.br/",
        b"http://a.br/ nan",
        b"http://a.br/ NaN",
        b"http://a.br/ inf",
        b"http://a.br/ -inf",
        b"http://a.br/ 1e39",
        b"http://a.br/ 1e400",
        b"http://a.br/ -1",
        b"http://a.br/ -1e-9",
        b"http://a.br/ 1_000",
        b"http://a.br/ 0x10",
        b"http://a.br/ 0,5",
        b"http://a.br/ one",
        b"http://a b/ 1",
        b"ftp://a.br/ 1",
        b"mailto:x@a.br 1",
        b"www.a.br 1",
        b"12345678901234567890 1",
        b"http:// 1",
        b"http:///  1",
        b"\xef\xbb\xbfhttp://a.br/ 1",
        "http://á.br/ 1".encode(),
        "http://a.br/ ١".encode(),
        b"PAR1\x15\x04\x15",
        b"http://a.br/" + b"x" * 9000 + b" 1",
    ],
)
def test_any_other_line_is_named(line):
    with pytest.raises(BadInput) as caught:
        make_ranks(FILE, b"# ranks\nhttp://c.br/ 1\n" + line + b"\nhttp://d.br/ 1\n", KEYS)
    message = str(caught.value)
    assert (
        message.startswith("ranks.txt: line 3: expected a URL or server, a blank and its rank") and "found '" in message
    )
    assert message.isprintable() and len(message) < 700 and caught.value.exit_code == 65


@pytest.mark.parametrize("nonsense", [b"\0", b"x", b"x ", b"\xff", b"<a>"])
def test_ten_megabytes_of_nonsense_are_one_short_message(nonsense):
    with pytest.raises(BadInput, match="line 1: expected a URL or server") as caught:
        make_ranks(FILE, nonsense * (10_000_000 // len(nonsense)), KEYS)
    assert len(str(caught.value)) < 700


def test_a_url_twice():
    assert ranks_of(b"http://a.br/ 1\nhttp://a.br/ 1.0\nHTTP://A.BR:80/ 1e0\n") == {KEYS.of("http://a.br/"): 1}
    text = b"".join(b"http://a.br/%d 1\n" % number for number in range(50))
    with pytest.raises(BadInput) as caught:
        make_ranks(FILE, text + b"http://a.br/7 2\nhttp://a.br/3 2\n", KEYS)
    assert "line 51: expected each URL once, found 'http://a.br/7 2' again with another value" in str(caught.value)


def test_minus_zero_is_zero():
    """Its bits would be a larger score than those of any rank."""
    (rank,) = make_ranks(FILE, b"http://a.br/ -0.0\n", KEYS)["rank"]
    assert rank.view(np.uint32) == 0


def test_the_smallest_and_the_largest():
    assert ranks_of(b"http://a.br/ 3.4e38\nhttp://b.br/ 1e-400\nhttp://c.br/ 0")[KEYS.of("http://b.br/")] == 0


def test_the_copy_is_read_again(tmp_path):
    for text in (b"", b"http://a.br/ 1\nhttp://b.br 2\n"):
        np.save(tmp_path / "copy.npy", make_ranks(FILE, text, KEYS))
        assert read_ranks(tmp_path / "copy.npy").tolist() == make_ranks(FILE, text, KEYS).tolist()
