"""Milliseconds of set operations on columns of 64-bit keys: sortednp, through storage/arrays.py, beside numpy.

Each row is an operation of bin/check or bin/show --duplicates, with keys in the order that they have there, and with
as large a share of common ones. The first group is what sortednp does. The second is what numpy still does, because it
is faster. The third is the search of a block's rows, which are pairs of keys: storage/pairs.py beside two ways with
sortednp. Figures and conclusions: docs/decisions/0009-rows-in-the-order-of-tables.md.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np

from contract.command import Parser, at_least
from storage.arrays import differ_sorted, find_in_sorted, find_repeated, is_in_sorted, starts_of_runs, unite_sorted
from storage.pairs import Runs

SIZES = (100_000, 1_000_000, 10_000_000)
QUICK_SIZES = (1_000,)
REPEATS = 5
BATCH = 20  # a cycle brings a twentieth of what is known
PARTS = 8
FEW = 10
URLS_PER_DOMAIN = 100
MILLISECOND_NS = 1e6


class Rivals(NamedTuple):
    """Two ways to the same result."""

    group: str
    name: str
    other_name: str
    sortednp: Callable[[], object]
    other: Callable[[], object]


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--repeats", type=at_least(1), default=REPEATS, metavar="N", help=f"interleaved repeats (default: {REPEATS})"
    )
    parser.add_argument("--quick", action="store_true", help="few keys, to see that it works; its figures mean nothing")


def measure(arguments) -> dict:
    figures: dict[str, dict[str, dict[str, float]]] = {}
    print(f"medians of {arguments.repeats} interleaved repeats; ratio: the other's time / sortednp's")
    print(f"  {'keys':>10}  {'operation':48}  {'sortednp':>11}  {'other':>11}  {'ratio':>6}")
    for size in QUICK_SIZES if arguments.quick else SIZES:
        group = ""
        for rivals in make_rivals(size):
            if rivals.group != group:
                group = rivals.group
                print(f"{group}:")
            row = compare(rivals, arguments.repeats)
            figures.setdefault(rivals.name, {})[str(size)] = row
            print(
                f"  {size:10,}  {rivals.name:48}  {row['sortednp_ms']:8.2f} ms  {row['other_ms']:8.2f} ms"
                f"  {row['ratio']:6.2f}  {rivals.other_name}",
                flush=True,
            )
    return figures


def compare(rivals: Rivals, repeats: int) -> dict[str, float]:
    """Medians, and the median of the ratios of each repeat."""
    taken: list[tuple[float, float]] = []
    for _ in range(repeats):
        taken.append((time_ms(rivals.sortednp), time_ms(rivals.other)))
    return {
        "sortednp_ms": round(median(ours for ours, _ in taken), 3),
        "other_ms": round(median(other for _, other in taken), 3),
        "ratio": round(median(other / ours for ours, other in taken), 2),
    }


def time_ms(operation: Callable[[], object]) -> float:
    began_ns = time.perf_counter_ns()
    operation()
    return (time.perf_counter_ns() - began_ns) / MILLISECOND_NS


def make_rivals(size: int) -> list[Rivals]:
    generator = np.random.default_rng(size)
    keys = np.unique(generator.integers(0, 1 << 64, size, np.uint64))
    shuffled = generator.permutation(keys)
    return [
        *rivals_of_check(keys, shuffled, generator),
        *rivals_of_duplicates(size, generator),
        *rivals_that_lose(keys, shuffled),
        *rivals_of_pairs(size, generator),
    ]


def rivals_of_check(keys: np.ndarray, shuffled: np.ndarray, generator: np.random.Generator) -> list[Rivals]:
    batch = generator.integers(0, 1 << 64, len(keys) // BATCH, np.uint64)
    half = shuffled[: len(shuffled) // 2]
    return [
        Rivals(
            "sortednp",
            "check: keys of a cycle (1/20) among those seen",
            "np.isin, np.concatenate",
            lambda: (is_in_sorted(batch, keys), unite_sorted(keys, np.unique(batch))),
            lambda: (np.isin(batch, shuffled), np.concatenate([shuffled, batch])),
        ),
        Rivals(
            "sortednp",
            "check: listed keys that were reached (half)",
            "np.isin",
            lambda: is_in_sorted(shuffled, np.unique(half)),
            lambda: np.isin(shuffled, half),
        ),
        Rivals(
            "sortednp",
            "check: keys lost, keys from nowhere (none)",
            "np.setdiff1d, twice",
            lambda: differ_sorted(keys, keys),
            lambda: (np.setdiff1d(keys, keys), np.setdiff1d(keys, keys)),
        ),
    ]


def rivals_of_duplicates(size: int, generator: np.random.Generator) -> list[Rivals]:
    """Digests of which a tenth occurs twice."""
    digests = generator.integers(0, 1 << 64, (size, 2), np.uint64)
    digests[: size // 10] = digests[size // 10 : 2 * (size // 10)]
    generator.shuffle(digests)
    page_ids = np.arange(size, dtype=np.uint64)

    def sort_repeated() -> np.ndarray:
        rows = find_repeated(np.ascontiguousarray(digests[:, 0]))
        return np.lexsort((page_ids[rows], digests[rows, 1], digests[rows, 0]))

    def sort_all() -> np.ndarray:
        return np.lexsort((page_ids, digests[:, 1], digests[:, 0]))

    name = "duplicates: digests that repeat (1/5), sorted"
    return [Rivals("sortednp", name, "np.lexsort of all", sort_repeated, sort_all)]


def rivals_that_lose(keys: np.ndarray, shuffled: np.ndarray) -> list[Rivals]:
    parts, few = np.array_split(shuffled, PARTS), np.sort(shuffled[:FEW])

    def unite_parts() -> np.ndarray:
        united = [np.unique(part) for part in parts]
        while len(united) > 1:
            united = [unite_sorted(*united[start : start + 2]) for start in range(0, len(united), 2)]
        return united[0]

    return [
        Rivals(
            "numpy",
            f"check: all keys of {PARTS} tables, none sorted by key",
            "np.unique(np.concatenate)",
            unite_parts,
            lambda: np.unique(np.concatenate(parts)),
        ),
        Rivals(
            "numpy",
            f"check: rows of {FEW} servers",
            "np.isin",
            lambda: is_in_sorted(shuffled, few),
            lambda: np.isin(shuffled, few),
        ),
    ]


def rivals_of_pairs(size: int, generator: np.random.Generator) -> list[Rivals]:
    """Rows of a block, and rows that arrive, half of which are known; both sorted by (domain key, URL key)."""
    domains = np.unique(generator.integers(0, 1 << 64, max(1, size // URLS_PER_DOMAIN), np.uint64))
    domain, key = make_pairs(domains, size, generator)
    known = np.sort(generator.choice(size, size // (2 * BATCH), replace=False))
    new_domain, new_key = make_pairs(domains, size // (2 * BATCH), generator)
    first, second = np.concatenate([domain[known], new_domain]), np.concatenate([key[known], new_key])
    order = np.lexsort((second, first))
    first, second = first[order], second[order]

    def search_pairs() -> tuple[np.ndarray, np.ndarray]:
        starts = starts_of_runs(domain)
        return Runs(domain[starts], np.append(starts, len(domain)), key).search(first, second)

    def intersect_domains() -> list[np.ndarray]:
        starts = starts_of_runs(domain)
        runs = dict(zip(domain[starts].tolist(), zip(starts.tolist(), np.append(starts[1:], len(domain)).tolist())))
        begins = starts_of_runs(first)
        found = []
        for begin, end in zip(begins.tolist(), np.append(begins[1:], len(first)).tolist()):
            low, high = runs.get(int(first[begin]), (0, 0))
            found.append(find_in_sorted(second[begin:end], key[low:high])[1] + low)
        return found

    def intersect_packed() -> tuple[np.ndarray, np.ndarray]:
        starts = starts_of_runs(domain)
        bits = np.uint64(len(starts).bit_length())
        shift = np.uint64(64) - bits
        number = np.repeat(np.arange(len(starts), dtype=np.uint64), np.diff(np.append(starts, len(domain))))
        wanted = np.searchsorted(domain[starts], first).astype(np.uint64)
        return find_in_sorted(wanted << shift | second >> bits, number << shift | key >> bits)

    group, name = "pairs", "verifier: new rows (1/20) in a block, "
    return [
        Rivals(group, name + "per domain", "storage.pairs", intersect_domains, search_pairs),
        Rivals(group, name + "packed", "storage.pairs; packed is not exact", intersect_packed, search_pairs),
    ]


def make_pairs(domains: np.ndarray, size: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    domain, key = generator.choice(domains, size), generator.integers(0, 1 << 64, size, np.uint64)
    order = np.lexsort((key, domain))
    return domain[order], key[order]
