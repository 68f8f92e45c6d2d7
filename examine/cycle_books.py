"""The books of one committed cycle (design, section 7): what each stage took in must add up to what it gave on."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from contract import names
from contract.accumulators import ACCUMULATORS, COUNTED, COUNTED_NAMES
from contract.tables import (
    ANSWERED,
    AUX,
    COLLECTED,
    CYCLE_SERVERS,
    EXTRACTED,
    FAILED,
    FAILURES,
    FAILURES_ORDER,
    LINKS,
    METADATA,
    REFUSED,
    REJECTED,
    TARGETS,
    URL_LIST,
)
from contract.url import Keys, server_of
from contract.warc import ANSWERS, PageReader
from examine.findings import Findings
from examine.link_source_books import check_fetched
from storage.arrays import is_in_sorted
from storage.publish import read_manifest
from storage.tables import column, read_table

SORTED = "tables are sorted, each URL once"
LINK_CLASSES = (
    "unparsable",
    "other_scheme",
    "repeated_in_page",
    "kind_not_followed",
    "nofollow",
    "out_of_scope",
    "trap",
    "duplicate_page",
    "followed",
)


def check_cycle(crawl: Path, cycle: int, keys: Keys, findings: Findings) -> None:
    folder = crawl / names.cycle(cycle)
    counts = {stage: read_manifest(folder / stage)["counts"] for stage in names.STAGES}
    extractor = folder / names.EXTRACTOR
    listed = read_table(folder / names.SCHEDULER / names.URL_LIST, URL_LIST)
    collected = read_table(extractor / names.COLLECTED, COLLECTED)
    extracted = read_table(extractor / names.EXTRACTED, EXTRACTED)
    metadata = read_table(extractor / names.METADATA, METADATA)
    for name, table in ((names.COLLECTED, collected), (names.EXTRACTED, extracted), (names.METADATA, metadata)):
        check_keyed(extractor / name, table, keys, findings)
    read_table(extractor / names.SERVERS, CYCLE_SERVERS)
    read_table(extractor / names.LINKS, LINKS)
    rejected = read_table(extractor / names.REJECTED, REJECTED)
    if (extractor / names.TARGETS).exists():
        read_table(extractor / names.TARGETS, TARGETS)

    check_list(extractor, listed, collected, metadata, counts, findings)
    if len(metadata) == int((column(collected, "outcome") == ANSWERED).sum()):  # else check_list() has named it
        check_fetched(crawl, cycle, collected, metadata, counts[names.EXTRACTOR], findings)
    check_failures(extractor / names.FAILURES, collected, keys, counts[names.EXTRACTOR], findings)
    check_links(extractor, extracted, rejected, counts[names.EXTRACTOR], findings)
    check_merge(folder / names.VERIFIER, counts, findings)
    check_pages(folder, metadata, findings)


def check_keyed(path: Path, table, keys: Keys, findings: Findings) -> None:
    """Sorted by (domain key, URL key), each once, and every key that of its URL."""
    findings.sorted_pairs(SORTED, path, column(table, "domain_key"), column(table, "url_key"))
    check_keys(path, table, [server_of(url) for url in column(table, "url")], keys, findings)


def check_keys(path: Path, table, servers: list[str], keys: Keys, findings: Findings) -> None:
    """The keys of each row are those of its URL and of its server, given here."""
    of_urls = np.array([keys.of(url) for url in column(table, "url")], np.uint64)
    of_servers = [keys.server(server) for server in servers]
    wrong = of_urls != column(table, "url_key")
    wrong |= np.array([server.key for server in of_servers], np.uint64) != column(table, "server_key")
    wrong |= np.array([server.domain_key for server in of_servers], np.uint64) != column(table, "domain_key")
    findings.rows("keys are those of their URLs", path, wrong, "a key is not that of the URL or its server")


def check_list(folder: Path, listed, collected, metadata, counts: dict, findings: Findings) -> None:
    claim = "list = answered + failed + refused + not reached"
    outcome, foreign = column(collected, "outcome"), column(collected, "foreign").astype(bool)
    numbers = {name: int(((outcome == name) & ~foreign).sum()) for name in (ANSWERED, FAILED, REFUSED)}
    reached = is_in_sorted(column(listed, "url_key"), np.unique(column(collected, "url_key")[~foreign]))
    findings.equal(
        claim,
        folder,
        len(listed),
        sum(numbers.values()) + int((~reached).sum()),
        "rows of the list, and where they went",
    )
    for name in (ANSWERED, FAILED, REFUSED):
        findings.equal(
            claim, folder, counts[names.EXTRACTOR][name], numbers[name], f"{name} in the manifest and in the table"
        )
    findings.equal(
        claim, folder, counts[names.FETCHER]["listed"], len(listed), "listed in the fetcher's manifest and in the list"
    )
    findings.equal("Metadados = answered", folder, len(metadata), int((outcome == ANSWERED).sum()), "rows")
    same = np.array_equal(column(metadata, "url_key"), column(collected, "url_key")[outcome == ANSWERED])
    findings.equal("Metadados = answered", folder, same, True, "the same URLs")


def check_failures(path: Path, collected, keys: Keys, counts: dict, findings: Findings) -> None:
    claim, failures = "Falhas = failed + refused, each with its reason", read_table(path, FAILURES)
    pages = failures.filter(pc.invert(failures.column("is_robots")))
    ended = collected.filter(pc.not_equal(collected.column("outcome"), ANSWERED))
    findings.equal(claim, path, len(pages), len(ended), "rows of pages, and rows of UrlsColetadas")
    if len(pages) == len(ended):
        for name in ("url_key", "outcome", "reason", "attempts"):
            findings.rows(claim, path, column(pages, name) != column(ended, name), f"another {name} than UrlsColetadas")
    robots = column(failures.filter(failures.column("is_robots")), "server_key")
    findings.equal(claim, path, len(robots), len(np.unique(robots)), "rows of robots.txt, and their servers")
    reasons = Counter(column(ended, "reason")[~column(ended, "foreign").astype(bool)].tolist())
    findings.equal(claim, path, counts["reasons"], dict(reasons), "reasons in the manifest and in the table")
    check_keys(path, failures, column(failures, "server").tolist(), keys, findings)
    rows = list(zip(*(column(failures, name).tolist() for name in FAILURES_ORDER)))
    rising = np.array([before < after for before, after in zip(rows, rows[1:])], bool)
    findings.rows(SORTED, path, ~rising, "not above the row before")


def check_links(folder: Path, extracted, rejected, counts: dict, findings: Findings) -> None:
    findings.equal(
        "link occurrences = sum of their classes",
        folder,
        counts["link_occurrences"],
        sum(counts[name] for name in LINK_CLASSES),
        "occurrences, classes",
    )
    findings.equal(
        "out of scope + trap = sum of links over UrlsRejeitadas",
        folder,
        counts["out_of_scope"] + counts["trap"],
        int(column(rejected, "links").sum(dtype=np.uint64)),
        "rejected, links",
    )
    for one in (one for one in ACCUMULATORS if one.name in COUNTED_NAMES):
        words, found = one.name.replace("_", " "), int(column(extracted, one.name).sum(dtype=np.uint64))
        findings.equal(
            f"{words} of UrlsExtraidas = its count in the manifest",
            folder,
            counts[f"{one.name}_sum"],
            found,
            f"count, {words}",
        )
        if one.manner == COUNTED:
            findings.equal(
                f"followed - followed again = sum of {words} over UrlsExtraidas",
                folder,
                counts["followed"] - counts["followed_again"],
                found,
                f"links that count, {words}",
            )


def check_merge(folder: Path, counts: dict, findings: Findings) -> None:
    merged = counts[names.VERIFIER]
    findings.equal(
        "UrlsExtraidas = own rows + AUX rows",
        folder,
        merged["extracted"],
        merged["own"] + merged["spilled"] - merged["foreign_spilled"],
        "rows",
    )
    aux = folder / names.AUX
    if aux.exists():
        findings.equal(
            "UrlsExtraidas = own rows + AUX rows", aux, merged["spilled"], len(read_table(aux, AUX)), "rows spilled"
        )
    check_sets(folder, merged, findings)


def check_sets(folder: Path, merged: dict, findings: Findings) -> None:
    sets = ("repeated", "already_collected", "collected_now", "known_uncollected", "new")
    findings.equal(
        "rows merged = the four sets + repeated + refused by rule",
        folder,
        merged["rows_merged"],
        sum(merged[name] for name in sets) + merged["refused_linked"],
        "rows, sets",
    )
    findings.equal(
        "R after = R before + new",
        folder,
        merged["known"],
        merged["known_before"] + merged["new"] + merged["foreign_new"],
        "URLs",
    )


def check_pages(folder: Path, metadata, findings: Findings) -> None:
    """Every metadata row points at the response or revisit record of its URL."""
    claim = "metadata rows point at the record of their URL"
    files = column(metadata, "file")
    for name in np.unique(files.astype(str)).tolist():
        path = folder / names.FETCHER / name
        with findings.reading(claim):
            records = {
                record.offset: (record.type in ANSWERS, record.url, record.length)
                for record in PageReader(path).records()
            }
            rows = np.flatnonzero(files == name)
            wanted = metadata.take(rows).select(["offset", "url", "length"]).to_pylist()
            findings.hold(claim, len(rows))
            for row, want in zip(rows.tolist(), wanted):
                if records.get(want["offset"]) != (True, want["url"], want["length"]):
                    findings.deny(
                        claim,
                        folder / names.EXTRACTOR / names.METADATA,
                        f"found {records.get(want['offset'])} at {path} {want['offset']}",
                        row,
                    )
