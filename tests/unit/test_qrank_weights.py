"""The network of QRank and its file: the same level in any company, the same bytes, and no file that is another's."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from contract.errors import BadInput
from contract.qrank.features import FEATURES, Words, features_of, hash_words
from contract.qrank.network import Network
from contract.qrank.weights import FILE_MAX_BYTES, SHIPPED, Weights, convert, pack, parse
from contract.url import Keys

PATH = Path("given.npz")
GENERATOR = np.random.default_rng(18)
ARRAYS = {
    "features": np.array([f"{name} {most}".encode() for name, most in FEATURES]),
    "hidden": GENERATOR.normal(size=(20, 60)).astype(np.float32),
    "hidden_bias": GENERATOR.normal(size=60).astype(np.float32),
    "output": GENERATOR.normal(size=60).astype(np.float32),
    "output_bias": GENERATOR.normal(size=1).astype(np.float32),
    "words": np.unique(GENERATOR.integers(0, 1 << 63, 100, np.uint64)),
}


def file_of(save=np.savez, **changed) -> bytes:
    content = io.BytesIO()
    save(content, **{name: array for name, array in (ARRAYS | changed).items() if array is not None})
    return content.getvalue()


def with_value(name: str, at, value) -> np.ndarray:
    array = ARRAYS[name].copy()
    array[at] = value
    return array


def network() -> Network:
    return parse(PATH, file_of()).network


def test_a_file_comes_back_as_it_was_and_has_the_same_bytes_again():
    content = file_of()
    weights = parse(PATH, content)
    assert pack(weights) == content == convert(PATH, content, Keys(1))
    assert all(np.array_equal(getattr(weights.network, name), ARRAYS[name]) for name in vars(weights.network))
    assert np.array_equal(weights.words.hashes, ARRAYS["words"])


def test_levels_are_those_of_the_formula():
    features = GENERATOR.random((700, 20), np.float32)
    wide = {name: ARRAYS[name].astype(np.float64) for name in ("hidden", "hidden_bias", "output", "output_bias")}
    hidden = 1 / (1 + np.exp(-(features @ wide["hidden"] + wide["hidden_bias"])))
    exact = 255 / (1 + np.exp(-(hidden @ wide["output"] + wide["output_bias"])))
    levels = network().levels(features)
    assert levels.dtype == np.uint8 and np.ptp(levels) > 100
    assert np.abs(levels - exact).max() < 0.501


def test_the_level_of_a_row_does_not_depend_on_its_neighbours():
    features = GENERATOR.random((2_000, 20), np.float32)
    levels, order = network().levels(features), GENERATOR.permutation(2_000)
    assert np.array_equal(network().levels(features[order]), levels[order])
    assert np.array_equal(network().levels(features[777:1200]), levels[777:1200])
    assert np.array_equal(np.concatenate([network().levels(row[np.newaxis]) for row in features[:50]]), levels[:50])
    assert len(network().levels(features[:0])) == 0


def test_the_largest_weights_give_levels_without_a_warning():
    rows = np.ones((3, 20), np.float32)
    for sign, level in ((1, 255), (-1, 0)):
        most = np.full((20, 60), 1e6, np.float32)
        with np.errstate(all="raise", under="ignore"):
            assert Network(most, most[0], sign * most[1], sign * most[2, :1]).levels(rows).tolist() == [level] * 3


def test_the_words_of_the_file_count():
    lines = pa.array([b"http://a.br/page/other\n"], pa.large_binary())
    words = Words(np.unique(hash_words(pa.array([b"page"], pa.large_binary()))))
    assert features_of(lines, words)[0, 18] == 0.5
    assert features_of(lines, parse(PATH, file_of()).words)[0, 18] == 0
    assert Weights(network(), words).levels(lines) != Weights(network(), Words(words.hashes[:0])).levels(lines)


def with_member(name: str, content: bytes) -> bytes:
    """The file with another member of this name."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file_of())) as before, zipfile.ZipFile(changed, "w") as after:
        for member in before.namelist():
            after.writestr(member, content if member == name else before.read(member))
    return changed.getvalue()


class Harmful:
    def __reduce__(self):
        return (Path.touch, (Path("/nowhere/harmed"),))


BROKEN = {
    "nothing": (b"", "expected weights of QRank, an .npz file that bin/train-qrank wrote, found something else"),
    "a text": (b"http://a.br/ 0.5\n", "expected weights of QRank"),
    "an .npy file": (file_of(lambda out, **arrays: np.save(out, arrays["hidden"])), "expected weights of QRank"),
    "a cut file": (file_of()[:-100], "expected weights of QRank"),
    "a damaged file": (file_of().replace(ARRAYS["hidden"].tobytes(), ARRAYS["hidden"].tobytes()[::-1]), "Bad CRC-32"),
    "a compressed file": (file_of(np.savez_compressed), "found compressed arrays"),
    "too large": (file_of(words=np.arange(FILE_MAX_BYTES // 8, dtype=np.uint64)), "of at most 16,777,216 bytes"),
    "no output": (file_of(output=None), "with the arrays features, hidden, hidden_bias, output, output_bias, words; "
                                        "found no output"),
    "objects": (file_of(words=np.array([Harmful()])), "allow_pickle=False"),
    "other features": (file_of(features=ARRAYS["features"][::-1].copy()),
                       "features: expected 'length 650' as number 1, found 'words_query 1'"),
    "another maximum": (file_of(features=np.array([*ARRAYS["features"][:-1], b"words_query 2"])),
                        "expected 'words_query 1' as number 20, found 'words_query 2'"),
    "18 features": (file_of(features=ARRAYS["features"][:18]), "features: expected 20 names, found an array of"),
    "another shape": (file_of(hidden=ARRAYS["hidden"].T.copy()), "hidden: expected an array of float32 of shape "
                                                                 "(20, 60), found float32 of shape (60, 20)"),
    "another dtype": (file_of(output=ARRAYS["output"].astype("f8")), "output: expected an array of float32"),
    "NaN": (file_of(hidden=with_value("hidden", (3, 4), np.nan)), "hidden: expected numbers from -1e+06 to 1e+06, "
                                                                  "found nan at [3, 4]"),
    "infinity": (file_of(output=with_value("output", 7, np.inf)), "found inf at [7]"),
    "words in disorder": (file_of(words=ARRAYS["words"][::-1].copy()), "words: expected rising hashes"),
    "words twice": (file_of(words=np.repeat(ARRAYS["words"], 2)), "words: expected rising hashes"),
    "words of two dimensions": (file_of(words=ARRAYS["words"].reshape(50, 2)), "words: expected an array of uint64"),
    "one word": (file_of(words=np.uint64(1)), "words: expected an array of uint64 of shape (1,), found uint64 of "
                                              "shape ()"),
    "a text in place of an array": (with_member("hidden.npy", b"a text"), "found no array in hidden"),
    "words that are numbers": (file_of(words=np.float64(1)), "words: expected an array of uint64"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_holds_something_else_is_bad_input(name):
    content, message = BROKEN[name]
    with pytest.raises(BadInput) as caught:
        parse(PATH, content)
    text = str(caught.value)
    assert text.startswith(f"{PATH}: ") and message in text and caught.value.exit_code == 65


def test_an_array_that_claims_to_be_huge_is_bad_input():
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<u8", "fortran_order": False, "shape": (1 << 50,)})
    with pytest.raises(BadInput, match="given.npz: expected weights of QRank"):
        parse(PATH, with_member("words.npy", header.getvalue() + bytes(64)))


def test_no_cut_or_changed_file_makes_a_traceback():
    content = bytearray(file_of())
    for at in [*range(300), *range(len(content) - 700, len(content), 3)]:
        changed = bytes(content[:at]) + bytes([content[at] ^ 0x5A]) + bytes(content[at + 1 :])
        for given in (changed, bytes(content[:at])):
            try:
                parse(PATH, given)
            except BadInput:
                pass


def test_the_shipped_file_is_small_and_whole():
    content = SHIPPED.read_bytes()
    weights = parse(SHIPPED, content)
    assert len(content) < 1_000_000 and pack(weights) == content
    assert 50_000 < len(weights.words.hashes) < 60_000
    urls = ["http://www.example.org/", "http://www.example.org/a/b/c/d/e/f/g/Member_Function-detail-0123.html"]
    front, deep = weights.levels(pa.array([f"{url}\n".encode() for url in urls], pa.large_binary())).tolist()
    assert front > deep
