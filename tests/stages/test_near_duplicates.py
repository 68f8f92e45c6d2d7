"""Clusters of near fingerprints, against comparing each with each; and bin/show --near-duplicates."""

import json
import random
import subprocess
import time
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contract import names
from contract.errors import EX_CONFIG, EX_DATAERR, EX_USAGE
from examine.fingerprint_clusters import find_clusters
from storage.publish import MANIFEST

ROOT = Path(__file__).resolve().parent.parent.parent


def clusters_by_comparing_all(values: list[int], most_bits: int) -> list[list[int]]:
    left = {row for row, value in enumerate(values) if value}
    clusters = []
    while left:
        cluster, reached = [], [left.pop()]
        while reached:
            row = reached.pop()
            cluster.append(row)
            near = {other for other in left if (values[row] ^ values[other]).bit_count() <= most_bits}
            left -= near
            reached += near
        clusters.append(sorted(cluster))
    return sorted(
        (cluster for cluster in clusters if len(cluster) > 1), key=lambda cluster: (-len(cluster), cluster[0])
    )


def make_values(seed: int, count: int, most_bits: int) -> list[int]:
    """Families that differ from their first in up to `most_bits` + 1 bits, some single ones, some 0."""
    chance = random.Random(seed)
    values = []
    while len(values) < count:
        first = chance.getrandbits(64)
        for _ in range(chance.choice((1, 1, 3, 9))):
            values.append(first ^ sum(1 << bit for bit in chance.sample(range(64), chance.randint(0, most_bits + 1))))
        values.append(chance.choice((0, chance.choice(values))))
    chance.shuffle(values)
    return values


@pytest.mark.parametrize("most_bits", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_clusters_are_those_of_comparing_all(seed, most_bits):
    values = make_values(seed, 300, most_bits)
    found = find_clusters(np.array(values, np.uint64), most_bits)
    assert [cluster.tolist() for cluster in found] == clusters_by_comparing_all(values, most_bits)


@pytest.mark.parametrize("bits", [(0, 1, 2), (0, 16, 32), (15, 31, 63), (61, 62, 63), (7,)])
@pytest.mark.parametrize("others", [0, 70_000], ids=["four blocks", "five blocks"])
def test_a_pair_is_found_whatever_its_bits_and_the_number_of_others(bits, others):
    values = np.random.Generator(np.random.PCG64(1)).integers(1, 1 << 64, others + 2, np.uint64)
    values[-1] = values[0] ^ np.uint64(sum(1 << bit for bit in bits))
    assert [cluster.tolist() for cluster in find_clusters(values)] == [[0, others + 1]]


def test_a_chain_is_one_cluster_and_nothing_is_none():
    chain = np.array([(1 << length) - 1 << 10 for length in range(1, 50, 3)], np.uint64)
    assert [cluster.tolist() for cluster in find_clusters(chain[::-1])] == [list(range(len(chain)))]
    assert [find_clusters(np.array(values, np.uint64)) for values in ([], [5], [0, 0, 0])] == [[], [], []]


@pytest.mark.parametrize(
    "values",
    [
        np.full(500_000, 7, np.uint64),
        np.arange(1, 50_001, dtype=np.uint64),
        np.arange(1, 50_001, dtype=np.uint64) * np.uint64((1 << 32) + 1),
    ],
    ids=["all equal", "one dense cluster", "pairs of bits"],
)
def test_many_alike_take_no_square_of_time(values):
    start = time.process_time()
    clusters = find_clusters(values)
    assert time.process_time() - start < 10
    assert len(clusters[0]) > 1


def write(path: Path, urls: list[str], fingerprints: list[int] | None, digests: list[bytes] | None = None) -> Path:
    columns = {
        "url_key": pa.array([hash_of(url) for url in urls], pa.uint64()),
        "url": pa.array(urls, pa.string()),
        "content_digest": pa.array(digests or [bytes([row]) * 16 for row in range(len(urls))], pa.binary(16)),
    }
    if fingerprints is not None:
        columns["fingerprint"] = pa.array(fingerprints, pa.uint64())
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def hash_of(url: str) -> int:
    return int.from_bytes(blake2b(url.encode(), digest_size=8).digest(), "big")


def show(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "bin/show", "--near-duplicates", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def publish(crawl: Path, cycle: int, urls: list[str], fingerprints: list[int] | None) -> Path:
    folder = crawl / names.cycle(cycle) / names.EXTRACTOR
    write(folder / names.METADATA, urls, fingerprints)
    (folder / MANIFEST).write_text("{}")
    return folder


def test_show_prints_cluster_by_cluster_the_largest_first(tmp_path):
    urls = [f"http://a.example/{name}" for name in ["one", "two", "three", "four", "five", "six", "none"]]
    same = b"s" * 16
    fingerprints = [0xF0, 0xFF00000, 0xF1, 0xFF00001, 0xF3, 1 << 60, 0]
    path = write(tmp_path / names.METADATA, urls, fingerprints, [same, same, same, same, b"t" * 16, same, same])
    shown = show(path)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines() == [
        f"{path}: 6 pages with a fingerprint, 2 clusters of near duplicates",
        "",
        "cluster 1: 3 pages, 2 distinct contents",
        "  http://a.example/five",
        "  http://a.example/one",
        "  http://a.example/three",
        "",
        "cluster 2: 2 pages, 1 distinct content",
        "  http://a.example/four",
        "  http://a.example/two",
    ]
    assert show(path, "--limit", "1").stdout.splitlines()[-1] == "(1 of 2 clusters shown; --limit 0 shows all)"
    rows = [json.loads(line) for line in show(path, "--json").stdout.splitlines()]
    assert rows[1] == {"size": 2, "contents": 1, "urls": ["http://a.example/four", "http://a.example/two"]}


def test_show_joins_the_cycles_of_a_crawl_and_the_last_of_a_url_counts(tmp_path):
    publish(tmp_path, 1, ["http://a.example/1", "http://a.example/2"], [0xF0, 0xFF])
    publish(tmp_path, 2, ["http://b.example/1", "http://a.example/1", "http://a.example/2"], [0xFF, 0xAB << 32, 0])
    publish(tmp_path, 4, ["http://old.example/"], None)
    publish(tmp_path, 5, ["http://unpublished.example/"], [0xFF]).joinpath(MANIFEST).unlink()
    about, _, head, *urls = show(tmp_path).stdout.splitlines()
    assert about == (
        f"{tmp_path}: 3 pages with a fingerprint, 1 cluster of near duplicates"
        " (skipped, without a column fingerprint or url_key: 1 of 3 files)"
    )
    assert head == "cluster 1: 2 pages, 2 distinct contents" and urls == [
        "  http://a.example/2",
        "  http://b.example/1",
    ]
    cycle = show("--crawl", tmp_path, names.cycle(1)).stdout.splitlines()
    assert (
        cycle[0].endswith("cycles/00000001: 2 pages with a fingerprint, 0 clusters of near duplicates")
        and len(cycle) == 1
    )


@pytest.mark.parametrize("fingerprints, told", [([0, 0], "no page has a fingerprint"), (None, "no column fingerprint")])
@pytest.mark.sampled(1)
def test_show_says_what_to_set_where_there_are_no_fingerprints(tmp_path, fingerprints, told):
    shown = show(write(tmp_path / names.METADATA, ["http://a.example/1", "http://a.example/2"], fingerprints))
    assert shown.returncode == EX_CONFIG and shown.stdout == ""
    assert told in shown.stderr and "set extractor.near_duplicates = true" in shown.stderr


def test_show_says_what_it_expected(tmp_path):
    nothing = show(tmp_path)
    assert nothing.returncode == EX_USAGE and names.METADATA in nothing.stderr
    (tmp_path / names.METADATA).write_bytes(b"PAR1 no")
    assert show(tmp_path / names.METADATA).returncode == EX_DATAERR
