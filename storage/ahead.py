"""Makes the next item of an iterator in a second thread while the caller works on the present one.

Worth it where both sides leave the interpreter to other threads, as sorting, reading tables and packing do. One item
more than without is in memory.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items in the same order; an exception comes where its item would have come."""
    source = iter(items)
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(take, source)
        while found := following.result():
            following = pool.submit(take, source)
            yield found[0]


def take(source: Iterator[Item]) -> tuple[Item] | None:
    for item in source:
        return (item,)
    return None
