"""The demonstration, as it is and with cold starts and one cycle in flight, in turn."""

import shutil
import sys
from pathlib import Path
from statistics import median

from bench.processes import Spent, run_child
from bench.ring.ours import COLD, SEQUENTIAL


def run_demonstration(folder: Path, prefix: tuple[str, ...] = (), settings: tuple[str, ...] = ()) -> Spent:
    """bin/run-cycle --demo in a folder of its own; its web included, as a user sees it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    options = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-P", "-m", "supervise.run_cycle", "--demo", "--quiet", *options]
    return run_child(["env", "-C", folder, *prefix[1:], *command], folder / "demo.log", limit_s=600)


def measure_demonstration(repeats: int, folder: Path) -> dict:
    ours, sequential = [], []
    for _ in range(repeats):
        ours.append(run_demonstration(folder / "demonstration"))
        sequential.append(run_demonstration(folder / "demonstration", COLD, SEQUENTIAL))
    ours_s, sequential_s = (median(run.wall_s for run in runs) for runs in (ours, sequential))
    print(f"demonstration: {ours_s:.1f} s; {sequential_s:.1f} s with cold starts and one cycle in flight", flush=True)
    return {
        "demo_ratio": round(sequential_s / ours_s, 2),
        "demo_s": round(ours_s, 1),
        "demo_sequential_s": round(sequential_s, 1),
    }
