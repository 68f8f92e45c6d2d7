"""check: proves from the files alone that a crawl is whole and that its books agree.

  bin/check [--crawl DIR]

Verifies the checksum of every file that a manifest names, that every known URL is in one block only
and in the right one, sorted and unique, that every metadata row points at the page of its URL, and
that the sums agree from the list to the link counts (docs/formats.md lists them). Exits 65 and names
file and row of what does not hold. Needs no lock; run it while the crawl rests.

Example: bin/check --crawl demo/crawl
"""

import sys
from pathlib import Path

import numpy as np

from contract import names
from contract.command import make_parser, run
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import CrawlFolder, notes_of_damage, open_folder
from contract.dictionary import read_dictionary
from contract.errors import EX_DATAERR
from contract.generation import open_generation, read_generation_manifest
from contract.lines import say
from contract.log import KINDS, History, positions, replay
from contract.pending import live_absorber
from contract.plan import cycles_without_plan, open_cycles, read_plan
from contract.units import count
from examine.attempt_books import check_attempts
from examine.block_books import Found, check_chain, check_generation, check_latest, check_position, check_side, is_kept
from examine.cycle_books import check_cycle, check_sets
from examine.findings import Findings
from examine.forgotten import check_forgotten, forgotten_domains
from examine.link_source_books import check_known
from examine.log_summary_check import check_summary, find_unusable
from examine.prepared_books import check_features, check_servers
from examine.visit_books import check_visits
from storage.publish import is_published, read_manifest, verify

NAME = "check"
FILES = "files are those of their manifests"
PLANS = "every cycle has its plan"


def main() -> int:
    parser = make_parser(NAME, __doc__)
    arguments = parser.parse_args()
    findings = Findings()
    crawl = open_folder(arguments.crawl)
    log = replay(crawl.path, crawl.blocks_first)
    check_all(crawl, log, findings)
    for line in findings.report():
        say(line, indent=9)
    if note := find_unusable(crawl):
        say(f"note   {note}", indent=9)
    for note in notes_of_damage(crawl.path):
        say(f"note   set aside in corrupt/: {note['path']}: {note['reason']}", indent=9)
    if findings.wrong:
        say(f"{NAME}: {crawl.path} is not whole: see the lines above", sys.stderr)
        return EX_DATAERR
    say(f"{crawl.path}: {count(log.length, 'commit')}, all books agree")
    return 0


def check_all(crawl: CrawlFolder, log: History, findings: Findings) -> None:
    keys = crawl.keys()
    aside = {note["path"] for note in notes_of_damage(crawl.path)}
    for folder in published_folders(crawl.path):
        check_files(crawl.path, folder, log, aside, findings)
    check_dictionary(crawl.path, findings)
    check_configuration(crawl.path, findings)
    for cycle in cycles_without_plan(crawl.path, log, whole=True):
        findings.deny(
            PLANS,
            crawl.path / names.cycle(cycle) / names.PLAN,
            "expected the plan of a cycle that has files, found none",
        )
    for cycle in open_cycles(crawl.path, log, whole=True):
        check_plan(crawl.path, cycle, findings)
    committed = [entry for entry in log.entries if entry is not None]
    for entry in committed:
        if (
            not log.is_abandoned(entry.cycle) or (crawl.path / names.cycle(entry.cycle)).exists()
        ):  # a cycle whose plan was lost is set aside
            check_plan(crawl.path, entry.cycle, findings)
        with findings.reading(FILES, crawl.path / names.cycle(entry.cycle)):
            if KINDS[entry.kind].fetches:
                check_cycle(crawl.path, entry.cycle, keys, findings)
            elif KINDS[entry.kind].forgets:
                check_forgotten(crawl.path, entry, findings)
            elif KINDS[entry.kind].merges:
                folder = crawl.path / names.cycle(entry.cycle) / names.VERIFIER
                check_sets(folder, read_manifest(folder)["counts"], findings)
    generations, forgotten = {}, np.empty(0, np.uint64)
    with findings.reading(FILES, crawl.path):
        forgotten = forgotten_domains(crawl.path, log)
    for block in range(log.blocks):
        number = log.generation(block)
        if number is not None:
            generation_folder = crawl.path / names.generation(block, number)
            with findings.reading(FILES, generation_folder):
                generation = open_generation(crawl.path, block, number)
                check_generation(crawl.path, block, log.blocks, generation, generation_folder, keys, findings)
                check_side(crawl.path, generation, generation_folder, findings)
                generations[block] = generation
                check_servers(generation, generation_folder, forgotten, findings)
                check_features(crawl.path, generation, generation_folder, findings)
                check_known(crawl.path, generation, generation_folder, findings)
    with findings.reading(FILES, crawl.path):
        check_attempts(crawl.path, log, generations, findings)
    with findings.reading(FILES, crawl.path):
        check_visits(crawl.path, log, generations, findings)
    with findings.reading(FILES, crawl.path):
        check_latest(crawl.path, log, generations, findings)
    with findings.reading(FILES, crawl.path):
        check_chain(crawl.path, log, findings)
        check_positions(crawl, findings)
    check_summary(crawl, log, findings)


def check_plan(crawl: Path, cycle: int, findings: Findings) -> None:
    findings.hold(PLANS)
    with findings.reading(PLANS):
        if (crawl / names.cycle(cycle) / names.PLAN).is_file():
            read_plan(crawl, cycle)
        else:
            findings.deny(PLANS, crawl / names.cycle(cycle) / names.PLAN, "expected a file, found none")


def check_dictionary(crawl: Path, findings: Findings) -> None:
    claim = "the dictionary of pages is whole"
    if (crawl / names.DICTIONARY).exists():
        findings.hold(claim)
        with findings.reading(claim):
            read_dictionary(crawl / names.DICTIONARY)


def check_configuration(crawl: Path, findings: Findings) -> None:
    claim = "the configuration is whole"
    findings.hold(claim)
    with findings.reading(claim):
        read_crawl_config(crawl)


def published_folders(crawl: Path) -> list[Path]:
    cycles = (
        crawl / names.cycle(cycle) / stage for cycle in names.numbered(crawl / names.CYCLES) for stage in names.STAGES
    )
    blocks = sorted(path for path in (crawl / names.GENERATIONS).glob("[0-9]*/[0-9]*"))
    return [folder for folder in (*cycles, *blocks) if is_published(folder)]


def check_files(crawl: Path, folder: Path, log: History, aside: set[str], findings: Findings) -> None:
    with findings.reading(FILES, folder):
        check_manifest(crawl, folder, read_generation_manifest(folder), log, aside, findings)


def check_manifest(
    crawl: Path, folder: Path, manifest: dict, log: History, aside: set[str], findings: Findings
) -> None:
    described = {folder / name: about for name, about in manifest["files"].items()}
    described |= {crawl / names.TEXT / name: about for name, about in manifest.get("texts", {}).items()}
    for path, about in described.items():
        if path.name == names.AUX and not path.exists() and not is_needed(manifest, log):
            continue  # every block has absorbed it: rule 7 of the protocol lets it go
        if path.parent.name == names.PAGES and path.relative_to(crawl).as_posix() in aside:
            continue  # set aside as damaged; its URLs were not reached
        findings.hold(FILES)
        with findings.reading(FILES):
            verify(path, about)


def is_needed(manifest: dict, log: History) -> bool:
    position = log.cycles.get(manifest["cycle"])
    return position is not None and any(
        live_absorber(log, block).lacks(position, manifest.get("aux")) for block in range(log.blocks)
    )


def check_positions(crawl: CrawlFolder, findings: Findings) -> None:
    """The last position of the log, and every one before it whose files are all kept."""
    found = Found(crawl.path)
    for length in range(len(positions(crawl.path)), 0, -1):
        log = replay(crawl.path, crawl.blocks_first, length)
        if length < len(positions(crawl.path)) and not is_kept(crawl.path, log):
            return
        check_position(crawl.path, log, found, findings)


if __name__ == "__main__":
    run(main, NAME)
