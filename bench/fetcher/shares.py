"""Where the CPU time goes: the functions of a profile in groups."""

import pstats
import re
from collections.abc import Iterable
from pathlib import Path

from bench.fetcher.ours import WITHOUT_PAUSES, Ours
from bench.fetcher.processes import run_child

# The first pattern found in `file:function` counts. Functions written in C have the file `~`.
GROUPS = (
    ("libcurl", r"pycurl"),
    ("digests", r"hashlib|_sha|openssl_sha|\bb32encode|base64\.py|xxh"),
    ("compression", r"zstd|zstandard|zlib|storage/frames\.py"),
    ("DNS", r"/dns/|resolver\.py|getaddrinfo|ipaddress\.py|~:.*socket\.(send|recv)"),
    ("robots", r"protego|contract/robots\.py|stages/fetcher/(robots|rules)\w*\.py"),
    ("writing and syncing", r"posix\.(write|writev|pwrite|fsync|fdatasync|open|rename|link|replace|sync_file_range)|BufferedWriter|"
                            r"storage/publish\.py|stages/fetcher/repository\.py"),
    ("WARC records", r"contract/warc\.py|uuid\.py|posix\.urandom|datetime"),
    ("starting", r"<frozen importlib|<frozen zipimport|importlib|marshal\.|_imp\.|builtins\.compile|re/_|sre_|_ctypes|enum\.py|dataclasses\.py"),
    ("reading the list", r"stages/fetcher/url_list\.py|contract/url\.py|ada_url|cffi"),
    ("trio and epoll", r"/trio/|/outcome/|select\.epoll|contextvars|_contextvars"),
    ("exchanges and engine", r"stages/fetcher/(exchange|engine|transfer)\w*\.py"),
)
REST = "the fetcher's loop and the rest"


def profile_shares(ours: Ours, urls: list[str]) -> dict[str, float]:
    """Fetches the list under the profiler; the share of each group in CPU time."""
    statistics = ours.folder / "profile"
    run_child(ours.command(urls, WITHOUT_PAUSES, ("-m", "bench.fetcher.profiled", str(statistics))), ours.folder / "profile.log")
    return group(read_statistics(statistics))


def read_statistics(path: Path) -> Iterable[tuple[str, float]]:
    for (file, _, function), (_, _, own_s, _, _) in pstats.Stats(str(path)).stats.items():
        yield f"{file}:{function}", own_s


def group(times_s: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The share of each group in the sum, the largest first."""
    groups = [(name, re.compile(pattern)) for name, pattern in GROUPS]
    sums: dict[str, float] = {}
    for place, own_s in times_s:
        name = next((name for name, pattern in groups if pattern.search(place)), REST)
        sums[name] = sums.get(name, 0.0) + own_s
    whole_s = sum(sums.values()) or 1.0
    return {name: sums[name] / whole_s for name in sorted(sums, key=sums.get, reverse=True)}
