"""UrlsEsquecidas: the URLs that a cycle of kind 'forget' removed from its block."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.log import KINDS, Entry, History
from contract.tables import FORGOTTEN
from examine.findings import Findings
from storage.publish import read_manifest
from storage.tables import column, read_table


def read_forgotten(crawl: Path, entry: Entry) -> pa.Table:
    return read_table(path_of(crawl, entry), FORGOTTEN)


def path_of(crawl: Path, entry: Entry) -> Path:
    return crawl / names.cycle(entry.cycle) / names.VERIFIER / names.FORGOTTEN


def forgetting(log: History) -> Iterator[Entry]:
    """The entries in force that forgot, in the order of the log."""
    return (entry for entry in log.entries if entry is not None and KINDS[entry.kind].forgets)


def forgotten_domains(crawl: Path, log: History) -> np.ndarray:
    """The keys of the domains that had URLs which were forgotten, u64, each once."""
    keys = [column(read_forgotten(crawl, entry), "domain_key") for entry in forgetting(log)]
    return np.unique(np.concatenate([np.empty(0, np.uint64), *keys]))


def check_forgotten(crawl: Path, entry: Entry, findings: Findings) -> None:
    path, table = path_of(crawl, entry), read_forgotten(crawl, entry)
    report = read_manifest(path.parent)["counts"]
    findings.equal("UrlsEsquecidas = forgotten URLs", path, len(table), report["forgotten"], "URLs")
    findings.equal(
        "R after = R before - forgotten URLs", path, report["known"], report["known_before"] - len(table), "URLs"
    )
