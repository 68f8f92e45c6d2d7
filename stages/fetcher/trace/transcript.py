"""What both sides sent in one exchange, as libcurl reports it, and how a trace prints it."""

import re

from contract.body import all_values, decode_body
from contract.tables import FAILED
from contract.trouble import BROKEN, TOO_LONG, UNDECODED
from contract.url import port_of
from contract.warc import parse_response
from stages.fetcher.engine import NOTE, RECEIVED, SENT
from stages.fetcher.exchange import LENGTH, Exchange
from stages.fetcher.reasons import HTTP_5XX, HTTP_429
from stages.fetcher.trace.printer import RED, Printer, describe_bytes

NOTES_MAX = 100  # a transfer makes some thirty
SHOWN_LINES, SHOWN_BYTES = 10, 4 << 10  # of a body
FACTS = (
    ("TLS", "SSL connection using "),
    ("protocol", "ALPN: server "),
    ("certificate", "  subject: "),
    ("issuer", "  issuer: "),
    ("valid from", "  start date: "),
    ("valid until", "  expire date: "),
)
DULL = ("closing connection", "shutting down connection", "Connection #")
TEXT = re.compile(r"text/|application/(?:.*\+)?(?:json|xml|javascript)\b|image/svg", re.IGNORECASE)


class Transcript:
    def __init__(self, received_max_bytes: int):
        self._received_max_bytes = received_max_bytes
        self.clear()

    def clear(self) -> None:
        self.sent, self.received, self.notes, self.last_note = bytearray(), bytearray(), [], ""

    def take(self, kind: str, data: bytes) -> None:
        if kind == SENT:
            self.sent += data
        elif kind == RECEIVED:
            self.received += data[: max(0, self._received_max_bytes - len(self.received))]
        elif kind == NOTE:
            note = data.decode("utf-8", "backslashreplace").rstrip("\n")
            if not note.startswith(DULL):
                self.last_note = note
            if len(self.notes) < NOTES_MAX:
                self.notes.append(note)

    def find(self, begin: str) -> str:
        """What follows these words in a note of libcurl, or nothing."""
        return next((note[len(begin) :] for note in self.notes if note.startswith(begin)), "")


def print_exchange(printer: Printer, transcript: Transcript, exchange: Exchange, body_max_bytes: int) -> None:
    """Prints an exchange that has ended: connection, both heads, body and times."""
    printer.print_fact(
        "connection",
        f"{exchange.address} port {port_of(exchange.origin.server)}, "
        + ("TLS" if exchange.origin.is_tls else "in the clear"),
    )
    for name, begin in FACTS:
        if fact := transcript.find(begin):
            printer.print_fact(name, fact)
    printer.quote(">", transcript.sent, is_whole=True)
    printer.quote("<", transcript.received)
    if exchange.has_answer:
        print_body(printer, exchange, body_max_bytes)
    elif not transcript.received:
        printer.print_fact("answer", "none")
    if exchange.truncated:
        why = f"it is longer than {describe_bytes(body_max_bytes)}" if exchange.truncated == LENGTH else exchange.reason
        printer.print_fact("cut off", f"{exchange.truncated} (WARC-Truncated): {why}", RED)
    printer.print_fact(
        "times", ", ".join(f"{name.replace('_', ' ')} {ms:,} ms" for name, ms in exchange.times_ms.items())
    )
    if exchange.outcome == FAILED:
        printer.print_fact("failed", exchange.reason, RED)
        if transcript.last_note and exchange.reason not in (HTTP_429, HTTP_5XX):
            printer.print_fact("libcurl", transcript.last_note.strip())


def print_body(printer: Printer, exchange: Exchange, body_max_bytes: int) -> None:
    size_bytes = exchange.body.size_bytes
    kind = exchange.header(b"content-type")
    message = parse_response(exchange.response_head() + exchange.body.whole())
    printer.print_fact(
        "body", f"{describe_bytes(size_bytes)}, " + (f"Content-Type {kind}" if kind else "no Content-Type")
    )
    content, trouble = decode_body(message, body_max_bytes)
    if encodings := [name for name in all_values(message, "content-encoding") if name]:
        rest = {TOO_LONG: ", and more", BROKEN: ", then it breaks off"}.get(trouble, "")
        decoded = f"{describe_bytes(len(content))} decoded{rest}"
        meaning = decoded if trouble != UNDECODED else "unknown or broken, taken as it is"
        printer.print_fact("encoding", f"{', '.join(encodings)}: {meaning}")
    if is_text(kind, content):
        printer.quote("|", content[:SHOWN_BYTES], lines_max=SHOWN_LINES)
        if len(content) > SHOWN_BYTES:
            printer.quote("|", b"... (the rest is not shown)")


def is_text(kind: str, content: bytes) -> bool:
    return bool(TEXT.match(kind)) if kind else b"\0" not in content[:SHOWN_BYTES]
