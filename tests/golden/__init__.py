"""Golden files: a small crawl folder in the format of today, what bin/show prints of it, and ways to break it."""

import json
from pathlib import Path

from contract import names

GOLDEN = Path(__file__).resolve().parent / "crawl"
SUFFIX_LIST = "// a short list, so that the golden crawl stays small\ntest\nbr\ncom.br\ncom\norg\n"
REVISITED = "revisited.test"  # the host whose pages are asked again
LAST = max((int(path.name) for path in (GOLDEN / names.CYCLES).glob("*")), default=0)  # it lists a revisit
PLAN = GOLDEN / names.cycle(LAST) / names.PLAN
BLOCK = json.loads(PLAN.read_bytes())["block"] if PLAN.exists() else 0  # none while make.py makes the crawl anew
SEGMENT = max((GOLDEN / names.TEXT).glob("*"), default=Path(names.segment(0))).name  # the newest one
SHOWN = [
    names.LOG,
    names.CRAWL_FILE,
    names.CONFIGURATION,
    f"{names.cycle(LAST)}/{names.SCHEDULER}/{names.URL_LIST}",
    f"{names.cycle(LAST)}/{names.SCHEDULER}/{names.SERVERS}",
    f"{names.cycle(LAST)}/{names.FETCHER}/{names.PAGES}/00000.warc.zst",
    f"{names.cycle(LAST)}/{names.EXTRACTOR}/{names.COLLECTED}",
    f"{names.cycle(LAST)}/{names.EXTRACTOR}/{names.METADATA}",
    f"{names.cycle(LAST)}/{names.EXTRACTOR}/{names.EXTRACTED}",
    f"{names.cycle(LAST)}/{names.EXTRACTOR}/{names.LINKS}",
    f"{names.cycle(LAST)}/{names.VERIFIER}/{names.REPORT}",
    f"{names.cycle(0)}/{names.VERIFIER}/{names.AUX}",
    names.generation(BLOCK, LAST),
    f"{names.generation(BLOCK, LAST)}/servers.parquet",
    f"{names.TEXT}/{SEGMENT}",
]


def shown_name(path: str) -> str:
    return path.replace("/", "-") + ".jsonl"
