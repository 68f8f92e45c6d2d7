"""Clusters of equal contents, against a dictionary; and bin/show --duplicates on crawl folders."""

import json
import random
import subprocess
import tempfile
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from contract import names
from contract.errors import EX_CONFIG, EX_DATAERR, EX_USAGE
from contract.generation import SIDE_COLUMNS, SIDE_PACKED_COLUMNS
from contract.log import CRAWL
from contract.tables import METADATA, UNKNOWN_DIGEST
from examine import duplicates
from examine.duplicates import Source, choose_ranges, find_duplicates
from storage.columns import Columns, ColumnsWriter
from storage.tables import read_table, write_table
from tests.small_crawl import Page, SmallCrawl

ROOT = Path(__file__).resolve().parent.parent.parent


def make_source(folder: Path, number: int, digests: list[bytes]) -> Source:
    """A block whose side set has these digests, and zeros in its other columns."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    writer = ColumnsWriter(folder, SIDE_COLUMNS, SIDE_PACKED_COLUMNS)
    rows = {name: np.zeros(len(digests), dtype) for name, dtype in SIDE_COLUMNS.items()}
    writer.append({**rows, "content_digest": np.frombuffer(b"".join(digests), SIDE_COLUMNS["content_digest"])})
    writer.close()
    return Source(Path(f"crawl-{number}"), number, None, Columns(folder, SIDE_COLUMNS, SIDE_PACKED_COLUMNS))


def clusters_by_dictionary(columns: list[list[bytes]]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for number, column in enumerate(columns):
        for row, digest in enumerate(column):
            if digest != UNKNOWN_DIGEST:
                found.setdefault(digest, []).append(number << 32 | row)
    return found


def make_columns(seed: int) -> list[list[bytes]]:
    """Digests of few and many pages, of one prefix and of many; some differ in the last byte only, some are unknown."""
    chance = random.Random(seed)
    pool = [chance.randbytes(16) for _ in range(400)]
    pool += [b"\xab\xcd" + chance.randbytes(14) for _ in range(100)]
    pool += [bytes(15) + b"\x01", b"\xff" * 16, UNKNOWN_DIGEST, pool[0][:15] + bytes([pool[0][15] ^ 1])]
    weights = [chance.choice((1, 1, 1, 30)) for _ in pool]
    return [chance.choices(pool, weights, k=chance.choice((0, 1, 700))) for _ in range(6)]


@pytest.mark.parametrize("memory_max_bytes", [1, 5_000, 50_000, 1 << 30])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.sampled(5)
def test_clusters_are_those_of_a_dictionary(tmp_path, seed, memory_max_bytes, monkeypatch):
    monkeypatch.setattr(duplicates, "CHUNK_ROWS", 100)
    columns = make_columns(seed)
    sources = [make_source(tmp_path, number, column) for number, column in enumerate(columns)]
    truth = clusters_by_dictionary(columns)
    ranked = sorted(
        ((digest, places) for digest, places in truth.items() if len(places) > 1),
        key=lambda item: (-len(item[1]), item[0]),
    )
    for limit in (0, 1, 20):
        found = find_duplicates(sources, limit, memory_max_bytes, all_statuses=True)
        wanted = ranked[: limit or None]
        assert found.sizes.tolist() == [len(places) for _, places in wanted]
        assert [row.astype(">u8").tobytes() for row in found.digests] == [digest for digest, _ in wanted]
        assert found.page_ids.tolist() == [place for _, places in wanted for place in places]
        assert (found.pages, found.distinct) == (sum(map(len, truth.values())), len(truth))
        assert (found.clusters, found.in_clusters) == (len(ranked), sum(len(places) for _, places in ranked))
        assert found.unknown == sum(column.count(UNKNOWN_DIGEST) for column in columns)


def test_ranges_cover_all_prefixes_and_keep_the_bound():
    chance = random.Random(3)
    counts = np.array([chance.choice((0, 1, 5, 50)) for _ in range(1 << 8)])
    for rows_max in (1, 7, 50, 120, 10**9):
        ranges = choose_ranges(counts, rows_max)
        assert [low for low, _ in ranges] == [0, *(high for _, high in ranges[:-1])] and ranges[-1][1] == len(counts)
        assert all(
            counts[low:high].sum() <= rows_max or np.count_nonzero(counts[low:high]) == 1 for low, high in ranges
        )


def make_crawl(folder: Path, salt: str, servers: int) -> tuple[Path, dict[str, bytes]]:
    """A crawl of three blocks and two cycles a block; gives the digest of each page that was collected."""
    crawl = SmallCrawl(folder, 2)
    crawl.seed([f"http://s{number}.test/" for number in range(servers)])
    crawl.absorb_all()
    digests: dict[str, bytes] = {}
    for block in (0, 1, 0, 1, 0):
        if crawl.crawl_state.log.length == 7:
            crawl.grow(0)
        plan = crawl.plan(CRAWL, block)
        pages = {}
        for url in crawl.schedule(plan):
            name = url.rpartition("/")[2]
            content = f"page {name}" if name in ("1", "2") else "" if name == "3" else f"{salt} {url}"
            digests[url] = UNKNOWN_DIGEST if name == "4" else blake2b(content.encode(), digest_size=16).digest()
            pages[url] = Page(links=[f"{url}{number}" for number in range(5)] if not name else [], digest=digests[url])
        crawl.harvest(plan, pages)
        crawl.verify(plan)
    return folder, digests


def show(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "bin/show", *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def test_one_crawl_and_several_are_shown(tmp_path):
    one, digests = make_crawl(tmp_path / "one", "first", 8)
    two, more = make_crawl(tmp_path / "two", "second", 5)
    for crawls, pages in (
        ((one,), [(one, *item) for item in digests.items()]),
        ((one, two), [(one, *item) for item in digests.items()] + [(two, *item) for item in more.items()]),
    ):
        truth: dict[str, set] = {}
        for crawl, url, digest in pages:
            if digest != UNKNOWN_DIGEST:
                truth.setdefault(digest.hex(), set()).add((str(crawl), url))
        shown = show("--duplicates", *crawls, "--json")
        assert shown.returncode == 0, shown.stderr
        lines = [json.loads(line) for line in shown.stdout.splitlines()]
        assert {line["content_digest"]: {(page["crawl"], page["url"]) for page in line["pages"]} for line in lines} == {
            digest: members for digest, members in truth.items() if len(members) > 1
        }
        assert [line["size"] for line in lines] == sorted((len(line["pages"]) for line in lines), reverse=True)
        known = sum(map(len, truth.values()))
        closing = (
            f"{known} pages, {len(truth)} distinct, {sum(line['size'] for line in lines)} in "
            f"{len(lines)} clusters; {len(pages) - known} more"
        )
        assert closing in shown.stderr
        plain = show("--duplicates", *crawls, "--limit", "1").stdout
        assert f"(1 of {len(lines)} clusters shown; --limit 0 shows all)" in plain and closing in plain
        assert f"cluster 1: {lines[0]['size']} pages" in plain
    members = [line for line in plain.splitlines() if line.startswith("  http")]
    assert len(members) == 10 and "and " in plain and f"({one}, cycle" in members[0]


def test_only_successful_pages_count_by_default(tmp_path):
    """Error pages are alike on every server. The status of a page whose metadata was not kept is not known."""
    crawl = SmallCrawl(tmp_path / "crawl", 1)
    crawl.seed([f"http://s{number}.test/" for number in range(9)])
    crawl.absorb_all()
    plan = crawl.plan(CRAWL, 0)
    statuses = dict(zip(sorted(crawl.schedule(plan)), (200, 299, 204, 404, 404, 404, 404, 301, 300)))
    same, error = b"s" * 16, b"e" * 16
    crawl.harvest(
        plan, {url: Page(digest=same if status < 300 else error, status=status) for url, status in statuses.items()}
    )
    crawl.verify(plan)
    (cluster,) = map(json.loads, show("--duplicates", crawl.crawl.path, "--json").stdout.splitlines())
    assert {page["url"] for page in cluster["pages"]} == {url for url, status in statuses.items() if status < 300}
    left_out = "6 of another status than 200 to 299 left out (--all-statuses)"
    shown = show("--duplicates", crawl.crawl.path).stdout
    assert f"3 pages, 1 distinct, 3 in 1 cluster; {left_out}" in shown
    everything = show("--duplicates", crawl.crawl.path, "--all-statuses", "--json").stdout.splitlines()
    assert [json.loads(line)["size"] for line in everything] == [6, 3]
    metadata = crawl.crawl.path / names.cycle(plan.cycle) / names.EXTRACTOR / names.METADATA
    write_table(metadata, read_table(metadata, METADATA).slice(0, 0))
    shorter = show("--duplicates", crawl.crawl.path)
    assert shorter.returncode == EX_DATAERR and names.METADATA in shorter.stderr and "Traceback" not in shorter.stderr
    metadata.unlink()
    assert "0 pages, 0 distinct, 0 in 0 clusters; 9 of another status" in show("--duplicates", crawl.crawl.path).stdout


def test_each_page_lies_where_it_is_said_to(tmp_path):
    one, _ = make_crawl(tmp_path / "one", "first", 6)
    for line in show("--crawl", one, "--duplicates", "--json").stdout.splitlines():
        for page in json.loads(line)["pages"]:
            table = read_table(one / names.cycle(page["cycle"]) / names.EXTRACTOR / names.METADATA, METADATA)
            assert table.column("url")[page["row"]].as_py() == page["url"]


def test_bad_input_is_told(tmp_path):
    one, _ = make_crawl(tmp_path / "one", "first", 3)
    twice = show("--duplicates", one, one)
    assert twice.returncode == EX_USAGE and "given twice" in twice.stderr
    nothing = show("--duplicates", tmp_path)
    assert nothing.returncode == EX_CONFIG and "no crawl folder" in nothing.stderr
    assert show().returncode == show(one, one).returncode == EX_USAGE
    column = next((one / names.GENERATIONS).glob("0001/*/collected_content_digest.npy"))
    column.write_bytes(column.read_bytes()[:-1])
    for folder in column.parent.parent.iterdir():
        (folder / column.name).write_bytes(b"")
    damaged = show("--duplicates", one)
    assert damaged.returncode == EX_DATAERR and column.name in damaged.stderr and "Traceback" not in damaged.stderr
