"""What a small crawl keeps of its collected pages, and what the books say about it."""

from pathlib import Path

from contract import names
from contract.generation import SIDE_COLUMNS, open_generation, read_urls
from contract.log import CRAWL
from contract.plan import Plan
from examine.attempt_books import check_attempts
from examine.block_books import check_generation, check_latest, check_side
from examine.findings import Findings
from examine.forgotten import forgotten_domains
from examine.prepared_books import check_features, check_servers
from examine.visit_books import check_visits
from storage.publish import describe, encode_json, read_json, read_manifest
from tests.small_crawl import Page, SmallCrawl


def sides(small: SmallCrawl) -> dict[str, dict]:
    """The row of the side set of each collected URL, over all blocks."""
    found = {}
    for block in range(small.crawl_state.log.blocks):
        generation = open_generation(small.crawl.path, block, small.crawl_state.log.generation(block))
        columns = {name: generation.side[name][:].tolist() for name in SIDE_COLUMNS if name != "content_digest"}
        digests = generation.side["content_digest"]
        for row, url in enumerate(read_urls(small.crawl.path, generation, generation.collected_rows)):
            found[url] = {name: values[row] for name, values in columns.items()}
            found[url]["content_digest"] = digests[row].tobytes()
    return found


def manifests(small: SmallCrawl) -> list[dict]:
    """Those of the live generations."""
    live = [(block, small.crawl_state.log.generation(block)) for block in range(small.crawl_state.log.blocks)]
    return [
        read_manifest(small.crawl.path / names.generation(block, number))
        for block, number in live
        if number is not None
    ]


def claims_of(small: SmallCrawl) -> dict[str, tuple[int, int]]:
    """(tested lastmod dates, true ones) of each server, over all blocks."""
    found = {}
    for block in range(small.crawl_state.log.blocks):
        generation = open_generation(small.crawl.path, block, small.crawl_state.log.generation(block))
        for row in generation.servers.to_pylist():
            found[row["server"]] = row["lastmod_claims"], row["lastmod_true"]
    return found


def turn(small: SmallCrawl, pages: dict[str, Page], block: int = 0, **more) -> tuple[Plan, dict]:
    """A crawl cycle of a block with these answers; (its plan, its report)."""
    plan = small.plan(CRAWL, block)
    small.schedule(plan)
    small.harvest(plan, pages, **more)
    return plan, small.verify(plan)


def match_manifest(path: Path) -> None:
    """Describes a file that a test wrote anew in the manifest of its folder."""
    manifest = read_json(path.parent / names.MANIFEST)
    manifest["files"][path.name] = describe(path)
    manifest.pop("check", None)
    (path.parent / names.MANIFEST).write_bytes(encode_json(manifest))


def find_wrong(small: SmallCrawl) -> dict[str, list[str]]:
    """The books of blocks, attempts, visits and latest values that do not hold."""
    findings, log, generations = Findings(), small.history(), {}
    for block in range(log.blocks):
        if (number := log.generation(block)) is not None:
            generation, folder = open_generation(small.crawl.path, block, number), small.crawl.path
            check_generation(folder, block, log.blocks, generation, folder, small.keys, findings)
            check_side(folder, generation, folder, findings)
            generations[block] = generation
            check_servers(generation, folder, forgotten_domains(small.crawl.path, log), findings)
            check_features(folder, generation, folder / names.generation(block, number), findings)
    check_attempts(small.crawl.path, log, generations, findings)
    check_visits(small.crawl.path, log, generations, findings)
    check_latest(small.crawl.path, log, generations, findings)
    return findings.wrong
