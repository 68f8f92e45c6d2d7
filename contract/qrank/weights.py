"""Files of weights: a trained network with the dictionary that its features need, as an .npz file of numpy.

| array | dtype | shape | |
| --- | --- | --- | --- |
| features | S | 20 | names of the features with their maxima, as in `length 650`: those of features.py |
| hidden | f4 | 20, 60 | weight of each feature for each hidden unit |
| hidden_bias | f4 | 60 | |
| output | f4 | 60 | weight of each hidden unit |
| output_bias | f4 | 1 | |
| words | u8 | any | hashes of the words of the dictionary, sorted, each once (features.py) |

The arrays are not compressed, and a file has at most FILE_MAX_BYTES, so reading one needs little memory whatever it
holds. Nothing in it is executed: arrays of Python objects are refused.
"""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract.errors import BadInput
from contract.qrank.features import FEATURES, Words, features_of
from contract.qrank.network import HIDDEN, INPUTS, Network
from contract.url import Keys
from storage.arrays import Array

SHIPPED = Path(__file__).with_name("weights.npz")
SUFFIX = ".npz"
FILE_MAX_BYTES = 16 << 20
WEIGHT_MAX = 1e6  # far above any trained weight, and low enough that no sum overflows
NAMES = np.array([f"{name} {most}".encode() for name, most in FEATURES])
SHAPES = {"hidden": (INPUTS, HIDDEN), "hidden_bias": (HIDDEN,), "output": (HIDDEN,), "output_bias": (1,)}
ARRAYS = ("features", *SHAPES, "words")


@dataclass
class Weights:
    network: Network
    words: Words

    def levels(self, lines: pa.LargeBinaryArray) -> Array:
        """The level of each canonical URL, u1, in their order; a larger one is more important."""
        return self.network.levels(features_of(lines, self.words))


def pack(weights: Weights) -> bytes:
    """The file; the same bytes for the same weights."""
    content = io.BytesIO()
    np.savez(content, features=NAMES, **vars(weights.network), words=weights.words.hashes)
    return content.getvalue()


def parse(path: Path, content: bytes) -> Weights:
    """The weights of a file; BadInput where it holds something else."""
    arrays = read_arrays(path, content)
    check_features(path, arrays["features"])
    for name, shape in SHAPES.items():
        found = arrays[name]
        require(path, name, found, "f4", shape)
        if not (np.abs(found) <= WEIGHT_MAX).all():  # NaN is not within the bounds either
            at = tuple(map(int, np.argwhere(~(np.abs(found) <= WEIGHT_MAX))[0]))
            raise BadInput(
                f"{path}: {name}: expected numbers from {-WEIGHT_MAX:.0e} to {WEIGHT_MAX:.0e}, "
                f"found {found[at]} at {list(at)}"
            )
    words = arrays["words"]
    require(path, "words", words, "u8", (words.size,))
    if not (words[1:] > words[:-1]).all():
        row = int(np.flatnonzero(words[1:] <= words[:-1])[0]) + 1
        raise BadInput(f"{path}: words: expected rising hashes, found {words[row]} behind {words[row - 1]} at [{row}]")
    return Weights(Network(**{name: arrays[name] for name in SHAPES}), Words(words))


def read_arrays(path: Path, content: bytes) -> Mapping[str, Array]:
    expected = f"{path}: expected weights of QRank, an .npz file that bin/train-qrank wrote"
    if len(content) > FILE_MAX_BYTES:
        raise BadInput(f"{expected}, of at most {FILE_MAX_BYTES:,} bytes, found {len(content):,} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            if any(member.compress_type != zipfile.ZIP_STORED for member in members.infolist()):
                raise BadInput(f"{expected}, found compressed arrays")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            missing = [name for name in ARRAYS if name not in file.files]
            if missing:
                raise BadInput(f"{expected}, with the arrays {', '.join(ARRAYS)}; found no {', '.join(missing)}")
            arrays = {name: file[name] for name in ARRAYS}
    # What is damaged may raise any of these; an array that claims to be huge is a MemoryError.
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, KeyError, TypeError, NotImplementedError, MemoryError,
            SyntaxError, RuntimeError) as error:  # fmt: skip
        what = str(error).partition("\n")[0] or type(error).__name__
        raise BadInput(f"{expected}, found something else ({what:.100})") from None
    bare = [name for name, found in arrays.items() if not isinstance(found, np.ndarray)]
    if bare:  # numpy gives the bytes of a member that does not begin as an array
        raise BadInput(f"{expected}; found no array in {', '.join(bare)}")
    return arrays


def check_features(path: Path, found: Array) -> None:
    if found.shape != NAMES.shape or found.dtype.kind != "S":
        raise BadInput(
            f"{path}: features: expected {len(NAMES)} names, found an array of {found.dtype} of shape {found.shape}"
        )
    differs = np.flatnonzero(found != NAMES)
    if len(differs):
        row = differs[0]
        raise BadInput(
            f"{path}: features: expected {NAMES[row].decode()!r} as number {row + 1}, "
            f"found {found[row].decode('utf-8', 'replace')!r}: the weights belong to other features, train them again"
        )


def require(path: Path, name: str, found: Array, dtype: str, shape: tuple[int, ...]) -> None:
    if found.dtype != np.dtype(dtype) or found.shape != shape:
        raise BadInput(
            f"{path}: {name}: expected an array of {np.dtype(dtype)} of shape {shape}, "
            f"found {found.dtype} of shape {found.shape}"
        )


def convert(path: Path, content: bytes, keys: Keys) -> bytes:
    """The crawl's own copy of a file of weights: the same bytes, once they are checked."""
    parse(path, content)
    return content


@lru_cache(maxsize=1)
def read_weights(path: Path) -> Weights:
    """The crawl's own copy. A copy never changes, so a process reads it once."""
    return parse(path, path.read_bytes())
