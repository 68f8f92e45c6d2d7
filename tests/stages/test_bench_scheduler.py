"""bin/bench scheduler: what is computed from numbers, the block that it makes, and a whole quick run."""

import json
import subprocess
from pathlib import Path

import numpy as np

from bench.fetcher.figures import goal_lines
from bench.scheduler.block import Size, make_block
from bench.scheduler.figures import GOALS, figures_of, table_lines
from contract.generation import SIDE_COLUMNS, open_generation, read_urls
from contract.policies import FEATURES, POLICIES
from contract.tables import COLLECTED_STATE
from stages.scheduler.validators import read_validators

ROOT = Path(__file__).resolve().parents[2]
TURNS = {"none": [2.0, 1.0, 9.0], "optimal": [2.5, 2.5, 2.5]}


def test_the_most_expensive_policy_and_feature_stand_for_all():
    figures = figures_of({"a": [1.0, 9.0, 2.0], "b": [1.5, 1.5, 1.5]}, {"qrank": [1.0], "y": [6.0]}, TURNS, 3.0, 100.4)
    assert (figures["select_s"], figures["us_per_url_features"], figures["rss_mb"]) == (2.0, 6.0, 100)
    assert figures["turn_ratio_revisits"] == 1.25
    assert [line.endswith("met") for line in goal_lines(figures, GOALS)] == [True, False, True, False, True]
    assert "met" in goal_lines(figures, GOALS)[0] and "missed" in goal_lines(figures, GOALS)[1]
    assert any("1,234" in line for line in table_lines(figures, {"a": (1_234, 5), "b": (7, 0)}))


def test_the_block_is_one_that_a_crawl_could_have(tmp_path):
    size = Size(rows=3_000, servers=60, cycles=4)
    crawl, stream = make_block(tmp_path / "crawl", size)
    generation = open_generation(crawl.path, 0, size.cycles)
    assert len(generation) == size.rows
    assert int((generation.rows["state"] == COLLECTED_STATE).sum()) == generation.side.rows
    names = generation.servers.column("server").to_pylist()
    urls = read_urls(crawl.path, generation, np.arange(len(generation)))
    assert all(url.startswith(names[server] + "/") for url, server in zip(urls, generation.server_index))
    side = {name: generation.side[name] for name in SIDE_COLUMNS}
    found = read_validators(crawl.path, side["cycle"], side["row"], generation.collected_keys)
    assert found.etag.tolist() == [str(key) for key in generation.collected_keys.tolist()]
    again, _ = make_block(tmp_path / "again", size)
    other = open_generation(again.path, 0, size.cycles)
    assert all(np.array_equal(other.rows[name], generation.rows[name]) for name in generation.rows)


def test_a_quick_run_measures_every_policy_and_feature(tmp_path):
    figures_file = tmp_path / "figures.json"
    command = [ROOT / "bin/bench", "scheduler", "--quick", "--folder", tmp_path, "--json", figures_file]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = json.loads(figures_file.read_text())
    assert figures["select_s_by_policy"].keys() == POLICIES.keys()
    assert figures["us_per_url_by_feature"].keys() == FEATURES.keys()
    assert figures["select_s"] > 0 and figures["rss_mb"] > 0 and figures["turn_ratio_revisits"] > 0
    assert "goal:" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == [figures_file.name]
