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


def bits_of(summary: dict[str, Any] | None) -> int:
    """The key prefixes that occur, as the bits of one number; 0 where there are no rows."""
    if not summary or not summary["rows"]:
        return 0
    return int.from_bytes(bytes.fromhex(summary["prefixes"]), "big")


def mask_of(low: int, high: int) -> int:
    """The bits of the key prefixes that keys in [low, high) may have."""
    first, last = low >> (KEY_BITS - PREFIX_BITS), (high - 1) >> (KEY_BITS - PREFIX_BITS)
    return ((1 << (last - first + 1)) - 1) << ((1 << PREFIX_BITS) - 1 - last)


def may_hold(summary: dict[str, Any] | None, low: int, high: int) -> bool:
    """Whether there may be rows with keys in [low, high)."""
    return bool(bits_of(summary) & mask_of(low, high))


def row_groups(summary: dict[str, Any], low: int, high: int) -> list[int]:
    """The row groups that may hold keys in [low, high)."""
    firsts = summary["first_keys"]
    ends = [*firsts[1:], summary["last_key"]]
    return [group for group, (first, end) in enumerate(zip(firsts, ends)) if first < high and end >= low]
