"""The network of QRank: 20 features, 60 hidden units and one output, each unit a sigmoid. numpy applies it.

The output is the level of a page: 0 for the least ranks and 1 for the largest. R keeps it as a byte.
"""

from dataclasses import dataclass

import numpy as np

from contract.qrank.features import FEATURES
from storage.arrays import Array

INPUTS = len(FEATURES)
HIDDEN = 3 * INPUTS
LEVEL_MAX = 255  # of the byte
# Rows that are computed together. Their number is always the same, with zeros behind the last row: libraries may add up
# in another order in matrices of another size, and then the byte of a URL would depend on its neighbours.
ROWS_AT_ONCE = 1 << 9


@dataclass
class Network:
    """Weights, f4: `hidden` has a row per feature and a column per hidden unit."""

    hidden: Array
    hidden_bias: Array
    output: Array
    output_bias: Array

    def levels(self, features: Array) -> Array:
        """The level of each row of features (f4), u1, in their order."""
        levels = np.empty(len(features), np.uint8)
        rows = np.zeros((ROWS_AT_ONCE, INPUTS), np.float32)
        for start in range(0, len(features), ROWS_AT_ONCE):
            some = features[start : start + ROWS_AT_ONCE]
            rows[: len(some)] = some
            levels[start : start + len(some)] = np.rint(self._apply(rows) * LEVEL_MAX)[: len(some)]
        return levels

    def _apply(self, rows: Array) -> Array:
        hidden = sigmoid(rows @ self.hidden + self.hidden_bias)
        return sigmoid(hidden @ self.output + self.output_bias)


def sigmoid(values: Array) -> Array:
    """1 / (1 + e^-x), in place; written with tanh, which no x makes overflow."""
    values *= np.float32(0.5)
    np.tanh(values, out=values)
    values += np.float32(1)
    values *= np.float32(0.5)
    return values
