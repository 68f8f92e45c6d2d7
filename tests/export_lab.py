"""What tests of bin/export share: the golden crawl, and the command run in this process."""

import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

from contract import names
from contract.tables import METADATA
from contract.url import server_of
from contract.warc import PageReader
from examine.export.__main__ import main
from storage.publish import read_manifest
from storage.tables import read_table

DAY_MS = 86_400_000
GOLDEN = Path(__file__).parent / "golden" / "crawl"


def export(kind: str, out: Path, *options, crawl: Path = GOLDEN) -> dict:
    """Runs the command in this process; returns its manifest."""
    sys.argv = ["export", kind, "--crawl", str(crawl), "--out", str(out), *map(str, options)]
    main()
    return read_manifest(out)


def run_export(*words) -> subprocess.CompletedProcess:
    command = [sys.executable, "-P", "-m", "examine.export", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def visits_of(crawl: Path = GOLDEN) -> list[dict]:
    rows = []
    for folder in sorted((crawl / names.CYCLES).iterdir()):
        path = folder / names.EXTRACTOR / names.METADATA
        if path.exists():
            rows += [{**row, "cycle": int(folder.name)} for row in read_table(path, METADATA).to_pylist()]
    return rows


VISITS = visits_of()
CYCLES = sorted({row["cycle"] for row in VISITS})
SOME_CYCLE = CYCLES[1]
S1 = next(server_of(row["url"]) for row in VISITS if "//s1.test" in row["url"])
MOMENT_S = sorted(row["fetched_at_ms"] for row in VISITS)[len(VISITS) // 2] // 1000
REVISITED = next(row["url"].split("/")[2] for row in VISITS if row["revisit"])
LAST_DAY = max(row["fetched_at_ms"] for row in VISITS) // DAY_MS


def day(number: int) -> str:
    return f"{date(1970, 1, 1) + timedelta(days=number)}"


def records_of(folder: Path) -> list:
    return [record for path in sorted(folder.glob("*.warc.gz")) for record in PageReader(path).records()]


def records_of_crawl() -> list:
    paths = (GOLDEN / names.CYCLES).glob(f"*/{names.FETCHER}/{names.PAGES}/*.warc.zst")
    return [record for path in sorted(paths) for record in PageReader(path).records()]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
