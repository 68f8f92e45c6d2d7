"""Questions and answers of the DNS on the wire, and the answers that a test can script for a name (RFC 1035).

A script is a function of the question that gives a Reply, the bytes to send as they are, or nothing for silence.
"""

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

KINDS = {1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 33: "SRV", 65: "HTTPS"}
NUMBERS = {kind: number for number, kind in KINDS.items()}
OPT = 41
NO_ERROR, FORMAT_ERROR, SERVER_FAILURE, NO_NAME, REFUSED = 0, 1, 2, 3, 5
RESPONSE, TRUNCATED, RECURSION_ASKED, RECURSION_AVAILABLE = 0x8000, 0x0200, 0x0100, 0x0080
UDP_BYTES = 512  # where the question has no OPT record that says more (RFC 6891)


@dataclass
class Question:
    id: int
    flags: int
    name: str  # lower case, without the last dot
    kind: str  # A, AAAA, ... or TYPEn
    wire: bytes  # the question section as it came: its letters' case is to come back (0x20)
    transport: str  # udp, tcp
    udp_max_bytes: int = UDP_BYTES
    times: int = 0  # how often this name and type was asked before


@dataclass(frozen=True)
class Reply:
    records: tuple[tuple[str, str, int, str], ...] = ()  # owner ("": the name asked), type, ttl, address or name
    code: int = NO_ERROR
    negative_ttl_s: int | None = None  # the SOA that goes with an answer of nothing
    truncated: bool = False  # over UDP: no records and the TC bit
    id_off_by: int = 0
    question: bytes | None = None  # instead of the one asked

    @property
    def alias_to(self) -> str | None:
        """The name that a CNAME at the end leaves to be looked up."""
        return self.records[-1][3] if self.records and self.records[-1][1] == "CNAME" else None

    def followed_by(self, other: "Reply") -> "Reply":
        """This chain and what its last name answered."""
        owned = tuple((owner or self.alias_to, *rest) for owner, *rest in other.records)
        return replace(other, records=self.records + owned)


Script = Callable[[Question], Reply | bytes | None]


def give(*addresses: str, ttl_s: int = 300) -> Script:
    """The addresses of the family that is asked for; none of it: an empty answer with an SOA."""

    def answer(question: Question) -> Reply:
        records = [("", "AAAA" if ":" in text else "A", ttl_s, text) for text in addresses]
        fitting = tuple(record for record in records if record[1] == question.kind)
        return Reply(fitting, negative_ttl_s=None if fitting else ttl_s)

    return answer


def give_nothing(ttl_s: int = 300) -> Script:
    """The name does not exist."""
    return lambda question: Reply(code=NO_NAME, negative_ttl_s=ttl_s)


def give_alias(target: str, ttl_s: int = 300) -> Script:
    """A CNAME; the server adds what it knows of the target, so two of these make a loop."""
    return lambda question: Reply((("", "CNAME", ttl_s, target),))


def fail(code: int = SERVER_FAILURE) -> Script:
    return lambda question: Reply(code=code)


def stay_silent(question: Question) -> None:
    """No answer at all: the asker's clock must end it."""


def in_turn(*scripts: Script) -> Script:
    """The first time the first, then the next; the last one stays. Counted by type: A and AAAA each have their turn."""
    return lambda question: scripts[min(question.times, len(scripts) - 1)](question)


def truncate(script: Script) -> Script:
    """Nothing but the TC bit over UDP, the whole over TCP."""
    return lambda question: replace(script(question), truncated=question.transport == "udp")


def send_bytes(data: bytes) -> Script:
    """Bytes that need not be a message at all.

    Id and flags of a response are put before them, so that they are read.
    """
    return lambda question: struct.pack("!HH", question.id, RESPONSE | RECURSION_AVAILABLE) + data


def mistake_id(script: Script) -> Script:
    return lambda question: replace(script(question), id_off_by=1)


def mistake_question(script: Script, name: str) -> Script:
    """The right id with the answer to another question, as one who guesses ids sends it."""
    return lambda question: replace(
        script(question), question=write_name(name) + struct.pack("!HH", NUMBERS.get(question.kind, 1), 1)
    )


def parse_question(data: bytes, transport: str) -> Question | None:
    """The one question of a query; nothing where the bytes are none."""
    try:
        id, flags, questions, answers, authorities, additional = struct.unpack_from("!6H", data)
        if flags & RESPONSE or questions != 1:
            return None
        labels, place = [], 12
        while size := data[place]:
            if size > 63 or place + 1 + size > len(data):
                return None
            labels.append(data[place + 1 : place + 1 + size].decode("latin-1").lower())
            place += 1 + size
        number, _ = struct.unpack_from("!HH", data, place + 1)
        end = place + 5
        question = Question(id, flags, ".".join(labels), KINDS.get(number, f"TYPE{number}"), data[12:end], transport)
        if additional and not answers + authorities and data[end : end + 3] == b"\0" + OPT.to_bytes(2, "big"):
            question.udp_max_bytes = max(UDP_BYTES, struct.unpack_from("!H", data, end + 3)[0])
        return question
    except (struct.error, IndexError):
        return None


def write_reply(question: Question, reply: Reply) -> bytes:
    """The message; one that is too long for the asker's UDP goes without its records and with the TC bit."""
    records = [write_record(owner or question.name, *rest) for owner, *rest in reply.records]
    authority = b""
    if reply.negative_ttl_s is not None:
        zone = question.name.rpartition(".")[2]
        authority = write_record(zone, "SOA", reply.negative_ttl_s, f"ns.{zone}")
    asked = question.wire if reply.question is None else reply.question
    flags = RESPONSE | RECURSION_AVAILABLE | question.flags & RECURSION_ASKED | reply.code

    def message(flags: int, records: list[bytes], authority: bytes) -> bytes:
        id = (question.id + reply.id_off_by) & 0xFFFF
        return (
            struct.pack("!6H", id, flags, 1, len(records), bool(authority), 0) + asked + b"".join(records) + authority
        )

    whole = message(flags, records, authority)
    if reply.truncated or question.transport == "udp" and len(whole) > question.udp_max_bytes:
        return message(flags | TRUNCATED, [], b"")
    return whole


def write_record(owner: str, kind: str, ttl_s: int, value: str) -> bytes:
    if kind == "A":
        data = socket.inet_pton(socket.AF_INET, value)
    elif kind == "AAAA":
        data = socket.inet_pton(socket.AF_INET6, value)
    elif kind == "SOA":  # its last number is how long an answer of nothing may be kept (RFC 2308)
        data = write_name(value) + write_name(value) + struct.pack("!5I", 1, 3600, 600, 86_400, ttl_s)
    else:
        data = write_name(value)
    return write_name(owner) + struct.pack("!HHIH", NUMBERS[kind], 1, ttl_s, len(data)) + data


def write_name(name: str) -> bytes:
    labels = [label.encode("latin-1") for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
