"""Which block a domain key belongs to: the top bits of the key, reversed, so that a block is an interval.

Checked in tests/property: for every N the blocks are disjoint intervals that cover all keys, and the step from
N to N + 1 changes only the block that is split.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from storage.arrays import Keys

KEY_BITS = 64


def bits_of_block(block: int, blocks: int) -> int:
    """How many top bits of a key decide that it is in this block."""
    bits = (blocks - 1).bit_length()
    whole = block >= 1 << (bits - 1) if bits else True
    sibling_exists = bits and block + (1 << (bits - 1)) < blocks
    return bits if whole or sibling_exists else bits - 1


@lru_cache(1 << 14)
def interval(block: int, blocks: int) -> tuple[int, int]:
    """The keys [low, high) of a block."""
    bits = bits_of_block(block, blocks)
    top = reverse_bits(block, bits)
    return top << (KEY_BITS - bits), (top + 1) << (KEY_BITS - bits)


def in_interval(keys: Keys, low: int, high: int) -> npt.NDArray[np.bool_]:
    """Mask of the u64 keys in [low, high); high may be 2^64."""
    return (keys >= np.uint64(low)) & (keys <= np.uint64(high - 1))


def block_of(key: int, blocks: int) -> int:
    bits = (blocks - 1).bit_length()
    block = reverse_bits(key >> (KEY_BITS - bits), bits) if bits else 0
    return block if block < blocks else block - (1 << (bits - 1))


def block_to_split(blocks: int) -> int:
    """The block that is split when N grows by one; the new block is number N."""
    return blocks - (1 << (blocks.bit_length() - 1))


def reverse_bits(number: int, bits: int) -> int:
    return int(format(number, f"0{bits}b")[::-1], 2) if bits else 0
