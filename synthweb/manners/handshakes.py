"""TLS that must not be trusted, or does not come about; certificates.py makes what is shown here."""

from synthweb.line import Line, Request
from synthweb.manners.register import HANDSHAKE, STAYS, manner, page

SERVER_HELLO_BEGIN = bytes.fromhex("160303007a0200007603030102030405")  # a record of 122 bytes, cut off


def show(name: str, does: str, certificate: str) -> None:
    def act(line: Line, request: Request) -> bool:
        line.secure(certificate)
        return STAYS

    manner(name, does, HANDSHAKE)(act)


show("tls-expired", "a certificate that ran out", "expired")
show("tls-not-yet", "a certificate that is not valid yet", "not-yet")
show("tls-wrong-name", "a certificate for another name", "wrong-name")
show("tls-self-signed", "a certificate that signs itself", "self-signed")
show("tls-unknown-authority", "a certificate of an authority that nobody knows", "unknown-authority")


@manner("tls-plain", "speaks plain HTTP where TLS is expected", HANDSHAKE)
def speak_plainly(line: Line, request: Request) -> None:
    line.end(page(b"plain", status="400 Bad Request"))


@manner("tls-stall", "reads the ClientHello and says nothing", HANDSHAKE)
def stall(line: Line, request: Request) -> None:
    line.receive()
    line.stall()


@manner("tls-stall-midway", "stops in the middle of the ServerHello", HANDSHAKE)
def stall_midway(line: Line, request: Request) -> None:
    line.receive()
    line.send(SERVER_HELLO_BEGIN)
    line.stall()


@manner("tls-cut", "closes in the middle of the ServerHello", HANDSHAKE)
def cut(line: Line, request: Request) -> None:
    line.receive()
    line.end(SERVER_HELLO_BEGIN)


@manner("tls-reset", "resets after the ClientHello", HANDSHAKE)
def reset(line: Line, request: Request) -> None:
    line.receive()
    line.reset()


@manner("tls-rubbish", "answers the ClientHello with rubbish", HANDSHAKE)
def send_rubbish(line: Line, request: Request) -> None:
    line.receive()
    line.end(bytes(range(256)))
