"""The fetcher under cProfile, its threads too, by CPU time: what was called goes to a file.

    python -m bench.fetcher.profiled FILE [ARGUMENT OF THE FETCHER...]

The file is JSON: `call_cost_s`, what the profiler itself adds to a function for each time it is called and for each call
that it makes; `functions`, each with place, calls, own seconds, and the same three of what it called.
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
    """Replaces itself, in each thread that begins, by a profile of that thread. The thread's CPU clock leaves waiting out."""
    profile = cProfile.Profile(time.thread_time)
    profiles.append(profile)
    profile.enable()


def place(code) -> str:
    return f"~:{code}" if isinstance(code, str) else f"{code.co_filename}:{code.co_name}"


def functions(profile: cProfile.Profile) -> list:
    """What has ended: a call that still waits in its thread is left out (its end would be read from the wrong clock)."""
    return [
        [
            place(entry.code),
            entry.callcount,
            entry.inlinetime,
            [[place(sub.code), sub.callcount, sub.inlinetime] for sub in entry.calls or ()],
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
