"""bin/simulate as a command: its tables and figures, and what it says of wrong input."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.golden import GOLDEN

SIMULATE = Path(__file__).resolve().parents[2] / "bin/simulate"
PNG = b"\x89PNG"


def simulate(*words: object) -> subprocess.CompletedProcess:
    return subprocess.run([SIMULATE, *map(str, words)], capture_output=True, text=True)


def test_orders_are_compared_over_a_graph_without_urls(tmp_path):
    np.savez(tmp_path / "ring.npz", offsets=np.arange(301), targets=np.roll(np.arange(300), -1))
    policies = "random,spread,0.7*in-links + 0.3*opic,omniscient"
    words = ["order", "--graph", tmp_path / "ring.npz", "--policies", policies, "--seeds", 2, "--fetch", 40]
    done = simulate(*words, "--out", tmp_path / "out", "--set", "scheduler.list_max_urls=5")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    shares = {row[0]: row[1:4] for row in rows[2:6]}
    assert shares["`spread`"] == ["–", "–", "–"]
    assert shares["`random`"] == shares["`omniscient`"] == ["40", "0.000 ± 0.000", "13.3 ± 0.0"]  # all ranks are equal
    assert (tmp_path / "out/order.md").read_text() == done.stdout
    assert (tmp_path / "out/order.png").read_bytes().startswith(PNG)


@pytest.mark.long
def test_the_same_words_print_the_same_table():
    words = ["order", "--pages", 500, "--seeds", 2, "--fetch", 50, "--policies", "random,opic,omniscient"]
    tables = [simulate(*words).stdout for _ in range(2)]
    assert tables[0] == tables[1] and tables[0].count("50 |") >= 6


@pytest.mark.long
def test_a_web_from_a_seed_trains_the_rank_of_urls_on_another_one(tmp_path):
    words = ["order", "--pages", 4_000, "--seeds", 2, "--fetch", 500, "--set", "scheduler.list_max_urls=50"]
    done = simulate(*words, "--policies", "neural,breadth-first,random,omniscient", "--blocks", 3)
    assert done.returncode == 0, done.stderr
    shares = {line.split("`")[1]: float(line.split("|")[4].split()[0]) for line in done.stdout.splitlines()[2:6]}
    assert shares["omniscient"] > shares["neural"] > shares["random"]


@pytest.mark.long
@pytest.mark.parametrize(
    "words", [["domains", "--pages", 3_000, "--hours", 2, "--policies", "spread,random"], ["freshness", "--days", 20]]
)
def test_time_and_freshness_have_a_table_and_a_figure(tmp_path, words):
    done = simulate(*words, "--seeds", 2, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "±" in done.stdout and (tmp_path / f"{words[0]}.md").read_text() == done.stdout
    assert (tmp_path / f"{words[0]}.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["order", "--policies", "in-link"], 78, "did you mean in-links"),
        (["order", "--graph", "broken.npz"], 65, "broken.npz: offsets: expected numbers that never fall"),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                (["order", "--policies", "0.7*in-links + "], 78, "--policies"),
                (["order", "--graph", "/dev/null"], 65, "expected a graph"),
                (["order", "--graph", "broken.npz", "--pages", "1000"], 64, "expected one of"),
                (["domains", "--graph", "pairs.txt"], 65, "pairs.txt: expected a graph with URLs"),
                (["order", "--crawl", "."], 65, "expected a crawl folder"),
            )
        ),
    ],
)
def test_wrong_input_is_named(tmp_path, words, code, message):
    np.savez(tmp_path / "broken.npz", offsets=[0, 3, 1, 3], targets=[0, 1, 2])
    (tmp_path / "pairs.txt").write_text("0 1\n1 0\n")
    done = subprocess.run([SIMULATE, *words], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "") and message in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_crawl_is_a_graph():
    done = simulate("order", "--crawl", GOLDEN, "--seeds", 1, "--fetch", 10, "--policies", "shortest-path,omniscient")
    assert done.returncode == 0 and done.stdout.count("`shortest-path`") == 2, done.stderr
