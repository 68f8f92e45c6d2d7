"""One extraction: takes the results of workers in the order of records, and makes the tables and the books."""

from collections import Counter

import numpy as np
import pyarrow as pa

from contract import names
from contract.accumulators import COUNTED_NAMES, HANDED_ON, SHARED_NAMES
from contract.config import Config
from contract.scope.link_sources import LinkSources
from contract.scope.rules import RULES
from contract.tables import ANSWERED, COLLECTED, DEPTH_MAX, FAILED, METADATA, REFUSED, TAKEN, UNKNOWN_DIGEST
from contract.totals import FETCHED
from contract.url import Keys
from stages.extractor.columns import LinkRows, PageLinks, RejectedRows, Rows, mark_repeated
from stages.extractor.failures import ATTEMPTS_MAX, Failures
from stages.extractor.known_contents import KnownContents, find_repeated
from stages.extractor.link_judge import CLASSES, DUPLICATE, FOLLOWED
from stages.extractor.listed import Listed
from stages.extractor.observed_servers import Servers
from stages.extractor.reading import Links, Page, Result
from stages.extractor.recorded_exchange import Exchange
from storage.tables import column

ZERO = dict.fromkeys(
    ("skipped_records", "repeated_finals", "foreign_answered", "pages_parsed", "pages_in_trouble", "bytes_decoded"), 0
)
NO_AMOUNTS = (0,) * len(HANDED_ON)
NONE_TAKEN = (0,) * len(TAKEN)


class Extraction:
    """Without a list every URL counts as listed, at depth 0.

    `fetched` is how many URLs of the list the fetcher reached, for the progress line. `known` holds the contents of the
    block, with [extractor] follow_duplicates off.
    """

    def __init__(
        self,
        config: Config,
        keys: Keys,
        listed: Listed | None,
        servers: pa.Table | None,
        fetched: int | None = None,
        known: KnownContents | None = None,
    ):
        self._fetched = fetched
        self._follows_duplicates = config.extractor.follow_duplicates
        self._known = known
        self._keeps_targets = config.extractor.keep_links == "all"
        self._keys = keys
        self._listed = listed.depths if listed else None
        self._taken = listed.taken if listed else {}
        self._counted = listed.counted if listed else frozenset()
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
        self._attempts: Counter[str] = Counter()  # of URLs that have not ended yet
        self._counts = Counter(ZERO)
        self._outcomes = Counter(dict.fromkeys((ANSWERED, FAILED, REFUSED, "foreign"), 0))
        self._reasons: Counter[str] = Counter()  # of listed URLs that were not answered
        self._classes = Counter(dict.fromkeys(CLASSES, 0))
        self._link_sources = LinkSources(config.scope)
        self._of_link_sources: Counter[str] = Counter(dict.fromkeys(FETCHED, 0))

    def take(self, result: Result) -> None:
        """Takes the next chunk. REQUIRES: files in the order of their names, records in the order of their offsets."""
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
        """Whether there was any record, even one without an exchange."""
        return self._has_taken

    def pass_over(self, result: Result) -> None:
        """Takes nothing of a chunk but the texts of URLs, which its worker does not send again."""
        rest = Links()
        rest.urls = result.links.urls
        self._links.extend([], rest)

    def _take_exchange(self, exchange: Exchange) -> bool:
        """Takes an exchange; says whether it is the first that ends its URL, or the first for this robots.txt."""
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
        self._of_link_sources[exchange.outcome] += self._is_link_source(url)
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
                *NONE_TAKEN,
            )
        )
        return True

    def _depth_of(self, url: str) -> int | None:
        """None where the list does not hold the URL."""
        return 0 if self._listed is None else self._listed.get(url)

    def _is_link_source(self, url: str) -> bool:
        """Whether it is one of the list."""
        depth = self._depth_of(url) if self._link_sources else None
        return depth is not None and self._link_sources.takes(url, depth)

    def _take_page(self, page: Page) -> PageLinks:
        for name, count in page.classes.items():
            self._classes[name] += count
        self._rejected.add(page.rejected)
        row = page.row
        if row is None:
            return PageLinks(page.key, page.domain_key, 1, page.links, NO_AMOUNTS, page.visited_at_ms)
        self._metadata.append(row)
        self._counts["pages_parsed"] += row.parsed
        self._counts["pages_in_trouble"] += bool(row.trouble)
        self._counts["bytes_decoded"] += page.decoded_bytes
        self._of_link_sources["bytes"] += row.bytes * self._is_link_source(row.url)
        target_depth = min((self._depth_of(row.url) or 0) + 1, DEPTH_MAX)
        return PageLinks(
            page.key,
            page.domain_key,
            target_depth,
            page.links,
            self._taken.get(row.url, NO_AMOUNTS),
            page.visited_at_ms,
            row.url in self._counted,
            row.content_digest if not self._follows_duplicates and row.parsed and page.decoded_bytes else b"",
            page.relevance,
        )

    def _unfollow_duplicates(self) -> None:
        refused = self._links.unfollow(
            lambda pages: find_repeated([one.key for one in pages], [one.content for one in pages], self._known)
        )
        self._classes.update({DUPLICATE: refused, FOLLOWED: -refused})

    @property
    def figures(self) -> dict[str, int]:
        """The figures of the progress line."""
        figures = {"pages": len(self._ended), "bytes": self._counts["bytes_decoded"]}
        if self._fetched is not None:
            return {**figures, "fetched": self._fetched}
        return figures if self._listed is None else {**figures, "listed": len(self._listed)}

    def tables(self) -> dict[str, pa.Table]:
        """The tables by file name. REQUIRES: the last chunk was taken, and this was not called before."""
        if not self._follows_duplicates:
            self._unfollow_duplicates()
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
        """The counts of the manifest. Outcomes other than `foreign` are those of listed URLs only."""
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
            "followed_again": self._links.followed_again,
            "rejected": self._rejected.by_rule(RULES),
            "extracted_rows": len(tables[names.EXTRACTED]),
            "links_rows": len(tables[names.LINKS]),
            **{f"{name}_sum": int(column(tables[names.EXTRACTED], name).sum(dtype="u8")) for name in COUNTED_NAMES},
            **({"link_sources": dict(self._of_link_sources)} if self._link_sources else {}),
        }


def mark_handed_on(collected: pa.Table, handed_on: dict[str, dict[int, int]]) -> pa.Table:
    """UrlsColetadas with what each URL gave to its targets: per shared accumulator, by key."""
    for name, title in zip(SHARED_NAMES, TAKEN):
        if given := handed_on[name]:
            amounts = pa.array([given.get(key, 0) for key in column(collected, "url_key").tolist()], pa.uint64())
            collected = collected.set_column(collected.schema.get_field_index(title), COLLECTED.field(title), amounts)
    return collected


def without(links: Links, ranges: list[tuple[int, int]]) -> Links:
    """The links without some ranges of rows: those of pages that were collected before."""
    kept = np.ones(len(links.to_key), bool)
    for start, end in ranges:
        kept[start:end] = False
    rest = Links()
    for name in ("to_key", "kinds", "nofollow", "followed", "lastmod_s"):
        getattr(rest, name).extend(
            np.frombuffer(getattr(links, name), f"u{getattr(links, name).itemsize}")[kept].tolist()
        )
    rest.anchors = [anchor for anchor, is_kept in zip(links.anchors, kept.tolist()) if is_kept]
    rest.urls = links.urls
    return rest
