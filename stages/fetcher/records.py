"""The WARC records of an exchange, or of an outcome without one, as the bytes before compression.

An exchange is a request record and a response (or revisit) record; where no answer came, one metadata record.
"""

import hashlib
from typing import NamedTuple

from contract import warc
from contract.tables import ANSWERED
from stages.fetcher.exchange import NOT_MODIFIED_STATUS, Exchange
from stages.fetcher.revisit import Revisit


class Draft(NamedTuple):
    """An exchange that has ended and is to be recorded."""

    exchange: Exchange
    is_final: bool  # it ends its URL; never true for robots.txt
    earlier: Revisit | None  # the stored answer: if the new one says no more, it is written as a revisit


def encode_exchanges(drafts: list[Draft]) -> list[list[tuple]]:
    """The records of exchanges that have ended, each as its pieces; together, because digests are faster in bulk."""
    digests = iter(
        warc.write_digests(
            [digest for draft in drafts if draft.exchange.has_answer for digest in take_digests(draft.exchange)]
        )
    )
    return [
        encode_answer(draft, next(digests), next(digests), next(digests))
        if draft.exchange.has_answer
        else encode_silence(draft)
        for draft in drafts
    ]


def take_digests(exchange: Exchange) -> tuple[bytes, bytes, bytes]:
    """Of the request, of the body, and of the answer's head and body."""
    asked, payload, block = (
        hashlib.sha1(exchange.request_block()),
        hashlib.sha1(),
        hashlib.sha1(exchange.response_head()),
    )
    for piece in exchange.body.pieces():
        payload.update(piece)
        block.update(piece)
    return asked.digest(), payload.digest(), block.digest()


def encode_answer(draft: Draft, asked_digest: str, payload_digest: str, block_digest: str) -> list[tuple]:
    exchange, is_final, earlier = draft
    asked, head, body = exchange.request_block(), exchange.response_head(), exchange.body.pieces()
    profile = choose_profile(exchange, payload_digest, earlier) if earlier and exchange.outcome == ANSWERED else ""
    if profile:
        kind, block, block_digest = "revisit", (head,), warc.sha1_digest(head)
        payload = warc.write_headers(revisit_headers(profile, exchange, payload_digest, earlier))
    else:
        kind, block = "response", (head, *body)
        payload = f"WARC-Payload-Digest: {payload_digest}\r\n" + f"WARC-Truncated: {exchange.truncated}\r\n" * bool(
            exchange.truncated
        )
    shared = (
        f"WARC-Date: {warc.format_date(exchange.started_at_ms)}\r\nWARC-Target-URI: {exchange.url}\r\n"
        f"WARC-IP-Address: {exchange.address}\r\n"
    )
    if exchange.is_http2:
        shared += "WARC-Protocol: h2\r\n"
    if exchange.robots_for:
        shared += f"{warc.ROBOTS_FOR}: {exchange.robots_for}\r\n"
    outcome = outcome_headers(exchange.outcome, exchange.reason, exchange.message, exchange.times_ms, is_final)
    request_id = warc.new_id()
    request = warc.write_head(
        "request",
        f"WARC-Record-ID: {request_id}\r\n{shared}Content-Type: {warc.HTTP_REQUEST}\r\n",
        asked_digest,
        len(asked),
    )
    response = warc.write_head(
        kind,
        f"WARC-Record-ID: {warc.new_id()}\r\n{shared}Content-Type: {warc.HTTP_RESPONSE}\r\n"
        f"WARC-Concurrent-To: {request_id}\r\n{payload}"
        f"{warc.write_headers(outcome)}",
        block_digest,
        sum(map(len, block)),
    )
    return [(request, asked, warc.RECORD_END), (response, *block, warc.RECORD_END)]


def encode_silence(draft: Draft) -> list[tuple]:
    """The record of an exchange that got no answer."""
    exchange = draft.exchange
    return encode_outcome(
        exchange.url,
        exchange.outcome,
        exchange.reason,
        exchange.started_at_ms,
        draft.is_final,
        exchange.robots_for,
        exchange.address,
        exchange.times_ms,
        exchange.message,
    )


def encode_outcome(
    url: str,
    outcome: str,
    reason: str,
    at_ms: int,
    is_final: bool,
    robots_for: str = "",
    address: str = "",
    times_ms: dict[str, int] | None = None,
    message: str = "",
) -> list[tuple]:
    """The record of a URL that got no answer; with an address where a server was asked."""
    message = warc.clean_message(message)
    headers = [
        ("WARC-Record-ID", warc.new_id()),
        ("WARC-Date", warc.format_date(at_ms)),
        ("WARC-Target-URI", url),
        *[("WARC-IP-Address", address)] * bool(address),
        *[(warc.ROBOTS_FOR, robots_for)] * bool(robots_for),
        ("Content-Type", warc.FIELDS),
        *outcome_headers(outcome, reason, message, times_ms or {}, is_final),
    ]
    fields = [("outcome", outcome), ("reason", reason), *[("message", message)] * bool(message)]
    return [(warc.encode_record("metadata", headers, warc.write_headers(fields).encode()),)]


def choose_profile(exchange: Exchange, payload_digest: str, earlier: Revisit) -> str:
    """The profile of the revisit record (WARC 1.1 section 6.7) that can stand for an answer; nothing where none can."""
    if exchange.status == NOT_MODIFIED_STATUS:
        return warc.NOT_MODIFIED
    # The target of a redirect is in its head, and all empty bodies are alike, also those of a page and of its absence:
    # there an equal digest is not an equal answer, and there is no body to save.
    is_redirect = 300 <= exchange.status < 400
    is_identical = payload_digest == earlier.payload_digest and exchange.body.size_bytes and not is_redirect
    return warc.IDENTICAL_PAYLOAD if is_identical else ""


def revisit_headers(profile: str, exchange: Exchange, payload_digest: str, earlier: Revisit) -> list[tuple[str, str]]:
    """The payload of a revisit is that of the earlier record, even if the server sent a body with a 304."""
    is_identical = profile == warc.IDENTICAL_PAYLOAD
    digest = payload_digest if is_identical else earlier.payload_digest
    return [
        ("WARC-Profile", profile),
        ("WARC-Refers-To-Target-URI", exchange.url),
        *[("WARC-Refers-To-Date", warc.format_date(earlier.fetched_at_ms))] * bool(earlier.fetched_at_ms),
        *[("WARC-Payload-Digest", digest)] * bool(digest),
        *[("WARC-Truncated", "length")] * is_identical,
    ]


def outcome_headers(
    outcome: str, reason: str, message: str, times_ms: dict[str, int], is_final: bool
) -> list[tuple[str, str]]:
    """`message` is clean."""
    return [
        *[(warc.FINAL, warc.YES)] * is_final,
        (warc.OUTCOME, outcome),
        *[(warc.REASON, reason)] * bool(reason),
        *[(warc.MESSAGE, message)] * bool(message),
        (warc.TIMES, warc.format_times(times_ms)),
    ]
