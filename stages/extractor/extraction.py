"""One extraction: takes what the records of a cycle hold, chunk by chunk in their order, and gives its tables and its books."""

from collections import Counter

import numpy as np
import pyarrow as pa

from contract import names
from contract.config import Config
from contract.tables import ANSWERED, COLLECTED, DEPTH_MAX, FAILED, METADATA, REFUSED, UNKNOWN_DIGEST
from contract.url import Keys
from stages.extractor.columns import LinkRows, RejectedRows, Rows, mark_repeated
from stages.extractor.failures import ATTEMPTS_MAX, Failures
from stages.extractor.link_judge import CLASSES
from stages.extractor.observed_servers import Servers
from stages.extractor.reading import Links, Page, Result
from stages.extractor.recorded_exchange import Exchange
from stages.extractor.scope import RULES
from storage.tables import column

ZERO = dict.fromkeys(
    ("skipped_records", "repeated_finals", "foreign_answered", "pages_parsed", "pages_in_trouble", "bytes_decoded"), 0
)


class Extraction:
    """`listed` holds the depth of each URL of the list; without a list every URL counts as listed, at depth 0."""

    def __init__(
        self,
        config: Config,
        keys: Keys,
        listed: dict[str, int] | None,
        servers: pa.Table | None,
        cash: dict[str, int] | None = None,
    ):
        self._keeps_targets = config.extractor.keep_links == "all"
        self._keys = keys
        self._listed = listed
        self._cash = cash or {}  # what the list says that a page is to hand on to its targets
        self._servers, self._failures = Servers(servers, keys, config.fetcher), Failures(keys)
        self._collected, self._metadata, self._links, self._rejected = (
            Rows(COLLECTED),
            Rows(METADATA),
            LinkRows(),
            RejectedRows(),
        )
        self._ended: set[str] = set()
        self._robots_read: set[str] = set()
        self._has_taken = False
        self._attempts: Counter[str] = Counter()  # of URLs that are not ended yet
        self._counts = Counter(ZERO)
        self._outcomes = Counter(dict.fromkeys((ANSWERED, FAILED, REFUSED, "foreign"), 0))
        self._reasons: Counter[str] = Counter()  # of listed URLs that were not answered
        self._classes = Counter(dict.fromkeys(CLASSES, 0))

    def take(self, result: Result) -> None:
        """Takes the next chunk; files come by name, records by offset."""
        self._has_taken = self._has_taken or bool(result.findings) or not result.damage
        self._counts["skipped_records"] += result.skipped
        pages, left_out, start = [], [], 0
        for exchange, page in result.findings:
            is_taken = self._take_exchange(exchange)
            if page is not None:
                if is_taken:
                    pages.append(self._take_page(page))
                else:
                    left_out.append((start, start + page.links))
                start += page.links
        self._links.extend(pages, without(result.links, left_out) if left_out else result.links)

    @property
    def has_taken(self) -> bool:
        """Whether anything was there to be taken, if only a record that says nothing."""
        return self._has_taken

    def pass_over(self, result: Result) -> None:
        """Takes nothing of a chunk but the texts of URLs, which its worker will not tell again."""
        rest = Links()
        rest.urls = result.links.urls
        self._links.extend([], rest)

    def _take_exchange(self, exchange: Exchange) -> bool:
        """Whether the exchange ends its URL, or is one for robots.txt, and is the first that does."""
        self._servers.note(exchange)
        self._failures.note(exchange)
        if exchange.robots_for:
            is_first = exchange.url not in self._robots_read
            self._robots_read.add(exchange.url)
            return is_first
        url = exchange.url
        self._attempts[url] += exchange.is_requested
        if not exchange.is_final:
            return False
        attempts = self._attempts.pop(url)
        if url in self._ended:
            self._counts["repeated_finals"] += 1
            return False
        self._ended.add(url)
        self._failures.end(exchange, attempts)
        depth = self._depth_of(url)
        self._outcomes["foreign" if depth is None else exchange.outcome] += 1
        self._reasons[exchange.reason] += depth is not None and exchange.outcome != ANSWERED
        self._counts["foreign_answered"] += depth is None and exchange.outcome == ANSWERED
        server = self._keys.server(exchange.server)
        self._collected.append(
            (
                server.domain_key,
                self._keys.of(url),
                server.key,
                url,
                depth or 0,
                exchange.outcome,
                exchange.reason,
                exchange.message.status,
                min(attempts, ATTEMPTS_MAX),
                exchange.started_at_ms,
                depth is None,
                0,
            )
        )
        return True

    def _depth_of(self, url: str) -> int | None:
        """None where the list does not hold the URL."""
        return 0 if self._listed is None else self._listed.get(url)

    def _take_page(self, page: Page) -> tuple[int, int, int, int]:
        """The page as its links have it: key, depth of its targets, their number, what it hands on to them."""
        for name, count in page.classes.items():
            self._classes[name] += count
        self._rejected.add(page.rejected)
        if page.metadata is None:
            return page.key, 1, page.links, 0
        self._metadata.append((*page.metadata, False, page.fingerprint))
        self._counts["pages_parsed"] += page.is_parsed
        self._counts["pages_in_trouble"] += bool(page.metadata[TROUBLE])
        self._counts["bytes_decoded"] += page.decoded_bytes
        url = page.metadata[URL]
        return page.key, min((self._depth_of(url) or 0) + 1, DEPTH_MAX), page.links, self._cash.get(url, 0)

    @property
    def figures(self) -> dict[str, int]:
        """How far it is, for progress."""
        figures = {"pages": len(self._ended), "bytes": self._counts["bytes_decoded"]}
        return figures if self._listed is None else {**figures, "listed": len(self._listed)}

    def tables(self) -> dict[str, pa.Table]:
        """The tables by their file names, once the last chunk is taken."""
        metadata = self._metadata.table()
        repeated = mark_repeated(metadata.column("content_digest"), UNKNOWN_DIGEST)
        metadata = metadata.set_column(
            metadata.schema.get_field_index("duplicate"), METADATA.field("duplicate"), pa.array(repeated)
        )
        return {
            names.COLLECTED: mark_handed_on(self._collected.table(), self._links.handed_on()),
            names.METADATA: metadata,
            names.FAILURES: self._failures.table(),
            names.EXTRACTED: self._links.extracted(self._keys),
            names.LINKS: self._links.links(),
            names.REJECTED: self._rejected.table(),
            names.SERVERS: self._servers.table(),
            **({names.TARGETS: self._links.targets()} if self._keeps_targets else {}),
        }

    def books(self, tables: dict[str, pa.Table]) -> dict:
        """The counts of the manifest; the first four outcomes are those of listed URLs only."""
        listed = len(self._collected) if self._listed is None else len(self._listed)
        reached = len(self._collected) - self._outcomes["foreign"]
        return {
            "listed": listed,
            **self._outcomes,
            "not_reached": listed - reached,
            "reasons": {reason: urls for reason, urls in sorted(self._reasons.items()) if urls},
            "metadata": len(tables[names.METADATA]),
            **self._counts,
            "link_occurrences": self._classes.total(),
            **self._classes,
            "rejected": self._rejected.by_rule(RULES),
            "extracted_rows": len(tables[names.EXTRACTED]),
            "links_rows": len(tables[names.LINKS]),
            "links_in_sum": int(column(tables[names.EXTRACTED], "links_in").sum(dtype="u8")),
        }


def mark_handed_on(collected: pa.Table, handed_on: dict[int, int]) -> pa.Table:
    """UrlsColetadas with what each URL handed on, given by key."""
    if not handed_on:
        return collected
    given = pa.array([handed_on.get(key, 0) for key in column(collected, "url_key").tolist()], pa.uint64())
    return collected.set_column(collected.schema.get_field_index("cash_taken"), COLLECTED.field("cash_taken"), given)


URL, TROUBLE = (METADATA.get_field_index(name) for name in ("url", "trouble"))


def without(links: Links, ranges: list[tuple[int, int]]) -> Links:
    """The links but those of some ranges: of pages that were collected before."""
    kept = np.ones(len(links.to_key), bool)
    for start, end in ranges:
        kept[start:end] = False
    rest = Links()
    for name in ("to_key", "kinds", "nofollow", "followed"):
        getattr(rest, name).extend(
            np.frombuffer(getattr(links, name), f"u{getattr(links, name).itemsize}")[kept].tolist()
        )
    rest.anchors = [anchor for anchor, is_kept in zip(links.anchors, kept.tolist()) if is_kept]
    rest.urls = links.urls
    return rest
