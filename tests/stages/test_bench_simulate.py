"""bin/bench simulate: a whole quick run."""

import json
import subprocess
from pathlib import Path

from bench.simulate.run import Timed, figures_of
from study.contestants import default_names

ROOT = Path(__file__).resolve().parents[2]


def test_the_slowest_policy_and_the_largest_process_stand_for_all():
    timed = {"a": Timed(10.0, 7.0, 300.0), "b": Timed(8.0, 9.0, 500.4)}
    figures = figures_of(1.26, timed, 400.0)
    assert (figures["pages_per_s"], figures["collection_s"], figures["rss_mb"]) == (7, 1.3, 500)


def test_a_quick_run_measures_every_policy(tmp_path):
    figures_file = tmp_path / "figures.json"
    command = [ROOT / "bin/bench", "simulate", "--quick", "--json", figures_file]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = json.loads(figures_file.read_text())
    assert list(figures["pages_per_s_heap"]) == list(figures["pages_per_s_blocks"]) == default_names()
    assert figures["pages_per_s"] > 0 and figures["rss_mb"] > 0 and "goal:" in done.stdout
