"""The WARC records of an exchange, or of an outcome without one, as the bytes before compression.

An exchange is a request record and a response (or revisit) record; where no answer came, one metadata record.
"""

from collections.abc import Iterator

from contract import warc
from contract.tables import ANSWERED
from stages.fetcher.exchange import Exchange
from stages.fetcher.revisit import Revisit

NOT_MODIFIED_STATUS = 304


def encode_exchange(exchange: Exchange, is_final: bool, earlier: Revisit | None) -> Iterator[tuple]:
    """The records of an exchange that has ended, each as its pieces.

    `is_final` says that it ends its URL, which one for robots.txt never does. `earlier` is what is stored of the URL
    already: an answer that says no more than that is written as a revisit.
    """
    if not exchange.has_answer:
        yield from encode_outcome(exchange.url, exchange.outcome, exchange.reason, exchange.started_at_ms, is_final,
                                  exchange.robots_for, exchange.address, exchange.times_ms)
        return
    request_id = warc.new_id()
    shared = [("WARC-Date", warc.format_date(exchange.started_at_ms)), ("WARC-Target-URI", exchange.url),
              ("WARC-IP-Address", exchange.address)]
    if exchange.is_http2:
        shared.append(("WARC-Protocol", "h2"))
    if exchange.robots_for:
        shared.append((warc.ROBOTS, exchange.robots_for))
    asked = exchange.request_block()
    headers = [("WARC-Record-ID", request_id), *shared, ("Content-Type", warc.HTTP_REQUEST)]
    yield warc.encode_head("request", headers, warc.sha1_digest(asked), len(asked)), asked, warc.RECORD_END
    head, body = exchange.response_head(), exchange.body.view()
    payload_digest = warc.sha1_digest(body)
    profile = choose_profile(exchange, payload_digest, earlier) if earlier and exchange.outcome == ANSWERED else ""
    headers = [
        ("WARC-Record-ID", warc.new_id()), *shared, ("Content-Type", warc.HTTP_RESPONSE), ("WARC-Concurrent-To", request_id),
        *(revisit_headers(profile, exchange, payload_digest, earlier) if profile else plain_headers(exchange, payload_digest)),
        *outcome_headers(exchange.outcome, exchange.reason, exchange.times_ms, is_final),
    ]
    block = (head,) if profile else (head, body)
    digest, size = warc.sha1_digest(*block), sum(map(len, block))
    yield warc.encode_head("revisit" if profile else "response", headers, digest, size), *block, warc.RECORD_END


def encode_outcome(url: str, outcome: str, reason: str, at_ms: int, is_final: bool, robots_for: str = "", address: str = "",
                   times_ms: dict[str, int] | None = None) -> Iterator[tuple]:
    """The record of a URL that got no answer; with an address where somebody was asked."""
    headers = [
        ("WARC-Record-ID", warc.new_id()), ("WARC-Date", warc.format_date(at_ms)), ("WARC-Target-URI", url),
        *[("WARC-IP-Address", address)] * bool(address), *[(warc.ROBOTS, robots_for)] * bool(robots_for),
        ("Content-Type", warc.FIELDS), *outcome_headers(outcome, reason, times_ms or {}, is_final),
    ]
    yield (warc.encode_record("metadata", headers, f"outcome: {outcome}\r\nreason: {reason}\r\n".encode()),)


def choose_profile(exchange: Exchange, payload_digest: str, earlier: Revisit) -> str:
    """The profile of a revisit record (WARC 1.1 section 6.7) that says all of an answer, or nothing."""
    if exchange.status == NOT_MODIFIED_STATUS:
        return warc.NOT_MODIFIED
    # What a redirect says is in its head, and its body is often empty: the same digest does not make it the same answer.
    is_redirect = 300 <= exchange.status < 400
    return warc.IDENTICAL_PAYLOAD if payload_digest == earlier.payload_digest and not is_redirect else ""


def revisit_headers(profile: str, exchange: Exchange, payload_digest: str, earlier: Revisit) -> list[tuple[str, str]]:
    """The payload of a revisit is that of the earlier record, whatever the server sent with a 304."""
    is_identical = profile == warc.IDENTICAL_PAYLOAD
    digest = payload_digest if is_identical else earlier.payload_digest
    return [
        ("WARC-Profile", profile), ("WARC-Refers-To-Target-URI", exchange.url),
        *[("WARC-Refers-To-Date", warc.format_date(earlier.fetched_at_ms))] * bool(earlier.fetched_at_ms),
        *[("WARC-Payload-Digest", digest)] * bool(digest), *[("WARC-Truncated", "length")] * is_identical,
    ]


def plain_headers(exchange: Exchange, payload_digest: str) -> list[tuple[str, str]]:
    return [("WARC-Payload-Digest", payload_digest), *[("WARC-Truncated", exchange.truncated)] * bool(exchange.truncated)]


def outcome_headers(outcome: str, reason: str, times_ms: dict[str, int], is_final: bool) -> list[tuple[str, str]]:
    return [
        *[(warc.FINAL, warc.YES)] * is_final, (warc.OUTCOME, outcome), *[(warc.REASON, reason)] * bool(reason),
        (warc.TIMES, warc.format_times(times_ms)),
    ]
