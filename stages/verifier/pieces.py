"""Cuts a block's keys into pieces that fit into memory.

A piece is a range of pairs (domain key, URL key), each pair one number. Keys are hashes, so half a range has half
of its rows. A domain may be larger than a piece: its range is halved down to the domain alone, and then by URL keys.
"""

from collections.abc import Callable

Range = tuple[int, int]  # [low, high)


def cut(low: int, high: int, weigh: Callable[[int, int], int], most: int) -> list[Range]:
    """Ranges that follow each other from `low` to `high`, each weighing at most `most` unless it is a single pair."""
    pieces: list[Range] = []
    weights: list[int] = []
    pending = [(low, high)]
    while pending:
        begin, end = pending.pop()
        weight = weigh(begin, end)
        if weight > most and end - begin > 1:
            middle = (begin + end) // 2
            pending += [(middle, end), (begin, middle)]
        elif pieces and weights[-1] + weight <= most:
            pieces[-1], weights[-1] = (pieces[-1][0], end), weights[-1] + weight
        else:
            pieces.append((begin, end))
            weights.append(weight)
    return pieces
