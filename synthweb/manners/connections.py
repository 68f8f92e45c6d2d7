"""Connections that are cut, reset, left silent, or kept and then not kept."""

from synthweb.line import Line, Request
from synthweb.manners.register import ACCEPT, STAYS, head, manner, page, say

KEPT = page(b"hello", "Connection: keep-alive", "Keep-Alive: timeout=60")
LONG = head("Content-Length: 1000")

say("close-before-head", "reads the request and closes", b"")
say("close-within-head", "closes in the middle of the head", b"HTTP/1.1 200 OK\r\nContent-Ty")
say("close-after-status", "closes after the status line", b"HTTP/1.1 200 OK\r\n")
say("close-after-head", "closes after the head, 1,000 bytes promised", LONG)
say("close-within-body", "closes within the body", LONG + b"hello")


@manner("reset-before-head", "reads the request and resets")
def reset_before_head(line: Line, request: Request) -> None:
    line.reset()


def reset_after(name: str, does: str, data: bytes) -> None:
    def act(line: Line, request: Request) -> None:
        line.send(data)
        line.pause(0.2)  # a reset that overtakes the bytes would make this another manner
        line.reset()

    manner(name, does)(act)


reset_after("reset-within-head", "resets in the middle of the head", b"HTTP/1.1 200 OK\r\nContent-Ty")
reset_after("reset-after-head", "resets after the head, 1,000 bytes promised", LONG)
reset_after("reset-within-body", "resets within the body", LONG + b"hello")
reset_after("reset-after-answer", "resets after a whole answer", page(b"hello", "Connection: close"))


@manner("silence", "reads the request and says nothing")
def silence(line: Line, request: Request) -> None:
    line.stall()


@manner("accept-silence", "accepts, neither reads nor says a thing", ACCEPT)
def accept_silence(line: Line, request: Request) -> None:
    line.stall()


@manner("accept-close", "accepts and closes", ACCEPT)
def accept_close(line: Line, request: Request) -> None:
    line.close()


@manner("accept-reset", "accepts, reads nothing, and resets when the request comes", ACCEPT)
def accept_reset(line: Line, request: Request) -> None:
    line.await_bytes()  # at once, it would be a connection that was never made to some
    line.reset()


say("accept-answer", "answers before it is asked, and closes", page(b"hello", "Connection: close"), ACCEPT)
say("accept-banner", "speaks first, and another protocol (SSH)", b"SSH-2.0-OpenSSH_9.2\r\n", ACCEPT)


@manner("keep-then-close", "promises to keep the connection and closes it after the answer")
def keep_then_close(line: Line, request: Request) -> None:
    line.end(KEPT)


def keep_then(name: str, does: str, next_act) -> None:
    def act(line: Line, request: Request) -> bool:
        line.on_next = next_act
        line.end(KEPT)
        return STAYS

    manner(name, does)(act)


keep_then(
    "keep-then-close-on-next",
    "keeps the connection, reads the next request on it, and closes",
    lambda line, request: None,
)
keep_then(
    "keep-then-reset-on-next", "keeps the connection, reads the next request on it, and resets", reset_before_head
)
keep_then("keep-then-silence", "keeps the connection and never answers the next request on it", silence)
keep_then(
    "keep-then-cut",
    "keeps the connection and cuts the next answer short",
    lambda line, request: line.end(LONG + b"hello"),
)


@manner("second-answer", "keeps the connection and sends a second answer that nobody asked for")
def second_answer(line: Line, request: Request) -> bool:
    line.end(KEPT + page(b"smuggled", status="200 Not Asked For"))
    return STAYS


@manner("second-answer-late", "the same, a moment later, when the connection is idle")
def second_answer_late(line: Line, request: Request) -> bool:
    line.end(KEPT)
    line.pause(0.2)
    line.send(page(b"smuggled", status="200 Not Asked For"))
    return STAYS


@manner("keep", "keeps the connection as it promises")
def keep(line: Line, request: Request) -> bool:
    line.end(KEPT)
    return STAYS
