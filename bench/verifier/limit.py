"""The physical limit: what no verifier that rewrites a block can beat, with plain numpy."""

import os
import time
from pathlib import Path

import numpy as np


def time_limit(generation: Path | None, keys: np.ndarray, scratch: Path) -> float:
    """Seconds to sort the batch's keys (u64), and to read the block's files once and write them once, synced."""
    files = sorted(path for path in generation.iterdir() if path.is_file()) if generation else []
    keys = np.random.default_rng(1).permutation(keys)
    scratch.mkdir(exist_ok=True)
    began_s = time.perf_counter()
    keys.sort()
    for path in files:
        array = np.fromfile(path, np.uint8)
        with open(scratch / path.name, "wb") as file:
            file.write(array.data)
            os.fsync(file.fileno())
    taken_s = time.perf_counter() - began_s
    for path in files:
        (scratch / path.name).unlink()
    return taken_s
