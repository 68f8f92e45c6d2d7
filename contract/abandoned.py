"""The list of an abandoned cycle: its URLs count as failed in the next merge of the block that holds their keys."""

from pathlib import Path

import pyarrow as pa

from contract import names
from contract.tables import URL_LIST
from storage.publish import is_published, read_manifest, verify
from storage.tables import read_table


def read_abandoned_list(crawl: Path, cycle: int) -> pa.Table:
    """Keys of the list, none where the cycle was abandoned before it had one."""
    folder = crawl / names.cycle(cycle) / names.SCHEDULER
    if not is_published(folder):
        return URL_LIST.empty_table()
    verify(folder / names.URL_LIST, read_manifest(folder)["files"][names.URL_LIST])
    return read_table(folder / names.URL_LIST, URL_LIST, columns=["url_key", "domain_key", "server_key"])
