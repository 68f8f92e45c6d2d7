"""What a WARC record says about one exchange with a server: who was asked, when, and with which outcome."""

from typing import NamedTuple

from contract.pause import asked_until_ms
from contract.retry_after import read_wait_s
from contract.tables import ANSWERED, FAILED, REFUSED
from contract.url import canonicalise, server_of
from contract.warc import (
    ANSWERS,
    FINAL,
    MESSAGE,
    OUTCOME,
    REASON,
    ROBOTS_FOR,
    TIMES,
    YES,
    HttpMessage,
    Record,
    clean_message,
    parse_date,
    parse_response,
    parse_times,
)

OUTCOMES = (ANSWERED, FAILED, REFUSED)
REASON_MAX_CHARACTERS = 100
ADDRESS_MAX_CHARACTERS = 100
# Failures to find the server's address. They count against the server, although no request was sent. Any other failure
# without an address only repeats why an earlier request failed, for a URL that was due for another request.
LOOK_UP_FAILURES = ("dns", "dns_timeout")
_NO_MESSAGE = HttpMessage(0, [], b"")


class Exchange(NamedTuple):
    url: str  # canonical
    server: str  # that was asked
    is_final: bool
    robots_for: str  # of an exchange for robots.txt: the server that the rules are for; else nothing
    is_revisit: bool  # the answer is that of an earlier visit, and its body is stored there
    outcome: str
    reason: str
    is_requested: bool  # a request was sent, whether an answer came or not
    started_at_ms: int
    times_ms: dict[str, int]
    address: str
    message: HttpMessage
    failure_message: str  # why there is no answer, in words

    @property
    def is_failure(self) -> bool:
        """It counts against its server."""
        return self.outcome == FAILED and (self.is_requested or self.reason in LOOK_UP_FAILURES)

    @property
    def ended_at_ms(self) -> int:
        return self.started_at_ms + self.times_ms.get("total", 0)

    @property
    def ready_at_ms(self) -> int:
        """Before this moment the server asked not to be asked; 0 where it did not."""
        if not self.message.headers:
            return 0
        wait_s = read_wait_s(self.message.status, self.message.get("retry-after"), self.ended_at_ms)
        return asked_until_ms(self.ended_at_ms, wait_s)


def read_exchange(record: Record, *, is_plain_final: bool) -> Exchange | None:
    """The exchange that a record ends; none where it ends none.

    Raises NotCanonical where its URL, or that of the server whose rules it holds, has no canonical form. With
    `is_plain_final`, a response that another crawler wrote counts as final.
    """
    if record.type not in (*ANSWERS, "metadata"):
        return None
    is_ours = bool(record.get(FINAL) or record.get(OUTCOME) or record.get(ROBOTS_FOR))
    if record.type == "metadata" and not is_ours:
        return None
    url = canonicalise(record.url.removeprefix("<").removesuffix(">"))  # WARC 1.0 writers put brackets around
    address = record.get("WARC-IP-Address")[:ADDRESS_MAX_CHARACTERS]
    message = parse_response(record.block) if record.type != "metadata" else _NO_MESSAGE
    outcome, reason = record.get(OUTCOME), record.get(REASON)[:REASON_MAX_CHARACTERS]
    if outcome not in OUTCOMES:
        # WARC 1.1 section 6.7 allows a revisit without a block: the answer was as before.
        is_bare = record.type == "revisit" and not record.block
        outcome, reason = (ANSWERED, "") if is_bare else judge_status(message.status)
    return Exchange(
        url=url,
        server=server_of(url),
        is_final=record.get(FINAL) == YES or is_plain_final and not is_ours,
        robots_for=server_of(canonicalise(record.get(ROBOTS_FOR))) if record.get(ROBOTS_FOR) else "",
        is_revisit=record.type == "revisit",
        outcome=outcome,
        reason=reason,
        is_requested=record.type != "metadata" or bool(address),
        started_at_ms=parse_date(record.get("WARC-Date")),
        times_ms=parse_times(record.get(TIMES)),
        address=address,
        message=message,
        failure_message=clean_message(record.get(MESSAGE)),
    )


def judge_status(status: int) -> tuple[str, str]:
    """Outcome and reason of an answer whose record does not state them, in the fetcher's words."""
    if status == 0:
        return FAILED, "bad_http"
    if status == 429:
        return FAILED, "http_429"
    return (FAILED, "http_5xx") if 500 <= status < 600 else (ANSWERED, "")
