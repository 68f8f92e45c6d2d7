"""The books of blocks: every generation right in itself, and all of them together equal to what was ever found."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from contract import names
from contract.accumulators import ACCUMULATORS, COUNTED_NAMES, LATEST_NAMES
from contract.blocks import block_of, in_interval, interval
from contract.generation import Generation, open_generation, read_urls
from contract.log import KINDS, History
from contract.pending import find_pending_aux
from contract.tables import AUX, COLLECTED, COLLECTED_STATE, EXTRACTED, METADATA, ORDER, REFUSED_ROWS, STATES
from contract.url import Keys, server_of
from examine.findings import SHOWN_PER_CLAIM, Findings
from examine.forgotten import forgetting, read_forgotten
from storage.arrays import differ_sorted
from storage.pairs import find_pairs, sort_pairs, starts_of_pairs
from storage.publish import is_published, read_manifest
from storage.tables import column, read_table

KEYS = "keys of R, AUX, refused and forgotten = keys of all cycles and seeds"
LATEST = "latest values of R and AUX = the largest of all cycles"

Sums = Counter[str]  # by name of a counted accumulator
Pairs = tuple[np.ndarray, np.ndarray]  # domain key and URL key, u64, sorted by both, each pair once


def check_generation(
    crawl: Path, block: int, blocks: int, generation: Generation, folder: Path, keys: Keys, findings: Findings
) -> None:
    rows, servers = generation.rows, generation.servers
    low, high = interval(block, blocks)
    server_keys, domain_keys = column(servers, "server_key"), column(servers, "domain_key")
    findings.rows("servers are sorted by domain", folder, domain_keys[1:] < domain_keys[:-1], "below the row before")
    findings.equal("each server once", folder, len(np.unique(server_keys)), len(servers), "servers")
    findings.rows(
        "every key is in its block",
        folder,
        ~in_interval(column(servers, "domain_key"), low, high),
        "server of another block",
    )
    findings.rows("states are known", folder, rows["state"] >= len(STATES), "no such state")
    server_index = generation.server_index
    bad_server = server_index >= len(servers)
    bad_server[~bad_server] = (
        np.bincount(server_index[~bad_server], minlength=len(servers))[server_index[~bad_server]]
        != column(servers, "known")[server_index[~bad_server]]
    )
    findings.rows(
        "every URL has its server", folder, bad_server, "no such server, or one that knows another number of URLs"
    )
    if bad_server.any():
        return
    domain = domain_keys[server_index]
    findings.sorted_pairs("keys of a generation are sorted, each once", folder, domain, rows["key"])
    texts = read_urls(crawl, generation, np.arange(len(generation)))
    names_of_servers = column(servers, "server")[server_index]
    wrong = np.array([keys.of(text) for text in texts], np.uint64) != rows["key"]
    wrong |= np.array([server_of(text) for text in texts], object) != names_of_servers
    findings.rows("every text is that of its key and server", folder, wrong.astype(bool), "the text is another URL")
    findings.equal(
        "the side set is that of the collected URLs",
        folder,
        generation.side.rows,
        int((rows["state"] == COLLECTED_STATE).sum()),
        "rows",
    )


def check_side(crawl: Path, generation: Generation, folder: Path, findings: Findings) -> None:
    """Every collected URL's metadata row is one of its own URL."""
    cycles = np.asarray(generation.side["cycle"])
    for cycle in np.unique(cycles).tolist():
        path = crawl / names.cycle(cycle) / names.EXTRACTOR / names.METADATA
        with findings.reading("collected URLs point at their metadata"):
            found = column(read_table(path, METADATA, columns=["url_key"]), "url_key")
            here = np.flatnonzero(cycles == cycle)
            row = np.asarray(generation.side["row"])[here].astype(np.int64)
            wrong = row >= len(found)
            wrong[~wrong] = found[row[~wrong]] != generation.collected_keys[here][~wrong]
            findings.rows("collected URLs point at their metadata", folder, wrong, f"not the URL in {path}")


def add_up(columns: Mapping[str, np.ndarray]) -> Sums:
    """The sum of each counted accumulator over these columns."""
    return Counter({name: int(columns[name].sum(dtype=np.uint64)) for name in COUNTED_NAMES})


class Found:
    """What committed cycles found: keys and sums of counted accumulators, each cycle read once."""

    def __init__(self, crawl: Path):
        self._crawl = crawl
        self._cycles: dict[int, tuple[np.ndarray, Sums]] = {}

    def of(self, kind: str, cycle: int) -> tuple[np.ndarray, Sums]:
        if cycle not in self._cycles:
            folder = self._crawl / names.cycle(cycle)
            if KINDS[kind].from_inbox:
                table = read_table(folder / names.VERIFIER / names.AUX, AUX, columns=["url_key"])
                self._cycles[cycle] = column(table, "url_key"), Counter()
            else:
                table = read_table(
                    folder / names.EXTRACTOR / names.EXTRACTED, EXTRACTED, columns=["url_key", *COUNTED_NAMES]
                )
                collected = read_table(
                    folder / names.EXTRACTOR / names.COLLECTED, COLLECTED, columns=["url_key", "foreign"]
                )
                foreign = column(collected, "url_key")[column(collected, "foreign").astype(bool)]
                self._cycles[cycle] = (
                    np.concatenate([column(table, "url_key"), foreign]),
                    add_up({name: column(table, name) for name in COUNTED_NAMES}),
                )
        return self._cycles[cycle]


def check_position(crawl: Path, log: History, found: Found, findings: Findings) -> None:
    """At this position of the log: R, what waits in AUX, and what was refused or forgotten are exactly what cycles and
    seeds brought.
    """
    entry_path = crawl / names.LOG / names.log_entry(log.length - 1)
    entries = [entry for entry in log.entries if entry is not None]
    brought = [found.of(entry.kind, entry.cycle) for entry in entries if KINDS[entry.kind].has_aux]
    known, sums = [np.empty(0, np.uint64)], Counter()
    for entry in entries:
        if KINDS[entry.kind].merges:
            path = crawl / names.cycle(entry.cycle) / names.VERIFIER / names.REFUSED_URLS
            refused = read_table(path, REFUSED_ROWS)
            known.append(column(refused, "url_key"))
            sums += add_up({name: column(refused, name) for name in COUNTED_NAMES})
    for entry in forgetting(log):
        forgotten = read_forgotten(crawl, entry)
        known.append(column(forgotten, "url_key"))
        sums += add_up({name: column(forgotten, name) for name in COUNTED_NAMES})
    for block in range(log.blocks):
        generation = open_generation(crawl, block, log.generation(block))
        known.append(np.asarray(generation.rows["key"]))
        sums += add_up(generation.rows)
        low, high = interval(block, log.blocks)
        for _, path in find_pending_aux(crawl, log, block):
            aux = read_table(path, AUX, columns=["domain_key", "url_key", *COUNTED_NAMES])
            mine = in_interval(column(aux, "domain_key"), low, high)
            known.append(column(aux, "url_key")[mine])
            sums += add_up({name: column(aux, name)[mine] for name in COUNTED_NAMES})
    for name in COUNTED_NAMES:
        words = name.replace("_", " ")
        findings.equal(
            f"{words} of R, AUX, refused and forgotten = {words} of all cycles",
            entry_path,
            sums[name],
            sum(numbers[name] for _, numbers in brought),
            "sums",
        )
    have = np.unique(np.concatenate(known))
    want = np.unique(np.concatenate([np.empty(0, np.uint64), *(part for part, _ in brought)]))
    missing, extra = differ_sorted(want, have)
    findings.hold(KEYS, len(want))
    if len(missing) or len(extra):
        findings.deny(
            KEYS, entry_path, f"{len(missing)} lost, {len(extra)} from nowhere, first {[*missing[:1], *extra[:1]]}"
        )


def check_latest(crawl: Path, log: History, generations: Mapping[int, Generation], findings: Findings) -> None:
    """Each URL of R or pending AUX has the largest values that UrlsExtraidas of the committed cycles have for it.

    R has absorbed some of these cycles, the rest waits in AUX. A URL that was refused or forgotten at some time may
    have less: what was brought before that is not kept.
    """
    (domain, key), have = find_latest(crawl, log, generations)
    want = {name: np.zeros(len(key), np.uint64) for name in LATEST_NAMES}
    for entry in log.entries:
        if entry is not None and KINDS[entry.kind].fetches:
            path = crawl / names.cycle(entry.cycle) / names.EXTRACTOR / names.EXTRACTED
            table = read_table(path, EXTRACTED, columns=[*ORDER, *LATEST_NAMES])
            row = find_pairs(*(column(table, name) for name in ORDER), domain, key)
            there = row >= 0
            for name, largest in want.items():
                largest[row[there]] = np.maximum(largest[row[there]], column(table, name)[there])
    may_have_less = find_pairs(domain, key, *find_unkept(crawl, log)) >= 0
    for name in LATEST_NAMES:
        wrong = np.where(may_have_less, have[name] > want[name], have[name] != want[name])
        findings.hold(LATEST, len(wrong))
        for at in np.flatnonzero(wrong)[:SHOWN_PER_CLAIM].tolist():
            block = block_of(int(domain[at]), log.blocks)
            row_number = generations[block].find(int(domain[at]), int(key[at])) if block in generations else None
            number = log.generation(block)
            path = crawl / (names.LOG if number is None else names.generation(block, number))
            what = f"{name} of URL key {key[at]}: {have[name][at]} against {want[name][at]}"
            findings.deny(LATEST, path, what, row_number)


def find_latest(
    crawl: Path, log: History, generations: Mapping[int, Generation]
) -> tuple[Pairs, dict[str, np.ndarray]]:
    """All URLs of R and of pending AUX, and the largest of each latest value (u64) that these have.

    Without blocks whose generation could not be read: another book names those.
    """
    parts: list[list[np.ndarray]] = []
    for block in range(log.blocks):
        if block not in generations and log.generation(block) is not None:
            continue
        if block in generations:
            generation = generations[block]
            owner = column(generation.servers, "domain_key")[generation.server_index]
            parts.append([owner, generation.rows["key"], *(generation.rows[name] for name in LATEST_NAMES)])
        for _, path in find_pending_aux(crawl, log, block):
            aux = read_table(path, AUX, columns=[*ORDER, *LATEST_NAMES])
            mine = in_interval(column(aux, "domain_key"), *interval(block, log.blocks))
            parts.append([column(aux, name)[mine] for name in (*ORDER, *LATEST_NAMES)])
    nothing = np.empty(0, np.uint64)
    domain, key, *values = map(np.concatenate, zip([nothing] * (len(ORDER) + len(LATEST_NAMES)), *parts))
    order, domain, key = sort_pairs(domain, key)
    starts = starts_of_pairs(domain, key)
    latest = (one for one in ACCUMULATORS if one.name in LATEST_NAMES)
    have = {one.name: one.combine(brought[order], starts) for one, brought in zip(latest, values)}
    return (domain[starts], key[starts]), have


def find_unkept(crawl: Path, log: History) -> Pairs:
    """URLs of which something that cycles brought was not kept: those that a merge refused, and forgotten ones."""
    tables = [
        read_table(crawl / names.cycle(entry.cycle) / names.VERIFIER / names.REFUSED_URLS, REFUSED_ROWS, list(ORDER))
        for entry in log.entries
        if entry is not None and KINDS[entry.kind].merges
    ]
    tables += [read_forgotten(crawl, entry) for entry in forgetting(log)]
    columns = [[np.empty(0, np.uint64), *(column(table, name) for table in tables)] for name in ORDER]
    _, domain, key = sort_pairs(*map(np.concatenate, columns))
    starts = starts_of_pairs(domain, key)
    return domain[starts], key[starts]


def is_kept(crawl: Path, log: History) -> bool:
    """Whether all that a position of the log needs is still there."""
    return all(
        (generation is None or is_published(crawl / names.generation(block, generation)))
        and all(path.exists() for _, path in find_pending_aux(crawl, log, block))
        for block, generation in ((block, log.generation(block)) for block in range(log.blocks))
    )


def check_chain(crawl: Path, log: History, findings: Findings) -> None:
    """Each turn began with as many URLs as the one before it left, and a split lost none."""
    known: dict[tuple[int, int | None], int] = {}
    for entry in log.entries:
        folder = crawl / names.cycle(entry.cycle) / names.VERIFIER if entry else None
        if entry is None or not entry.generations or not is_published(folder):
            continue
        report = read_manifest(folder)["counts"]
        ((block, parent),) = entry.parents.items()
        findings.equal(
            "a turn begins with what the last one left",
            folder,
            report["known_before"],
            known.get((block, parent), 0),
            "URLs",
        )
        after = {
            child: report[f"known_{child}"] if len(entry.generations) > 1 else report["known"]
            for child, generation in entry.generations.items()
            if generation is not None
        }
        if len(entry.generations) > 1 and after:
            findings.equal(
                "a split block = its two children", folder, report["known_before"], sum(after.values()), "URLs"
            )
        known |= {(child, entry.cycle): number for child, number in after.items()}
