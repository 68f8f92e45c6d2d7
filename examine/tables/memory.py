"""A bound of the kernel for the memory of this process: some queries get around the bound that DuckDB keeps.

DuckDB counts tables, sorts and joins against its limit, but not a value that one function makes, such as
repeat('x', 3000000000), nor its copy in Python. The bound is on writable memory (RLIMIT_DATA), above what the libraries
have reserved already: pyarrow alone reserves 1 GiB of addresses, of which it uses little.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contract.errors import TryLater

BESIDE_BYTES = 1 << 30  # for reading, and for what libraries reserve in large pieces; some 400 MiB of it are used
THREAD_BYTES = 16 << 20  # of the stacks of pyarrow's threads, per core
TOO_LITTLE = "the query needs more memory than --memory gives it: give it more, or ask for less"
STATUS = Path("/proc/self/status")
RESERVED = "VmData:"


@contextmanager
def bounding_memory(memory_bytes: int) -> Iterator[None]:
    """Lets this process take so much more memory; then allocations fail. Does nothing where the kernel has no figures.

    A lower bound that the machine has set stays.
    """
    before = resource.getrlimit(resource.RLIMIT_DATA)
    reserved = read_reserved()
    if reserved is None:
        yield
        return
    most = reserved + memory_bytes + BESIDE_BYTES + THREAD_BYTES * (os.cpu_count() or 1)
    lower = [limit for limit in before if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(most, *lower) if lower else most, before[1]))
    try:
        yield
    except MemoryError:  # of Python; DuckDB has an exception of its own
        raise TryLater(TOO_LITTLE) from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def read_reserved() -> int | None:
    try:
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith(RESERVED))
        return int(line.split()[1]) << 10
    except (OSError, StopIteration):
        return None
