"""What the list of a cycle says of its URLs, as far as their pages and links depend on it."""

from dataclasses import dataclass, field
from pathlib import Path

from contract import names
from contract.tables import TAKEN_ALONG, URL_LIST
from storage.tables import read_table


@dataclass(frozen=True)
class Listed:
    depths: dict[str, int]  # of each URL of the list
    taken: dict[str, tuple[int, ...]] = field(default_factory=dict)  # columns TAKEN_ALONG, where they are not 0
    counted: frozenset[str] = frozenset()  # URLs whose page was parsed at an earlier visit: it gave what it gives once


def read_listed(scheduler: Path) -> Listed:
    table = read_table(scheduler / names.URL_LIST, URL_LIST, columns=["url", "depth", "counted", *TAKEN_ALONG])
    urls = table.column("url").to_pylist()
    amounts = zip(*(table.column(name).to_pylist() for name in TAKEN_ALONG))
    return Listed(
        dict(zip(urls, table.column("depth").to_pylist())),
        {url: amount for url, amount in zip(urls, amounts) if any(amount)},
        frozenset(table.filter(table.column("counted")).column("url").to_pylist()),
    )
