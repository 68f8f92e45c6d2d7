"""One extraction: takes the records of a cycle one after another and gives its five tables and its books."""

from collections import Counter
from hashlib import blake2b

import pyarrow as pa

from contract import names
from contract.config import Config
from contract.tables import ANSWERED, COLLECTED, DEPTH_MAX, FAILED, METADATA, REFUSED, UNKNOWN_DIGEST
from contract.url import Keys, NotCanonical
from contract.warc import TIME_NAMES, Record
from stages.extractor.answer import Answer, read_answer, read_head
from stages.extractor.columns import LinkRows, Rows
from stages.extractor.exchange import Exchange, read_exchange
from stages.extractor.links import CLASSES, Judged, LinkJudge
from stages.extractor.document import REDIRECT
from stages.extractor.scope import RULES, Scope
from stages.extractor.servers import Servers
from storage.tables import column

VALIDATOR_MAX_CHARACTERS = 1_000  # a longer ETag or Last-Modified is dropped: cut, it would never match
ATTEMPTS_MAX = 255  # of the u8 column
ZERO = dict.fromkeys(("skipped_records", "repeated_finals", "foreign_answered", "pages_parsed", "bytes_decoded"), 0)


class Extraction:
    """`listed` holds the depth of each URL of the list; without a list every URL counts as listed, at depth 0."""

    def __init__(self, config: Config, keys: Keys, listed: dict[str, int] | None, servers: pa.Table | None):
        self._config = config
        self._keys = keys
        self._listed = listed
        self._servers = Servers(servers, keys, config.fetcher)
        self._judge = LinkJudge(config.extractor, Scope(config.scope, keys), keys)
        self._collected, self._metadata, self._links = Rows(COLLECTED), Rows(METADATA), LinkRows()
        self._ended: set[str] = set()
        self._attempts: Counter[str] = Counter()  # of URLs that are not ended yet
        self._counts = Counter(ZERO)
        self._outcomes = Counter(dict.fromkeys((ANSWERED, FAILED, REFUSED, "foreign"), 0))
        self._classes = Counter(dict.fromkeys(CLASSES, 0))
        self._rejected = Counter(dict.fromkeys(RULES, 0))

    def take(self, record: Record, file: str) -> None:
        """Takes the next record; files come by name, records by offset."""
        try:
            exchange = read_exchange(record, is_plain_final=self._listed is None)
        except NotCanonical:
            self._counts["skipped_records"] += 1
            return
        if exchange is None:
            return
        self._servers.note(exchange)
        if exchange.robots_for:
            return
        self._attempts[exchange.url] += exchange.is_requested
        if not exchange.is_final:
            return
        attempts = self._attempts.pop(exchange.url)
        if exchange.url in self._ended:
            self._counts["repeated_finals"] += 1
            return
        self._ended.add(exchange.url)
        self._end_url(exchange, attempts, record, file)

    def _end_url(self, exchange: Exchange, attempts: int, record: Record, file: str) -> None:
        url = exchange.url
        server = self._keys.server(exchange.server)
        keyed = (server.domain_key, self._keys.of(url), server.key)
        depth = 0 if self._listed is None else self._listed.get(url)
        is_foreign = depth is None
        self._outcomes["foreign" if is_foreign else exchange.outcome] += 1
        self._collected.append((
            *keyed, url, depth or 0, exchange.outcome, exchange.reason, exchange.message.status,
            min(attempts, ATTEMPTS_MAX), exchange.started_at_ms, is_foreign,
        ))
        if exchange.outcome != ANSWERED:
            return
        self._counts["foreign_answered"] += is_foreign
        is_stored = not exchange.is_revisit
        answer = read_answer(url, exchange.message, self._config) if is_stored else read_head(exchange.message)
        judged = self._judge_links(url, answer)
        self._links.extend(keyed[1], min((depth or 0) + 1, DEPTH_MAX), judged)
        self._count_page(answer, judged)
        times, get = exchange.times_ms, exchange.message.get
        self._metadata.append((
            *keyed, url, file, record.offset, record.length, exchange.message.status, answer.type, answer.charset,
            record.get("WARC-Payload-Digest"), digest_content(answer.content) if is_stored else UNKNOWN_DIGEST,
            exchange.started_at_ms, *(times.get(name, 0) for name in TIME_NAMES), len(exchange.message.body), exchange.address,
            validator(get("etag")), validator(get("last-modified")), answer.redirect_to, answer.page is not None,
            answer.page.title if answer.page else "", judged.inside, judged.outside,
        ))

    def _judge_links(self, url: str, answer: Answer) -> Judged:
        if answer.page is not None:
            return self._judge.judge(url, answer.page.base, answer.page.links, answer.page.nofollow)
        redirect = {(REDIRECT, answer.location, False): 1} if answer.location else {}
        return self._judge.judge(url, None, redirect, False)

    def _count_page(self, answer: Answer, judged: Judged) -> None:
        self._counts["pages_parsed"] += answer.page is not None
        self._counts["bytes_decoded"] += len(answer.content)
        self._classes.update(judged.classes)
        self._rejected.update(judged.rejected)

    @property
    def figures(self) -> dict[str, int]:
        """How far it is, for progress."""
        figures = {"pages": len(self._ended), "bytes": self._counts["bytes_decoded"]}
        return figures if self._listed is None else {**figures, "listed": len(self._listed)}

    def tables(self) -> dict[str, pa.Table]:
        """The tables by their file names, once the last record is taken."""
        return {
            names.COLLECTED: self._collected.table(), names.METADATA: self._metadata.table(),
            names.EXTRACTED: self._links.extracted(self._keys), names.LINKS: self._links.links(),
            names.SERVERS: self._servers.table(),
        }

    def books(self, tables: dict[str, pa.Table]) -> dict:
        """The counts of the manifest; the first four outcomes are those of listed URLs only."""
        listed = len(self._collected) if self._listed is None else len(self._listed)
        reached = len(self._collected) - self._outcomes["foreign"]
        return {
            "listed": listed, **self._outcomes, "not_reached": listed - reached, "metadata": len(tables[names.METADATA]),
            **self._counts, "link_occurrences": self._classes.total(), **self._classes, "rejected": dict(self._rejected),
            "extracted_rows": len(tables[names.EXTRACTED]), "links_rows": len(tables[names.LINKS]),
            "links_in_sum": int(column(tables[names.EXTRACTED], "links_in").sum(dtype="u8")),
        }


def digest_content(content: bytes) -> bytes:
    return blake2b(content, digest_size=len(UNKNOWN_DIGEST)).digest()


def validator(text: str) -> str:
    return text if len(text) <= VALIDATOR_MAX_CHARACTERS else ""
