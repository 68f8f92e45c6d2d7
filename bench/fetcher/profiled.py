"""The fetcher under cProfile, its threads too, by CPU time: what was called goes to a file.

    python -m bench.fetcher.profiled FILE [ARGUMENT OF THE FETCHER...]

The file is JSON. `call_cost_s`: what the profiler itself adds to a function per call of it and per call that it makes.
`functions`: each with `file:name`, calls, own seconds, and the same three of what it called.
"""

import cProfile
import json
import runpy
import sys
import threading
import time
from pathlib import Path

CALLS = 50_000  # enough for the cost of one within a few per cent

profiles: list[cProfile.Profile] = []


def begin(*_) -> None:
    """Replaces itself, in each new thread, by a profile of that thread. The thread's CPU clock leaves waiting out."""
    profile = cProfile.Profile(time.thread_time)
    profiles.append(profile)
    profile.enable()


def name_of(code) -> str:
    return f"~:{code}" if isinstance(code, str) else f"{code.co_filename}:{code.co_name}"


def functions(profile: cProfile.Profile) -> list:
    """Calls that have ended. One that still waits in its thread is left out: its end would have the wrong clock."""
    return [
        [
            name_of(entry.code),
            entry.callcount,
            entry.inlinetime,
            [[name_of(sub.code), sub.callcount, sub.inlinetime] for sub in entry.calls or ()],
        ]
        for entry in profile.getstats()
    ]


def learn_call_cost() -> tuple[float, float]:
    def nothing():
        pass

    def call():
        for _ in range(CALLS):
            nothing()

    began_s = time.thread_time()
    call()
    bare_s = time.thread_time() - began_s
    profile = cProfile.Profile(time.thread_time)
    profile.runcall(call)
    own_s = {entry.code: entry.inlinetime for entry in profile.getstats()}
    return own_s[nothing.__code__] / CALLS, max(0.0, own_s[call.__code__] - bare_s) / CALLS


def main() -> None:
    target = Path(sys.argv.pop(1))
    call_cost_s = learn_call_cost()
    threading.setprofile(begin)
    begin()
    try:
        runpy.run_module("stages.fetcher", run_name="__main__", alter_sys=True)
    finally:
        profiles[0].disable()
        threading.setprofile(None)
        rows = [row for profile in profiles for row in functions(profile)]
        target.write_text(json.dumps({"call_cost_s": call_cost_s, "functions": rows}))


if __name__ == "__main__":
    main()
