"""Edges as sorted pairs of numbers: what a build found anew, merged with the edges of the earlier graph."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from graph.csr import bits_of
from storage.ahead import ahead
from storage.arrays import Keys, differ_sorted, starts_of_runs, unite_sorted
from storage.external_sort import ExternalSort
from storage.side_by_side import Columns, side_by_side

WEIGHT_MAX = np.iinfo(np.uint32).max


def sort_edges(scratch: Path, name: str, nodes: int, expected: int, at_once: int) -> ExternalSort:
    return ExternalSort(scratch / name, 2 * bits_of(nodes), expected, at_once)


def distinct_pairs(edges: ExternalSort) -> Iterator[Columns]:
    """The sorted pairs, each once."""
    for piece in ahead(edges.read()):
        pairs = piece.numbers
        yield (pairs if (pairs[1:] > pairs[:-1]).all() else pairs[np.append(True, pairs[1:] != pairs[:-1])],)


def merge_edges(old: Iterator[Columns], edges: ExternalSort) -> Iterator[tuple[Keys, Keys]]:
    """(all pairs, those of them that are new), sorted, each once."""
    for before, found in side_by_side(old, distinct_pairs(edges)):
        if before is None:
            yield found[0], found[0]
        elif found is None:
            yield before[0], before[0][:0]
        else:
            yield unite_sorted(before[0], found[0]), differ_sorted(found[0], before[0])[0]


def summed_pairs(edges: ExternalSort) -> Iterator[Columns]:
    """The sorted pairs, each once, with the sum of their weights (i64)."""
    for piece in ahead(edges.read()):
        yield sum_weights(piece.numbers, piece.payload)


def sum_weights(pairs: Keys, weights: np.ndarray) -> Columns:
    """Each pair once; pairs are sorted."""
    starts = starts_of_runs(pairs)
    return pairs[starts], np.add.reduceat(weights.astype(np.int64), starts)


def merge_weighted(old: Iterator[Columns], edges: ExternalSort) -> Iterator[tuple[Columns, Columns | None]]:
    """(all pairs, those of `edges`), sorted, each once, with weights."""
    for before, found in side_by_side(old, summed_pairs(edges)):
        merged = before or found
        if before and found:
            pairs, weights = (np.concatenate(columns) for columns in zip(before, found))
            order = np.argsort(pairs, kind="stable")
            merged = sum_weights(pairs[order], weights[order])
        yield (merged[0], np.minimum(merged[1], WEIGHT_MAX)), found
