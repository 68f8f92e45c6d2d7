"""The fetcher under cProfile, its threads too, by CPU time: the statistics go to a file.

    python -m bench.fetcher.profiled STATISTICS [ARGUMENT OF THE FETCHER...]
"""

import cProfile
import pstats
import runpy
import sys
import threading
import time

profiles: list[cProfile.Profile] = []


def begin(*_) -> None:
    """Replaces itself, in each thread that begins, by a profile of that thread. The thread's CPU clock leaves waiting out."""
    profile = cProfile.Profile(time.thread_time)
    profiles.append(profile)
    profile.enable()


def main() -> None:
    statistics = sys.argv.pop(1)
    threading.setprofile(begin)
    begin()
    try:
        runpy.run_module("stages.fetcher", run_name="__main__", alter_sys=True)
    finally:
        profiles[0].disable()
        threading.setprofile(None)
        pstats.Stats(*profiles).dump_stats(statistics)


if __name__ == "__main__":
    main()
