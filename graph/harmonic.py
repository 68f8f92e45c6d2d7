"""Harmonic centrality: the sum of 1 / distance over all nodes that lead to a node.

P. Boldi and S. Vigna, "Axioms for centrality", Internet Mathematics 10, 2014. Exact by searches from 64 nodes at once,
one bit each. For many nodes by HyperBall: P. Boldi and S. Vigna, "In-core computation of geometric centralities with
HyperBall", ICDMW 2013. It keeps, per node, a HyperLogLog counter of the nodes that reach it within t steps (Flajolet,
Fusy, Gandouet, Meunier, AofA 2007); sizes are off by a relative standard deviation of 1.04 / sqrt(registers).
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from graph.csr import Csr
from graph.products import Values
from storage.arrays import Array, Keys
from storage.compiled import compiled

EXACT_NODES_MAX = 100_000
SEARCHES = 64  # bits of a word
REGISTER_BITS = (4, 10)  # least and most registers of a counter, as powers of two
# Of SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014): a hash of 64 bits for each number.
STEP, FIRST, SECOND = (np.uint64(value) for value in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


class Centrality(NamedTuple):
    values: Values
    error: float  # relative standard deviation of the number of nodes within a distance; 0: exact


def harmonic(backlinks: Csr, memory_bytes: int, exact_max: int = EXACT_NODES_MAX) -> Centrality:
    """Weights do not count. The memory bounds the counters, and so the error."""
    targets, offsets = np.ascontiguousarray(backlinks.targets, np.int32), backlinks.offsets.astype(np.int64)
    if len(backlinks) <= exact_max:
        return Centrality(search_all(offsets, targets), 0.0)
    per_node = memory_bytes // (2 * len(backlinks))  # two counters: of this step and of the one before
    bits = min(max(per_node.bit_length() - 1, REGISTER_BITS[0]), REGISTER_BITS[1])
    return Centrality(count_balls(offsets, targets, bits), 1.04 / sqrt(1 << bits))


def search_all(offsets: Array, targets: Array) -> Values:
    nodes = len(offsets) - 1
    sums = np.zeros(nodes)
    for first in range(0, nodes, SEARCHES):
        seen, front = np.zeros(nodes, np.uint64), np.zeros(nodes, np.uint64)
        searched = np.arange(first, min(first + SEARCHES, nodes))
        seen[searched] = front[searched] = np.uint64(1) << (searched - first).astype(np.uint64)
        distance, is_moving = 1, 1
        while is_moving:
            following = np.empty(nodes, np.uint64)
            is_moving = step_searches(offsets, targets, front, distance, seen, sums, following)
            front, distance = following, distance + 1
    return sums


def count_balls(offsets: Array, targets: Array, bits: int, seed: int = 0) -> Values:
    nodes, registers = len(offsets) - 1, 1 << bits
    counters, following = np.zeros(nodes * registers, np.uint8), np.empty(nodes * registers, np.uint8)
    fill_counters(hash_numbers(nodes, seed), bits, counters)
    sizes, sums = np.ones(nodes), np.zeros(nodes)
    distance, is_moving = 1, 1
    while is_moving:
        is_moving = step_balls(offsets, targets, counters, bits, distance, sizes, sums, following)
        counters, following = following, counters
        distance += 1
    return sums


def hash_numbers(count: int, seed: int) -> Keys:
    with np.errstate(over="ignore"):
        hashes = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed * count)) * STEP
        hashes = (hashes ^ hashes >> np.uint64(30)) * FIRST
        hashes = (hashes ^ hashes >> np.uint64(27)) * SECOND
        return hashes ^ hashes >> np.uint64(31)


@compiled("i8[] i4[] u8[] i8 -> u8[] f8[] u8[]")
def step_searches(
    offsets: Array, targets: Array, front: Array, distance: int, seen: Array, sums: Array, following: Array
) -> int:
    """One step of 64 searches: which ones reach each node now for the first time. Returns whether any does."""
    is_moving = 0
    for node in range(len(offsets) - 1):
        reached = np.uint64(0)
        for at in range(offsets[node], offsets[node + 1]):
            reached |= front[targets[at]]
        reached &= ~seen[node]
        following[node] = reached
        if reached:
            is_moving = 1
            seen[node] |= reached
            count = 0
            while reached:
                reached &= reached - np.uint64(1)
                count += 1
            sums[node] += count / distance
    return is_moving


@compiled("u8[] i8 -> u1[]")
def fill_counters(hashes: Array, bits: int, counters: Array) -> int:
    """Puts each node into its own counter: the top bits choose a register, which gets the zeros that follow, plus 1."""
    for node in range(len(hashes)):
        rest, rank = hashes[node] << np.uint64(bits), 1
        while rank <= 64 - bits and not rest >> np.uint64(63):
            rest <<= np.uint64(1)
            rank += 1
        counters[(node << bits) + np.int64(hashes[node] >> np.uint64(64 - bits))] = rank
    return 0


@compiled("i8[] i4[] u1[] i8 i8 -> f8[] f8[] u1[]")
def step_balls(
    offsets: Array,
    targets: Array,
    counters: Array,
    bits: int,
    distance: int,
    sizes: Array,
    sums: Array,
    following: Array,
) -> int:
    """One step of all balls: each counter takes those of the nodes that lead to it. Returns whether any has changed."""
    registers, is_moving = 1 << bits, 0
    alpha = 0.673 if bits == 4 else 0.697 if bits == 5 else 0.709 if bits == 6 else 0.7213 / (1 + 1.079 / registers)
    for node in range(len(offsets) - 1):
        begin = node << bits
        for register in range(registers):
            following[begin + register] = counters[begin + register]
        has_changed = False
        for at in range(offsets[node], offsets[node + 1]):
            other = np.int64(targets[at]) << bits
            for register in range(registers):
                if counters[other + register] > following[begin + register]:
                    following[begin + register] = counters[other + register]
                    has_changed = True
        if has_changed:
            is_moving = 1
            total, zeros = 0.0, 0
            for register in range(registers):
                value = following[begin + register]
                total += 2.0 ** -np.float64(value)
                zeros += value == 0
            size = alpha * registers * registers / total
            if zeros and size <= 2.5 * registers:
                size = registers * np.log(registers / zeros)
            if size > sizes[node]:
                sums[node] += (size - sizes[node]) / distance
                sizes[node] = size
    return is_moving
