"""Clusters of 64-bit fingerprints that differ in few bits: pages whose texts are nearly the same.

The method of Manku, Jain and Das Sarma (2007). The 64 bits are cut into blocks, more than the bits that may differ. Two
fingerprints that differ in k bits agree in all but k of the blocks. So for each choice of all blocks but k, the chosen
blocks are moved to the front and the fingerprints sorted: near ones then lie in one run of equal first bits, where
neighbours are compared. More fingerprints need more blocks: longer first bits make shorter runs, but more tables.
"""

from itertools import combinations

import numpy as np

from storage.arrays import starts_of_runs

NONE = 0  # the fingerprint of a page that has none
NEIGHBOURS_MAX = 256  # compared with each row of a run: enough to chain thousands of pages made from one template


def find_clusters(fingerprints: np.ndarray, most_bits: int = 3) -> list[np.ndarray]:
    """Row numbers, i64 and sorted, of each cluster of two rows and more, largest first, ties by first row.

    Takes u64 in any order. A row belongs to a cluster if it differs from one of its rows in at most `most_bits` bits
    (a few: the number of tables grows with them). Rows of 0 belong to none. In runs of more than NEIGHBOURS_MAX rows a
    pair may be missed.
    """
    rows = np.flatnonzero(fingerprints != NONE)
    if not len(rows):
        return []
    values, indexes = np.unique(fingerprints[rows].astype(np.uint64), return_inverse=True)
    labels = np.arange(len(values))
    for blocks in choices_of_blocks(len(values), most_bits):
        for left, right in near_pairs(values, blocks, most_bits):
            labels = join(labels, left, right)
    return split_by_label(rows, labels[indexes])


def choices_of_blocks(count: int, most_bits: int) -> list[list[tuple[int, int]]]:
    """For each table the blocks, (lowest bit, width), whose bits come first."""
    number = most_bits + 1
    while number < 16 and 64 * (number - most_bits) // number < count.bit_length():
        number += 1
    bounds = [64 * block // number for block in range(number + 1)]
    blocks = [(low, high - low) for low, high in zip(bounds, bounds[1:])]
    return [list(chosen) for chosen in combinations(blocks, number - most_bits)]


def near_pairs(values: np.ndarray, blocks: list[tuple[int, int]], most_bits: int):
    """Pairs of indexes of near values, as two arrays at a time; `values` are u64 and unique."""
    kept = np.uint64(sum((1 << width) - 1 << low for low, width in blocks))
    first = values & kept
    order = np.lexsort((values, first))
    sorted_values, sorted_first = values[order], first[order]
    left = np.arange(len(values))
    for distance in range(1, NEIGHBOURS_MAX + 1):
        left = left[: np.searchsorted(left, len(values) - distance)]
        left = left[sorted_first[left] == sorted_first[left + distance]]
        if not len(left):
            return
        differing = sorted_values[left] ^ sorted_values[left + distance]
        for _ in range(most_bits):
            differing &= differing - np.uint64(1)  # clears the lowest bit that is set
        near = left[differing == 0]
        if len(near):
            yield order[near], order[near + distance]


def join(labels: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The labels after each left and right have become one; a label is the least index of its cluster."""
    while True:
        ours, theirs = labels[left], labels[right]
        apart = ours != theirs
        if not apart.any():
            return labels
        left, right, ours, theirs = left[apart], right[apart], ours[apart], theirs[apart]
        np.minimum.at(labels, np.maximum(ours, theirs), np.minimum(ours, theirs))
        while (labels != (shorter := labels[labels])).any():
            labels = shorter


def split_by_label(rows: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    shared = np.bincount(labels)[labels] > 1
    rows, labels = rows[shared], labels[shared]
    order = np.argsort(labels, kind="stable")
    starts = starts_of_runs(labels[order])
    clusters = np.split(rows[order], starts[1:]) if len(starts) else []
    return sorted(clusters, key=lambda cluster: (-len(cluster), cluster[0]))
