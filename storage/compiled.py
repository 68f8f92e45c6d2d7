"""Functions that are compiled to machine code, for loops over bytes or rows that no array operation expresses; the one place that imports numba.

Whoever imports this module waits a third of a second for numba, and some seconds where a function is compiled for the first time on a
machine; what was compiled is kept beside the function's module, or in the user's cache folder. So import it where there is enough to do.

What a compiled function reads from other modules is frozen into what is kept: tables are handed over as arguments, not read as globals.
"""

from collections.abc import Callable

from numba import njit, types

# Types of arguments and results. Arrays are contiguous; BYTES are those of an object that must not change.
BYTES = types.Array(types.uint8, 1, "C", readonly=True)
U1, I4, I8, I4_ROWS = types.uint8[::1], types.int32[::1], types.int64[::1], types.int32[:, ::1]
SIX_I8 = types.UniTuple(types.int64, 6)
_OPTIONS = {"nogil": True, "error_model": "numpy"}  # a division by zero is not looked for


def compiled(signature: object = None) -> Callable[[Callable], Callable]:
    """Compiles a function at once for one signature, or, without one, wherever another compiled function calls it."""
    def compile_one(function: Callable) -> Callable:
        if signature is None:
            return njit(**_OPTIONS)(function)
        try:
            return njit(signature, cache=True, **_OPTIONS)(function)
        except Exception:  # nothing can be kept, or what was kept is not whole: of a function that is wrong the next line tells
            return njit(signature, **_OPTIONS)(function)

    return compile_one
