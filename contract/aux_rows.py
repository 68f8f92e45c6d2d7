"""What a manifest records of its AUX, so that a block finds its slice without opening the files of others."""

from typing import Any

import numpy as np

from contract.blocks import KEY_BITS
from storage.arrays import Keys
from storage.tables import ROW_GROUP_ROWS

PREFIX_BITS = 12  # exact for up to 4,096 blocks; with more, a block may also open rows of its neighbour


def summarise(domain_keys: Keys) -> dict[str, Any]:
    """First key of each row group, last key, and a bitmap of the key prefixes that occur; keys are u64, sorted."""
    present = np.zeros(1 << PREFIX_BITS, bool)
    present[domain_keys >> np.uint64(KEY_BITS - PREFIX_BITS)] = True
    return {
        "rows": len(domain_keys),
        "first_keys": domain_keys[::ROW_GROUP_ROWS].tolist(),
        "last_key": int(domain_keys[-1]) if len(domain_keys) else None,
        "prefixes": np.packbits(present).tobytes().hex(),
    }


def may_hold(summary: dict[str, Any] | None, low: int, high: int) -> bool:
    """Whether there may be rows with keys in [low, high)."""
    if not summary or not summary["rows"]:
        return False
    present = np.unpackbits(np.frombuffer(bytes.fromhex(summary["prefixes"]), np.uint8))
    shift = KEY_BITS - PREFIX_BITS
    return bool(present[low >> shift : ((high - 1) >> shift) + 1].any())


def row_groups(summary: dict[str, Any], low: int, high: int) -> list[int]:
    """The row groups that may hold keys in [low, high)."""
    firsts = summary["first_keys"]
    ends = [*firsts[1:], summary["last_key"]]
    return [group for group, (first, end) in enumerate(zip(firsts, ends)) if first < high and end >= low]
