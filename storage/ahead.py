"""Work in a second thread: the next item of an iterator while the caller works on the present one, or what comes after.

Worth it where both sides leave the interpreter to other threads, as sorting, reading tables and packing do. One item
more than without is in memory.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

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


class Behind:
    """Runs calls in their order in a second thread; a call waits until the one before it has ended."""

    def __enter__(self) -> "Behind":
        self._pool = ThreadPoolExecutor(1)
        self._last: Future[object] | None = None
        return self

    def __call__(self, function: Callable[..., object], *arguments: Any) -> None:
        """An exception of the call before comes here."""
        if self._last is not None:
            self._last.result()
        self._last = self._pool.submit(function, *arguments)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        if self._last is not None and kind is None:
            self._last.result()
