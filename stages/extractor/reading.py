"""What a worker makes of records: the exchange that each ends, what its answer says, and its links, judged.

Nothing here depends on the order of records or on other pages, so that it does not matter which worker reads which.
"""

from array import array
from hashlib import sha256
from typing import NamedTuple

from contract.canonical import Canonical
from contract.config import Config
from contract.robots import read_answer
from contract.robots_groups import read_sitemaps
from contract.tables import ANSWERED, METADATA, UNKNOWN_DIGEST
from contract.trouble import join_words
from contract.url import Keys
from contract.warc import RECORD_MAX_BYTES, TIME_NAMES, HttpMessage, Record
from stages.extractor.answer import AnswerReader, read_head
from stages.extractor.charset import UTF_8
from stages.extractor.document import SITEMAP, Document
from stages.extractor.fingerprint import fingerprint
from stages.extractor.link_judge import Judged, LinkJudge
from stages.extractor.recorded_exchange import Exchange, read_exchange
from stages.extractor.requisites import Requisites
from stages.extractor.scope import Scope
from stages.extractor.targets import Targets

VALIDATOR_MAX_CHARACTERS = 1_000  # a longer ETag or Last-Modified is dropped: cut, it would never match
URL_KEY = METADATA.get_field_index("url_key")
DIGEST_MAX_CHARACTERS = 200  # of a SHA-512 in hexadecimal with its name, and more
RETRY_AFTER = "retry-after"
URLS_TOLD_MAX = 1 << 17  # keys whose texts a worker remembers to have told


class Page(NamedTuple):
    """What is kept of an answer."""

    key: int  # of its URL
    metadata: tuple | None  # a row of MetadadosUrlsColetadas, but for `duplicate` and `fingerprint`; none of robots.txt
    fingerprint: int
    is_parsed: bool
    decoded_bytes: int
    links: int  # rows of Links that are this page's
    classes: dict[str, int]
    rejected: dict[tuple[str, str], list]


class Finding(NamedTuple):
    """What one record tells: an exchange, without what nobody asks for any more, and the page, where it ends an
    answered URL or is a robots.txt that names sitemaps."""

    exchange: Exchange
    page: Page | None


class Links:
    """Links of pages, one behind the other, as columns."""

    def __init__(self):
        self.to_key, self.kinds = array("Q"), array("I")
        self.nofollow, self.followed = array("B"), array("B")
        self.anchors: list[str] = []
        self.urls: dict[int, str] = {}  # key -> text, of targets that were not told before

    def extend(self, judged: Judged) -> None:
        self.to_key.extend(judged.keys)
        self.kinds.extend(judged.kinds)
        self.nofollow.frombytes(bytes(judged.nofollow))
        self.followed.frombytes(bytes(judged.followed))
        self.anchors.extend(judged.anchors)


class Result(NamedTuple):
    """What a chunk holds, in the order of its records."""

    findings: list[Finding]
    links: Links
    skipped: int  # records whose URL is none for us
    damage: tuple | None  # of a record that is not whole: the arguments of Damaged; what came before it counts


class Reading:
    """`listed` holds the depth of each URL of the list; without a list every URL counts as listed, at depth 0."""

    def __init__(self, config: Config, keys: Keys, listed: dict[str, int] | None, year: int):
        self._keys = keys
        self._listed = listed
        scope = Scope(config.scope, keys, year)
        self._targets = Targets(Canonical(config.url), scope, keys)
        self._judge = LinkJudge(config.extractor, scope, self._targets, Requisites(config, scope, keys, year))
        self._answers = AnswerReader(config)
        self._robots_max_bytes = config.fetcher.robots_max_bytes
        self._takes_fingerprints = config.extractor.near_duplicates
        self._told: set[int] = set()

    def take(self, record: Record, file: str, links: Links, poison: str = "", is_cut: bool = False) -> Finding | None:
        """Reads the next record; NotCanonical where its URL is none for us. `poison` is why its document is not to be read; `is_cut`, that
        not all of its block is there."""
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
        """The sitemaps that a robots.txt names are its links."""
        text = read_answer(exchange.url, 0, exchange.outcome, exchange.message, self._robots_max_bytes).text
        if not text or not (sitemaps := read_sitemaps(text)):
            return None
        document = Document(others={(SITEMAP, url, False): 1 for url in sitemaps})
        judged = self._judge.judge(exchange.url, 0, read_head(exchange.message)._replace(document=document))
        links.extend(judged)
        self._tell_urls(judged, links)
        return Page(self._keys.of(exchange.url), None, 0, False, 0, len(judged.keys), judged.classes, judged.rejected)

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
        judged = self._judge.judge(url, depth, answer)
        links.extend(judged)
        self._tell_urls(judged, links)
        document, times = answer.document, exchange.times_ms
        server = self._keys.server(exchange.server)
        metadata = (
            server.domain_key,
            self._keys.of(url),
            server.key,
            url,
            file,
            record.offset,
            record.length,
            message.status,
            answer.type,
            answer.charset,
            record.get("WARC-Payload-Digest")[:DIGEST_MAX_CHARACTERS],
            digest_content(answer.content) if has_body else UNKNOWN_DIGEST,
            exchange.started_at_ms,
            *[times.get(name, 0) for name in TIME_NAMES],
            len(message.body) + missing_bytes,
            exchange.address,
            validator(answer.etag),
            validator(answer.last_modified),
            self._resolve(answer.location, url),
            bool(answer.reader),
            answer.reader,
            join_words(answer.trouble, judged.trouble),
            document.title,
            document.language,
            self._resolve(document.canonical, url, document.base, answer.charset),
            document.noindex,
            document.nofollow,
            judged.inside,
            judged.outside,
        )
        mark = fingerprint(document.text) if self._takes_fingerprints else 0
        return Page(
            metadata[URL_KEY],
            metadata,
            mark,
            bool(answer.reader),
            len(answer.content),
            len(judged.keys),
            judged.classes,
            judged.rejected,
        )

    def _tell_urls(self, judged: Judged, links: Links) -> None:
        told, urls = self._told, links.urls
        if len(told) > URLS_TOLD_MAX:
            told.clear()
        if not told.issuperset(judged.keys):
            urls |= {key: url for key, url in zip(judged.keys, judged.urls) if key not in told}
            told.update(judged.keys)

    def _resolve(self, text: str | None, url: str, base: str | None = None, charset: str = UTF_8) -> str:
        """Where a text of the answer for `url` leads, or nothing; `base` is what the document says that it is relative to."""
        return self._targets.find(text, self._targets.base_of(url, base), charset).url if text else ""


def lighten(message: HttpMessage) -> HttpMessage:
    """A message without its body, and of its headers the one that is asked for later."""
    return HttpMessage(message.status, [(RETRY_AFTER, value) for value in message.values(RETRY_AFTER)], b"")


def shorten_body(message: HttpMessage, most_bytes: int) -> HttpMessage:
    """A message whose body gives at least `most_bytes` of content, if it has them, also where it is packed and does not get shorter by it."""
    return message._replace(body=message.body[: 2 * most_bytes])


def digest_content(content: bytes) -> bytes:
    return sha256(content).digest()[: len(UNKNOWN_DIGEST)]


def validator(text: str) -> str:
    return text if len(text) <= VALIDATOR_MAX_CHARACTERS else ""
