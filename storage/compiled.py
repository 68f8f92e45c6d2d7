"""Loops over bytes or rows that no array operation expresses, compiled to machine code by numba.

The only module that imports numba, and it does so when a loop is first needed: the import takes half a second. numba
keeps the machine code in `__pycache__` beside the loop's module. The kept code is valid while the text of that file
stays the same, so a loop calls only functions of its own file and reads only constants that its own file sets
(tests/stages/test_compiled.py holds this).

A process that forks stages calls load_all() once. Forks that follow neither compile nor read what was kept.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, overload

import numpy as np

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}  # no loop divides by what may be zero
loops: list["Loop"] = []  # of all modules that are imported by now
_parts: list[Callable[..., Any]] = []  # functions that loops call, which numba does not know yet

Part = TypeVar("Part", bound=Callable[..., Any])


@overload
def compiled() -> Callable[[Part], Part]: ...
@overload
def compiled(signature: str, plain_max: int = 0) -> Callable[[Callable[..., int]], "Loop"]: ...
def compiled(signature: str | None = None, plain_max: int = 0) -> Callable[[Callable[..., Any]], Any]:
    """Marks a function as a loop with a signature, such as "u1[] i8 -> u8[,]", or without one as a part of loops.

    Arrays are contiguous, of one dimension or, with a comma, two; the loop writes only to those behind the arrow. Until
    numba is imported, calls run as plain Python as long as the lengths of their last arguments, added up over all calls
    of the process, stay below `plain_max`.
    """

    def mark(function: Callable[..., Any]) -> Any:
        if signature is None:
            _parts.append(function)
            return function
        loops.append(Loop(function, signature, plain_max))
        return loops[-1]

    return mark


def is_loaded() -> bool:
    """Whether this process, or the one that forked it, has imported numba: then loops cost nothing to begin with."""
    return "numba" in sys.modules


def load_all() -> None:
    """Loads the loops of all modules that are imported by now, and compiles those whose code is not kept."""
    for loop in loops:
        loop.load()


class Loop:
    """A loop that is compiled when it is first needed. `function` is the same in Python: slow, and with every check."""

    def __init__(self, function: Callable[..., int], signature: str, plain_max: int):
        self.function = function
        self._signature = signature
        self.plain_left = plain_max
        self.machine: Callable[..., int] | None = None

    def __call__(self, *arguments: Any) -> int:
        if self.machine is None and not self.pays(len(arguments[-1])):
            # Items of a memoryview are Python's integers, which cost a tenth of numpy's.
            views = [value.data if isinstance(value, np.ndarray) else value for value in arguments]
            with np.errstate(over="ignore"):  # as in machine code
                return self.function(*views)
        return (self.machine or self.load())(*arguments)

    def pays(self, items: int) -> bool:
        """Whether so many items more are worth half a second for numba, given how many were done without it."""
        if not is_loaded():
            self.plain_left = max(self.plain_left - items, 0)
        return is_loaded() or not self.plain_left

    def load(self) -> Callable[..., int]:
        if self.machine is None:
            with without_scipy():
                self.machine = self._load()
        return self.machine

    def _load(self) -> Callable[..., int]:
        from numba import njit
        from numba.extending import register_jitable

        while _parts:
            register_jitable(**_OPTIONS)(_parts.pop())
        types = types_of(self._signature)
        try:
            machine: Callable[..., int] = njit(types, cache=True, **_OPTIONS)(self.function)
        except Exception:  # unpickling what is damaged may raise anything, and so may a full disk
            machine = self._load_anew(types)
        return machine

    def _load_anew(self, types: tuple[Any, ...]) -> Callable[..., int]:
        """Compiles without what was kept, which is replaced if there is a folder that can be written."""
        from numba import njit

        try:
            njit(cache=True, **_OPTIONS)(self.function).recompile()  # empties the index of what was kept
            machine: Callable[..., int] = njit(types, cache=True, **_OPTIONS)(self.function)
        except Exception:
            machine = njit(types, **_OPTIONS)(self.function)
        return machine


@contextmanager
def without_scipy() -> Iterator[None]:
    """Hides scipy, if it is not imported yet. No loop needs it, and numba would import it wherever it is installed.

    That takes 0.2 s in each process, which runs lscpu besides. A None in sys.modules makes an import fail.
    """
    if "scipy" in sys.modules:
        yield
        return
    sys.modules["scipy"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["scipy"]


def types_of(signature: str) -> tuple[Any, ...]:
    """What numba calls these types."""
    from numba import from_dtype, types

    read, _, written = signature.rpartition("->") if "->" in signature else (signature, "", "")
    found: list[Any] = []
    for text, is_read_only in [(text, True) for text in read.split()] + [(text, False) for text in written.split()]:
        name, _, dimensions = text.partition("[")
        number = from_dtype(np.dtype(name))
        found.append(types.Array(number, len(dimensions), "C", readonly=is_read_only) if dimensions else number)
    return tuple(found)
