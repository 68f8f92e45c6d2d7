"""Every file that a turn reads, damaged.

Exit code 65 and its name, or, in bytes nobody reads, the result is the same.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from contract import names
from contract.crawl_folder import open_folder
from contract.generation import open_generation
from contract.log import replay
from contract.plan import fix_verifier_plan, read_plan
from contract.tables import AUX, ORDER
from stages.verifier.__main__ import work
from storage.errors import Damaged
from storage.keyed_file import KeyedFile
from storage.pairs import PAIR_END
from storage.tables import footer_digest, verify_footer
from storage.text_segments import Segment
from tests.crash.damage_sweep import DAMAGES, flip
from tests.crash.verifier_cases import harvest, make_crawl, make_folding, make_grow, seeded
from tests.sampling import sampling

ROOT = Path(__file__).resolve().parent.parent.parent
MEMORY = Path("/dev/shm")
SAMPLE = 7  # the quick run tries every seventh pair of a file and a damage: no divisor of the number of damages


@pytest.fixture
def scratch(tmp_path):
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path) as folder:
        yield Path(folder)


def sweep(crawl: Path, cycle: int, scratch: Path, *patterns: str) -> list[list]:
    (scratch / "sweep").mkdir()
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "tests.crash.damage_sweep",
            crawl,
            str(cycle),
            scratch / "sweep",
            *map(str, sampling.stride(SAMPLE)),
            *patterns,
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    for name, damage, code, told, is_same in rows:
        assert code in (0, 65) and "Traceback" not in told, (name, damage, code, told)
        assert Path(name).name in told if code else is_same, (name, damage, code, told)
    return rows


def tried(pairs: int) -> int:
    """How many of so many pairs of a file and a damage this run tries."""
    first, stride = sampling.stride(SAMPLE)
    return len(range(first - 1, pairs, stride))


def missed(rows: list[list]) -> set[str]:
    """Files with a damage that was not found; a checksum of the whole file leaves none to chance."""
    return {name for name, _, code, _, _ in rows if code == 0}


def test_a_turn_names_what_is_damaged(scratch):
    crawl = scratch / "crawl"
    cycle = make_crawl(crawl)
    plan = read_plan(crawl, cycle)
    fix_verifier_plan(crawl, plan, replay(crawl, open_folder(crawl).blocks_first).length)
    generation, here = names.generation(plan.block, plan.generation), names.cycle(cycle)
    tables = [
        f"{here}/{names.EXTRACTOR}/{name}"
        for name in (names.EXTRACTED, names.COLLECTED, names.METADATA, names.SERVERS, names.MANIFEST)
    ]
    plans = [f"{here}/{names.PLAN}", f"{here}/{names.VERIFIER_PLAN}"]
    spilled = f"{names.cycle(cycle - 1)}/{names.VERIFIER}"
    logs = [f"{names.LOG}/{names.log_entry(position)}" for position in (0, cycle - 1)]
    rows = sweep(
        crawl,
        cycle,
        scratch,
        f"{generation}/*",
        *tables,
        *plans,
        f"{spilled}/{names.AUX}",
        f"{spilled}/{names.MANIFEST}",
        *logs,
        names.CRAWL_FILE,
    )
    columns = {path.relative_to(crawl).as_posix() for path in (crawl / generation).iterdir()}
    assert len(columns) >= 16, "some column is not there"
    assert len(rows) == tried(len(DAMAGES) * (len(columns) + len(tables) + len(plans) + 2 + len(logs) + 1))
    assert not missed(rows) & (columns | set(tables) | set(plans) | set(logs))
    assert sum(code == 0 for name, _, code, _, _ in rows if name.endswith(names.AUX)) <= 1


def test_texts_that_are_folded(scratch):
    crawl = scratch / "crawl"
    cycle = make_folding(crawl)
    rows = sweep(crawl, cycle, scratch, f"{names.TEXT}/0000000[1-8].zst")
    found = sum(code == 65 for _, _, code, _, _ in rows)
    assert found > len(rows) // 3 if sampling.is_complete else found, "no segment was read"


def test_a_split_names_what_is_damaged(scratch):
    crawl = scratch / "crawl"
    cycle = make_grow(crawl)
    parent = names.generation(0, read_plan(crawl, cycle).generation)
    rows = sweep(crawl, cycle, scratch, f"{parent}/[kms]*", f"{parent}/collected_row*", f"{parent}/prefixes*")
    assert not missed(rows) and len(rows) >= tried(6 * len(DAMAGES))


def test_no_bit_changes_what_is_read_in_part(scratch):
    """Of AUX and of a segment of text only a part is read, so that no checksum of the whole file guards them."""
    crawl = scratch / "crawl"
    cycle = make_crawl(crawl)
    aux = crawl / names.cycle(cycle - 1) / names.VERIFIER / names.AUX
    digest = footer_digest(aux)

    def read_aux(path: Path):
        verify_footer(path, digest)
        return KeyedFile(path, AUX, ORDER).read(0, PAIR_END).to_pylist()

    text = max((crawl / names.TEXT).iterdir(), key=lambda path: path.stat().st_size)
    for path, read in ((aux, read_aux), (text, lambda path: list(Segment(path).frame_texts()))):
        whole, content, found = read(path), path.read_bytes(), 0
        damaged = scratch / "damaged"
        first, stride = sampling.stride(SAMPLE)
        offsets = range(first - 1, len(content), stride)
        for offset in offsets:
            damaged.write_bytes(flip(content, offset))
            try:
                assert read(damaged) == whole, f"{path.name}: other rows after a bit of byte {offset}"
            except Damaged:
                found += 1
        assert found > len(offsets) // 2


def test_a_plan_that_is_made_anew_makes_the_turn_anew(tmp_path):
    """A turn was published and not committed, and its plan lost: the next plan takes in more than the turn did."""
    crawl = seeded(tmp_path / "crawl")
    plan = harvest(crawl, 0)
    work(crawl.crawl, crawl.crawl.path, plan, crawl.crawl_state.log)
    (crawl.crawl.path / names.cycle(plan.cycle) / names.VERIFIER_PLAN).unlink()
    late = {f"http://late{number}.test/" for number in range(8)}
    crawl.seed(sorted(late))
    crawl.verify(plan)
    log = crawl.crawl_state.log
    assert open_generation(crawl.crawl.path, 0, log.generation(0)).seen == log.seen[0]
    crawl.absorb_all()
    assert late <= set(crawl.rows())
