"""What a worker makes of records: the exchange that each record ends, what its answer says, and its judged links.

Nothing here depends on the order of records or on other pages, so it does not matter which worker reads which record.
"""

from array import array
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from contract.canonical import Canonical
from contract.config import Config
from contract.robots import read_answer
from contract.robots_groups import read_sitemaps
from contract.scope.requisites import Requisites
from contract.scope.rules import Scope
from contract.tables import ANSWERED, UNKNOWN_DIGEST
from contract.trouble import join_words
from contract.url import Keys
from contract.warc import RECORD_MAX_BYTES, HttpMessage, Record
from stages.extractor.answer import AnswerReader, read_head
from stages.extractor.charset import UTF_8
from stages.extractor.document import SITEMAP, Document
from stages.extractor.fingerprint import fingerprint
from stages.extractor.link_judge import Judged, LinkJudge
from stages.extractor.page_row import PageRow
from stages.extractor.recorded_exchange import Exchange, read_exchange
from stages.extractor.targets import Targets

VALIDATOR_MAX_CHARACTERS = 1_000  # a longer ETag or Last-Modified is dropped: cut, it would never match
DIGEST_MAX_CHARACTERS = 200  # enough for the name and the hexadecimal digits of a SHA-512
RETRY_AFTER = "retry-after"
URLS_SENT_MAX = 1 << 17  # keys of URLs that a worker remembers to have sent


class Page(NamedTuple):
    """What is kept of an answer."""

    key: int  # of its URL
    domain_key: int
    visited_at_ms: int
    row: PageRow | None  # none for a robots.txt
    decoded_bytes: int
    links: int  # rows of Links that belong to this page
    classes: dict[str, int]
    rejected: dict[tuple[str, str], list]
    relevance: int = 0  # what its text is worth to a topic


class Finding(NamedTuple):
    """What one record says: an exchange, without the parts that are not used later, and a page, where the record ends
    an answered URL or is a robots.txt that names sitemaps."""

    exchange: Exchange
    page: Page | None


class Links:
    """Links of pages, page after page, as columns."""

    def __init__(self):
        self.to_key, self.kinds = array("Q"), array("I")
        self.nofollow, self.followed = array("B"), array("B")
        self.lastmod_s = array("I")
        self.anchors: list[str] = []
        self.urls: dict[int, str] = {}  # key -> text, of targets that were not sent before

    def extend(self, judged: Judged) -> None:
        self.to_key.extend(judged.keys)
        self.kinds.extend(judged.kinds)
        self.nofollow.frombytes(bytes(judged.nofollow))
        self.followed.frombytes(bytes(judged.followed))
        self.anchors.extend(judged.anchors)
        if judged.lastmod_s:
            self.lastmod_s.extend(judged.lastmod_s)
        else:
            self.lastmod_s.frombytes(bytes(self.lastmod_s.itemsize * len(judged.keys)))


class Result(NamedTuple):
    """What a chunk holds, in the order of its records."""

    findings: list[Finding]
    links: Links
    skipped: int  # records whose URL has no canonical form
    damage: tuple | None  # the arguments of Damaged, where a record is not whole; the records before it count


class Reading:
    """`listed` holds the depth of each URL of the list; without a list every URL counts as listed, at depth 0.

    `judge_text` says what the text of a page is worth to the topic of the policy.
    """

    def __init__(
        self,
        config: Config,
        keys: Keys,
        listed: dict[str, int] | None,
        year: int,
        judge_text: Callable[[str], int] | None = None,
    ):
        self._keys = keys
        self._listed = listed
        scope = Scope(config.scope, keys, year)
        self._targets = Targets(Canonical(config.url), scope, keys)
        self._judge = LinkJudge(config.extractor, scope, self._targets, Requisites(config, scope, keys, year))
        self._answers = AnswerReader(config, reads_text=judge_text is not None)
        self._judge_text = judge_text
        self._robots_max_bytes = config.fetcher.robots_max_bytes
        self._takes_fingerprints = config.extractor.near_duplicates
        self._sent: set[int] = set()

    def take(self, record: Record, file: str, links: Links, poison: str = "", is_cut: bool = False) -> Finding | None:
        """Reads the next record. Raises NotCanonical where its URL has no canonical form.

        `poison` says why its document must not be read, if so; `is_cut`, that a part of its block is missing.
        """
        exchange = read_exchange(record, is_plain_final=self._listed is None)
        if exchange is None:
            return None
        if exchange.robots_for:
            page = self._take_robots(exchange, links) if not poison else None
            return Finding(exchange._replace(message=shorten_body(exchange.message, self._robots_max_bytes)), page)
        page = None
        if exchange.is_final and exchange.outcome == ANSWERED:
            page = self._take_page(exchange, record, file, links, poison, is_cut)
        return Finding(exchange._replace(message=lighten(exchange.message)), page)

    def _take_robots(self, exchange: Exchange, links: Links) -> Page | None:
        """A robots.txt as a page: its links are the sitemaps that it names."""
        text = read_answer(exchange.url, 0, exchange.outcome, exchange.message, self._robots_max_bytes).text
        if not text or not (sitemaps := read_sitemaps(text)):
            return None
        document = Document(others={(SITEMAP, url, False): 1 for url in sitemaps})
        judged = self._judge.judge(exchange.url, 0, read_head(exchange.message)._replace(document=document))
        links.extend(judged)
        self._send_urls(judged, links)
        key, domain_key = self._keys.of(exchange.url), self._keys.server(exchange.server).domain_key
        rows = len(judged.keys)
        return Page(key, domain_key, exchange.started_at_ms, None, 0, rows, judged.classes, judged.rejected)

    def _take_page(
        self, exchange: Exchange, record: Record, file: str, links: Links, poison: str, is_cut: bool
    ) -> Page:
        url, message = exchange.url, exchange.message
        has_body = not exchange.is_revisit and not is_cut
        if has_body:
            answer = self._answers.read(url, message, is_poison=poison, is_truncated=bool(record.get("WARC-Truncated")))
        else:
            answer = read_head(message)._replace(trouble=poison)
        missing_bytes = min(int(record.get("Content-Length")), RECORD_MAX_BYTES) - len(record.block) if is_cut else 0
        depth = (self._listed.get(url) or 0) if self._listed is not None else 0
        document, times = answer.document, exchange.times_ms
        if document.lastmods:
            document.lastmods = without_future(document.lastmods, exchange.started_at_ms)
        judged = self._judge.judge(url, depth, answer)
        links.extend(judged)
        self._send_urls(judged, links)
        server = self._keys.server(exchange.server)
        row = PageRow(
            domain_key=server.domain_key,
            url_key=self._keys.of(url),
            server_key=server.key,
            url=url,
            file=file,
            offset=record.offset,
            length=record.length,
            status=message.status,
            type=answer.type,
            charset=answer.charset,
            payload_digest=record.get("WARC-Payload-Digest")[:DIGEST_MAX_CHARACTERS],
            content_digest=digest_content(answer.content) if has_body else UNKNOWN_DIGEST,
            fetched_at_ms=exchange.started_at_ms,
            waited_ms=times.get("waited", 0),
            dns_ms=times.get("dns", 0),
            connect_ms=times.get("connect", 0),
            first_byte_ms=times.get("first_byte", 0),
            total_ms=times.get("total", 0),
            bytes=len(message.body) + missing_bytes,
            address=exchange.address,
            etag=validator(answer.etag),
            last_modified=validator(answer.last_modified),
            redirect_to=self._resolve(answer.location, url),
            parsed=bool(answer.reader),
            reader=answer.reader,
            trouble=join_words(answer.trouble, judged.trouble),
            title=document.title,
            language=document.language,
            canonical=self._resolve(document.canonical, url, document.base, answer.charset),
            noindex=document.noindex,
            nofollow=document.nofollow,
            links_inside=judged.inside,
            links_outside=judged.outside,
            links_own_domain=judged.own_domain,
            links_other_domains=judged.other_domains,
            revisit=exchange.is_revisit,
            duplicate=False,
            fingerprint=fingerprint(document.text) if self._takes_fingerprints else 0,
        )
        decoded_bytes, rows = len(answer.content), len(judged.keys)
        classes, rejected = judged.classes, judged.rejected
        relevance = self._judge_text(document.text) if self._judge_text else 0
        return Page(
            row.url_key, row.domain_key, row.fetched_at_ms, row, decoded_bytes, rows, classes, rejected, relevance
        )

    def _send_urls(self, judged: Judged, links: Links) -> None:
        """Adds the texts of URLs to `links` that this worker did not send before."""
        sent, urls = self._sent, links.urls
        if len(sent) > URLS_SENT_MAX:
            sent.clear()
        if not sent.issuperset(judged.keys):
            urls |= {key: url for key, url in zip(judged.keys, judged.urls) if key not in sent}
            sent.update(judged.keys)

    def _resolve(self, text: str | None, url: str, base: str | None = None, charset: str = UTF_8) -> str:
        """The URL that a text in the answer for `url` leads to, or nothing; `base` is the document's <base href>."""
        return self._targets.find(text, self._targets.base_of(url, base), charset).url if text else ""


def lighten(message: HttpMessage) -> HttpMessage:
    """A message without its body, and with Retry-After as its only header: nothing else is used later."""
    return HttpMessage(message.status, [(RETRY_AFTER, value) for value in message.values(RETRY_AFTER)], b"")


def shorten_body(message: HttpMessage, most_bytes: int) -> HttpMessage:
    """A message with enough of its body to decode `most_bytes` of content, even if compression made it longer."""
    return message._replace(body=message.body[: 2 * most_bytes])


def without_future(lastmods: dict[str, int], now_ms: int) -> dict[str, int]:
    """Nobody knows when a page will change: a time after the visit says nothing."""
    return {text: seconds for text, seconds in lastmods.items() if seconds * 1000 <= now_ms}


def digest_content(content: bytes) -> bytes:
    return sha256(content).digest()[: len(UNKNOWN_DIGEST)]


def validator(text: str) -> str:
    return text if len(text) <= VALIDATOR_MAX_CHARACTERS else ""
