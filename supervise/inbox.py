"""Takes seeds in: files of inbox/ become a `seed` entry whose cycle holds only an AUX (rule 10)."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import aux_rows, names
from contract.accumulators import SEED_CASH
from contract.canonical import Canonical
from contract.config import Config
from contract.log import ABANDON, SEED, Entry, commit
from contract.plan import Plan, write_plan
from contract.seeds import parse_lines, read_lines
from contract.tables import AUX, AUX_DISTINCT
from contract.url import Keys, server_of
from storage.publish import FORMAT, confirm_published, encode_json, is_published, publishing, sync_folder
from storage.tables import column, footer_digest, write_table
from supervise.books import Books, now_ms


def take_inbox(books: Books, config: Config) -> int:
    """Commits every file that lies in inbox/; returns how many URLs came in."""
    taken = 0
    for path in names.visible_files(books.path / names.INBOX):
        if path.name not in books.log.inbox:
            cycle = books.next_cycle()
            write_plan(books.path, Plan(cycle, SEED, 0, books.log.blocks, None, now_ms(), config, path.name))
            taken += commit_seeds(books, cycle, path, config)
        delete_taken(books, path)
    return taken


def resume_seeds(books: Books, plan: Plan) -> None:
    """Finishes a seed cycle that was interrupted."""
    path = books.path / names.INBOX / plan.inbox
    if path.exists() or is_published(books.path / names.cycle(plan.cycle) / names.VERIFIER):
        commit_seeds(books, plan.cycle, path, plan.config)
        delete_taken(books, path)
    else:
        commit(books.path, Entry(ABANDON, plan.cycle, plan.blocks, reason=f"inbox/{plan.inbox} is gone"))
        books.refresh()


def commit_seeds(books: Books, cycle: int, path: Path, config: Config) -> int:
    folder = books.path / names.cycle(cycle) / names.VERIFIER
    rows = 0
    if not confirm_published(folder):
        table, bad = read_seeds(path, books.crawl.keys(), Canonical(config.url))
        rows = len(table)
        with publishing(folder) as manifest:
            write_table(folder / names.AUX, table, AUX_DISTINCT)
            report = {"kind": SEED, "cycle": cycle, "new": rows, "bad_lines": bad}
            (folder / names.REPORT).write_bytes(encode_json({"format": FORMAT, **report}))
            manifest |= {
                "stage": names.VERIFIER, "cycle": cycle, "counts": report,
                "aux": {**aux_rows.summarise(column(table, "domain_key")), "footer": footer_digest(folder / names.AUX)},
            }
    commit(books.path, Entry(SEED, cycle, books.log.blocks, inbox=path.name))
    books.refresh()
    return rows


def delete_taken(books: Books, path: Path) -> None:
    """Only once the entry that names it cannot be lost to a power cut."""
    sync_folder(books.path / names.LOG)
    path.unlink(missing_ok=True)


def read_seeds(path: Path, keys: Keys, canonical: Canonical) -> tuple[pa.Table, int]:
    """The distinct URLs of a file as rows of AUX, sorted by (domain key, URL key), and how many lines were bad."""
    with open(path, "rb") as stream:
        lines = list(parse_lines(read_lines(stream)))
    urls = sorted({canonical.fold(line.url) for line in lines if line.url})  # as links are, or both would be asked for
    servers = [keys.server(server_of(url)) for url in urls]
    table = pa.table({
        "domain_key": pa.array([server.domain_key for server in servers], pa.uint64()),
        "url_key": pa.array([keys.of(url) for url in urls], pa.uint64()),
        "server_key": pa.array([server.key for server in servers], pa.uint64()),
        "url": pa.array(urls, pa.string()),
        "depth": np.zeros(len(urls), np.uint8), "links_in": np.zeros(len(urls), np.uint32), "cash": np.full(len(urls), SEED_CASH, np.uint64),
    }, schema=AUX)
    order = np.lexsort((column(table, "url_key"), column(table, "domain_key")))
    return table.take(pa.array(order)), sum(bool(line.problem) for line in lines)
