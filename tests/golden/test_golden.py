"""Today's programs read what the present format holds, write the same bytes again, and name what is broken."""

import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from contract import names
from storage.publish import FORMAT, describe, encode_json, read_json
from tests.golden import BLOCK, GOLDEN, LAST, REVISITED, SEGMENT, SHOWN, shown_name

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def crawl(tmp_path) -> Path:
    shutil.copytree(GOLDEN, tmp_path / "crawl")
    return tmp_path / "crawl"


def run(name, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run([ROOT / "bin" / name, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_the_golden_crawl_is_whole(crawl):
    checked = run("check", "--crawl", crawl)
    assert checked.returncode == 0 and "all books agree" in checked.stdout, checked.stdout


@pytest.mark.parametrize("path", SHOWN)
@pytest.mark.sampled(5)
def test_every_format_is_shown_as_before(path):
    shown = run("show", "--crawl", GOLDEN, path, "--json", "--limit", "5")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == (GOLDEN.parent / "shown" / shown_name(path)).read_text()


@pytest.mark.parametrize("stage", [names.SCHEDULER, names.EXTRACTOR])
def test_a_stage_writes_the_same_bytes_again(crawl, tmp_path, stage):
    again = run(stage, "--crawl", crawl, "--cycle", str(LAST), "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    before = GOLDEN / names.cycle(LAST) / stage
    for path in before.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_verifier_writes_the_same_bytes_again(crawl, tmp_path):
    again = run("verifier", "--crawl", crawl, "--cycle", str(LAST), "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    made = [path.relative_to(tmp_path / "again") for path in (tmp_path / "again").rglob("*") if path.is_file()]
    assert len(made) > 10
    for name in made:
        if name.name == names.AUX and not (GOLDEN / name).exists():
            continue  # every block had absorbed it
        assert (GOLDEN / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_the_golden_crawl_has_a_rule_and_visits_of_each_kind(crawl):
    """A first visit, a 304, an identical body, and a change."""
    tables = [
        pq.read_table(path, columns=["url", "revisit", "content_digest"]).to_pylist()
        for path in sorted(crawl.glob(f"{names.CYCLES}/*/{names.EXTRACTOR}/{names.METADATA}"))
    ]
    visits: dict = {}
    for row in (row for table in tables for row in table if row["url"].startswith(f"http://{REVISITED}")):
        visits.setdefault(row["url"].rpartition("/")[2], []).append((row["revisit"], row["content_digest"]))
    assert {name for name, seen in visits.items() if any(is_revisit for is_revisit, _ in seen[1:])} >= {"same", "body"}
    assert len({digest for _, digest in visits["changed"]}) == len(visits["changed"]) > 1
    listed = pq.read_table(crawl / CYCLE / names.SCHEDULER / names.URL_LIST).to_pylist()
    assert any(row["revisit"] and row["counted"] for row in listed)
    assert "[[priority]]" in (crawl / names.CONFIGURATION).read_text()


def cut(content: bytes) -> bytes:
    return content[: -len(content) // 10]


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0x10]) + content[middle + 1 :]


def empty(content: bytes) -> bytes:
    return b""


def renumber(content: bytes) -> bytes:
    return content.replace(b'"format": %d' % FORMAT, b'"format": %d' % (FORMAT + 1))


CYCLE = names.cycle(LAST)
GENERATION = names.generation(BLOCK, LAST)
BROKEN = [
    (f"{CYCLE}/{names.SCHEDULER}/{names.URL_LIST}", cut),
    (f"{CYCLE}/{names.SCHEDULER}/{names.SERVERS}", flip),
    (f"{CYCLE}/{names.FETCHER}/{names.PAGES}/00000.warc.zst", cut),
    (f"{CYCLE}/{names.FETCHER}/{names.PAGES}/00000.warc.zst", flip),
    (f"{CYCLE}/{names.EXTRACTOR}/{names.COLLECTED}", flip),
    (f"{CYCLE}/{names.EXTRACTOR}/{names.LINKS}", empty),
    (f"{CYCLE}/{names.VERIFIER}/{names.REPORT}", flip),
    (f"{CYCLE}/{names.VERIFIER}/{names.MANIFEST}", cut),
    (f"{CYCLE}/{names.VERIFIER}/{names.MANIFEST}", renumber),
    (f"{GENERATION}/key.npy", flip),
    (f"{GENERATION}/key.npy", cut),
    (f"{GENERATION}/servers.parquet", flip),
    (f"{GENERATION}/{names.MANIFEST}", None),
    (f"{names.TEXT}/{SEGMENT}", flip),
    (f"{names.TEXT}/{SEGMENT}", None),
    (f"{names.LOG}/{names.log_entry(1)}", None),
    (f"{names.LOG}/{names.log_entry(1)}", empty),
    (f"{names.LOG}/{names.log_entry(1)}", renumber),
    (f"{CYCLE}/{names.PLAN}", flip),
    (f"{CYCLE}/{names.PLAN}", None),
    (names.CRAWL_FILE, cut),
    (names.CRAWL_FILE, renumber),
]


@pytest.mark.parametrize("name, breaking", BROKEN, ids=lambda value: getattr(value, "__name__", str(value)))
@pytest.mark.sampled(7)
def test_each_kind_of_damage_is_named(crawl, name, breaking):
    path = crawl / name
    if breaking is None:
        path.unlink()
    else:
        path.write_bytes(breaking(path.read_bytes()))
    checked = run("check", "--crawl", crawl)
    told = checked.stdout + checked.stderr
    assert checked.returncode == 65 and "Traceback" not in told, told
    assert Path(name).name in told, told
    if breaking is renumber:
        assert f"format version {FORMAT + 1}, this program reads version {FORMAT}" in told


def test_a_record_of_another_url_is_found(crawl):
    """Every checksum right, and still wrong: the books find what manifests cannot."""
    cycles = sorted(path.parent for path in crawl.glob(f"{names.CYCLES}/*/{names.FETCHER}/{names.PAGES}"))[-2:]
    shutil.copy(cycles[0] / names.PAGES / "00000.warc.zst", cycles[1] / names.PAGES / "00000.warc.zst")
    manifest = read_json(cycles[1] / names.MANIFEST)
    manifest["files"] = {name: describe(cycles[1] / name) for name in manifest["files"]}
    (cycles[1] / names.MANIFEST).write_bytes(encode_json(manifest))
    checked = run("check", "--crawl", crawl)
    assert (
        checked.returncode == 65
        and "metadata rows point at the record of their URL" in checked.stdout
        and " row 0" in checked.stdout
    )
