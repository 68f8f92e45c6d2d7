"""Functions compiled to machine code, for loops over bytes or rows that no array operation expresses.

The only module that imports numba. Numba compiles a function when it is first called on a machine, which takes a second
or two. The machine code is kept beside the function's module, or in the user's cache folder. From then on LLVM alone
loads it: in some hundredths of a second, where numba would take half a second.

What can be compiled: loops over arrays and numbers that are arguments. Such a function makes no array, raises nothing
and returns one integer. It calls only functions of its own module with the same mark, and those of this module. What
else it reads of its module is frozen into the kept code, which is valid until the module's file changes. Its
annotations are for readers and mypy: numba takes the types from the signature.
"""

import ctypes
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from operator import index
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, overload

import numpy as np
import xxhash

from storage.arrays import Array

_ANY = "T"  # in a signature: each of some types
_DIGEST_BYTES = 16
_EACH_BYTE, _TOP_BITS = np.uint64(0x0101_0101_0101_0101), np.uint64(0x8080_8080_8080_8080)
_lock = threading.Lock()

Integer = int | np.integer[Any]
Inner = TypeVar("Inner", bound=Callable[..., Any])  # a function without a signature


@overload
def compiled() -> Callable[[Inner], Inner]: ...
@overload
def compiled(signature: str, of: tuple[str, ...] = ()) -> Callable[[Callable[..., int]], "Loop"]: ...
def compiled(signature: str | None = None, of: tuple[str, ...] = ()) -> Callable[[Callable[..., Any]], Any]:
    """Compiles a function for one signature, such as "u8[] i8 T[,] T[]", where `T` is each of the types `of`.

    Arrays are contiguous, of one dimension or, with a comma, two. A function without a signature is compiled as a part
    of those that call it.
    """

    def mark(function: Callable[..., Any]) -> Any:
        if signature is None:
            function.__dict__["is_inner"] = True
            return function
        return Loop(function, signature, of)

    return mark


def copy_bytes(to: Array, at: Integer, source: Array, begin: Integer, length: Integer) -> None:
    """For compiled functions, where it is one call of memcpy: a loop over bytes takes three times as long."""
    to[at : at + length] = source[begin : begin + length]


def word_at(data: Array, at: Integer) -> np.uint64:
    """For compiled functions, where it is one instruction: the eight bytes from `at` on, the first one lowest."""
    word: np.uint64 = data[at : at + 8].view("<u8")[0]
    return word


class Loop:
    """A compiled function. `function` is the same in Python: slow, and with every check."""

    def __init__(self, function: Callable[..., int], signature: str, of: tuple[str, ...]):
        self.function = function
        kinds = signature.split()
        self._chooser = next((number for number, kind in enumerate(kinds) if kind.startswith(_ANY)), None)
        self._variants = {np.dtype(dtype).str: Variant(function, signature.replace(_ANY, dtype)) for dtype in of} or {
            "": Variant(function, signature)
        }

    def load(self) -> None:
        """Loads the code now, so that neither the first call nor a forked process has to."""
        for variant in self._variants.values():
            variant.load()

    def __call__(self, *arguments: Any) -> int:
        chosen = "" if self._chooser is None else arguments[self._chooser].dtype.str
        if chosen not in self._variants:
            raise TypeError(
                f"{self.function.__name__}: expected an array of {' or '.join(self._variants)}, found {chosen}"
            )
        return self._variants[chosen](arguments)


class Variant:
    """A compiled function for one signature."""

    def __init__(self, function: Callable[..., int], signature: str):
        self._function = function
        self._kinds = [Kind(text) for text in signature.split()]
        kinds = "-".join(text.replace("[]", "s").replace("[,]", "ss") for text in signature.split())
        self._name = f"{function.__module__}.{function.__name__}-{kinds}"
        self._run: Callable[..., int] | None = None

    def __call__(self, arguments: tuple[Any, ...]) -> int:
        run = self.load()
        flat: list[int | None] = []
        for kind, argument in zip(self._kinds, arguments, strict=True):
            flat += kind.flatten(argument)
        result = ctypes.c_int64()
        if run(ctypes.byref(result), ctypes.byref(ctypes.c_void_p()), *flat):
            raise RuntimeError(f"{self._name} failed")
        return result.value

    def load(self) -> Callable[..., int]:
        if self._run is None:
            with _lock:
                self._run = self._run or self._load()
        return self._run

    def _load(self) -> Callable[..., int]:
        """Loads the kept code, or compiles it anew.

        Returns a function of two pointers, for its result and for an error, and of flat arguments.
        """
        import llvmlite
        import llvmlite.binding as llvm

        source = Path(self._function.__code__.co_filename)
        about = [
            self._name,
            llvmlite.__version__,
            llvm.get_host_cpu_name(),
            llvm.get_host_cpu_features().flatten(),
            source.read_text(),
            Path(__file__).read_text(),
        ]
        identity = xxhash.xxh3_128_digest("\0".join(about).encode())
        cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
        # A user may have no home.
        folders = [source.parent / "__pycache__", *([cache_folder / "coletor"] if cache_folder.is_absolute() else [])]
        kept = next(filter(None, (read_kept(folder / f"{self._name}.o", identity) for folder in folders)), None)
        if kept is None:
            kept = self._compile()
            any(write_kept(folder / f"{self._name}.o", identity + kept) for folder in folders)
        symbol, _, code = kept.partition(b"\n")
        engine().add_object_file(llvm.ObjectFileRef.from_data(code))
        engine().finalize_object()
        types = [flat for kind in self._kinds for flat in kind.ctypes]
        return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *types)(
            engine().get_function_address(symbol.decode())
        )

    def _compile(self) -> bytes:
        """Its symbol, a line, and its machine code."""
        from numba import config, from_dtype, int64, njit, types

        # A debugger may set this for other programs; here `function` serves it.
        config.DISABLE_JIT = 0  # type: ignore[attr-defined]  # numba adds its settings at run time
        # Divisions by zero are not looked for, and no array can be made.
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
        scopes: dict[int, dict[str, Any]] = {}

        def scope_of(names: dict[str, Any]) -> dict[str, Any]:
            """The names of a module, with compiled functions instead of those with our mark."""
            if id(names) not in scopes:
                scopes[id(names)] = scope = dict(names)
                scope |= {
                    name: make()
                    for name, value in names.items()
                    for special, make in ((copy_bytes, make_copy), (word_at, make_load))
                    if value is special
                }
                scope |= {
                    name: njit(**options)(FunctionType(value.__code__, scope_of(value.__globals__), name))
                    for name, value in names.items()
                    if getattr(value, "is_inner", False)
                }
            return scopes[id(names)]

        function = FunctionType(self._function.__code__, scope_of(self._function.__globals__), self._function.__name__)
        numbers = [from_dtype(kind.dtype) for kind in self._kinds]
        signature = int64(
            *(
                types.Array(number, kind.dimensions, "C") if kind.dimensions else number
                for kind, number in zip(self._kinds, numbers)
            )
        )
        (made,) = njit(  # type: ignore[call-overload]  # its types lack the two options
            signature, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options
        )(function).overloads.values()
        content: bytes = made.fndesc.llvm_func_name.encode() + b"\n" + made.library._get_compiled_object()
        return content


def make_copy() -> Callable[..., None]:
    from numba import types
    from numba.core.cgutils import raw_memcpy
    from numba.extending import intrinsic

    @intrinsic
    def copy(_: Any, to: Any, at: Any, source: Any, begin: Any, length: Any) -> tuple[Any, Any]:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
            target, origin = (
                context.make_array(signature.args[which])(context, builder, arguments[which]).data for which in (0, 2)
            )
            raw_memcpy(  # type: ignore[no-untyped-call]
                builder, builder.gep(target, [arguments[1]]), builder.gep(origin, [arguments[3]]), arguments[4], 1
            )

        return types.void(to, at, source, begin, length), generate

    return copy


def make_load() -> Callable[..., np.uint64]:
    from llvmlite.ir import IntType
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def load(_: Any, data: Any, at: Any) -> tuple[Any, Any]:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            origin = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return builder.load(builder.bitcast(builder.gep(origin, [arguments[1]]), IntType(64).as_pointer()), align=1)

        return types.uint64(data, at), generate

    return load


class Kind:
    """An argument's type, and how numba expects it.

    A number is passed as it is, an array as two owners (none), items, bytes per item, address, shape and strides.
    """

    def __init__(self, text: str):
        dtype, _, dimensions = text.partition("[")
        self.dtype = np.dtype(dtype)
        self.dimensions = len(dimensions)  # "]" or ",]"
        self.ctypes: list[type[ctypes.c_int64 | ctypes.c_void_p]] = [ctypes.c_int64]
        if self.dimensions:
            self.ctypes = (
                [ctypes.c_void_p] * 2
                + [ctypes.c_int64] * 2
                + [ctypes.c_void_p]
                + [ctypes.c_int64] * (2 * self.dimensions)
            )
        elif self.dtype != np.int64:
            raise TypeError(f"expected numbers to be i8, found {text}")

    def flatten(self, value: Any) -> tuple[int | None, ...]:
        if not self.dimensions:
            return (index(value),)
        if value.dtype != self.dtype or value.ndim != self.dimensions or not value.flags.c_contiguous:
            raise TypeError(
                f"expected a contiguous array of {self.dtype} with {self.dimensions} dimensions, "
                f"found {value.dtype} with {value.ndim}"
            )
        return None, None, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides


@compiled()
def find_byte(data: Array, at: int, stop: int, wanted: int) -> int:
    """For compiled functions: the first offset from `at` on that holds a byte, `stop` where none does.

    Eight bytes per step (Mycroft's test for a zero byte).
    """
    pattern = np.uint64(wanted) * _EACH_BYTE
    while at + 8 <= stop:
        word = word_at(data, at) ^ pattern
        if (word - _EACH_BYTE) & ~word & _TOP_BITS:
            break
        at += 8
    while at < stop and data[at] != wanted:
        at += 1
    return at


@cache
def engine() -> Any:
    """LLVM, which runs compiled code."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), llvm.Target.from_default_triple().create_target_machine()
    )


def read_kept(path: Path, identity: bytes) -> bytes | None:
    """The kept code, where it is whole and of this identity."""
    try:
        content = path.read_bytes() if path.is_file() else b""
    except OSError:
        return None
    digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return body[_DIGEST_BYTES:] if xxhash.xxh3_128_digest(body) == digest and body.startswith(identity) else None


def write_kept(path: Path, body: bytes) -> bool:
    """Keeps compiled code, in one step; false where that is not possible."""
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(xxhash.xxh3_128_digest(body) + body)
        aside.rename(path)
        return True
    except OSError:
        with suppress(OSError):
            aside.unlink()
        return False
