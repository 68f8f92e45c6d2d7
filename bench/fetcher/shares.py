"""Where the CPU time goes: the functions of a profile in groups."""

import json
import re
from collections import Counter

from bench.fetcher.ours import WITHOUT_PAUSES, Ours
from bench.processes import run_child

# The first pattern found in `file:function` counts. Functions written in C have the file `~`.
GROUPS = [
    (name, re.compile(pattern))
    for name, pattern in (
        ("libcurl", r"pycurl"),
        ("digests", r"hashlib|_sha|b32encode|base64\.py|xxh|sha1_digest"),
        ("compression", r"zstd|zstandard|zlib|storage/frames\.py"),
        (
            "starting",
            r"<frozen |importlib|~:.*(marshal\.|_imp\.|builtins\.(compile|exec|__build_class__))|/re/|enum\.py|"
            r"dataclasses\.py|publicsuffixlist|encodings/|argparse|tomllib|contract/config",
        ),
        (
            "DNS",
            r"/dns/|stages/fetcher/(resolver|host_admission|hosts_file|addresses)\.py|getaddrinfo|ipaddress\.py|"
            r"~:.*'_?socket\.socket'",
        ),
        ("robots", r"contract/robots\w*\.py"),
        (
            "writing and syncing",
            r"~:.*posix\.\w*(write|sync|open|rename|link|close|stat)|BufferedWriter|storage/publish\.py|"
            r"stages/fetcher/repository\.py",
        ),
        ("WARC records", r"contract/warc\w*\.py|stages/fetcher/records\.py|uuid\.py|urandom|datetime"),
        ("reading the list", r"stages/fetcher/(url_list|pre_refusals)\.py|contract/url\.py|ada_url|cffi"),
        ("trio and epoll", r"/trio/|/outcome/|select\.epoll|[Cc]ontext"),
        ("exchange and engine", r"stages/fetcher/(exchange|engine|readiness|time_limits|bodies|bandwidth)\.py"),
    )
]
REST = "loop, politeness and the rest"


def profile_shares(ours: Ours, urls: list[str]) -> dict[str, float]:
    """Fetches the list under the profiler; the share of each group in CPU time."""
    profile_file = ours.folder / "profile.json"
    run_child(
        ours.command(urls, WITHOUT_PAUSES, ("-m", "bench.fetcher.profiled", str(profile_file))),
        ours.folder / "profile.log",
    )
    return share(json.loads(profile_file.read_text()))


def group_of(function: str) -> str | None:
    return next((name for name, pattern in GROUPS if pattern.search(function)), None)


def share(profile: dict) -> dict[str, float]:
    """The share of each group in the sum, the largest first; C functions of no group count for their callers."""
    called_s, calling_s = profile["call_cost_s"]
    sums: Counter[str] = Counter()
    for function, calls, own_s, callees in profile["functions"]:
        name = group_of(function)
        if name is None and function.startswith("~:"):
            continue
        made = sum(count for _, count, _ in callees)
        sums[name or REST] += max(0.0, own_s - calls * called_s - made * calling_s)
        for callee, count, taken_s in callees:
            if callee.startswith("~:") and group_of(callee) is None:
                sums[name or REST] += max(0.0, taken_s - count * called_s)
    whole_s = sums.total() or 1.0
    return {name: taken_s / whole_s for name, taken_s in sums.most_common()}
