"""Redirects without end, and to where a crawler must not go."""

from synthweb.line import Line, Request
from synthweb.manners.register import head, manner, say


@manner("redirect-loop", "redirects for ever, to a new URL at each step")
def redirect_loop(line: Line, request: Request) -> None:
    name, _, step = request.target.partition("?")
    number = int(step) + 1 if step.isdecimal() and len(step) < 9 else 1
    line.end(redirect(f"{name}?{number}"))


@manner("redirect-self", "redirects to itself")
def redirect_self(line: Line, request: Request) -> None:
    line.end(redirect(request.target))


@manner("redirect-credentials", "redirects to a URL of the same server with a name and a password")
def redirect_credentials(line: Line, request: Request) -> None:
    line.end(redirect(request.url("/plain").replace("://", "://user:secret@")))


def redirect(*locations: str, status: str = "302 Found") -> bytes:
    return head("Content-Length: 0", *(f"Location: {location}" for location in locations), status=status)


for name, location in {
    "file": "file:///etc/passwd",
    "gopher": "gopher://127.0.0.1:70/1",
    "javascript": "javascript:alert(1)",
    "data": "data:text/html,<p>hello</p>",
    "ftp": "ftp://127.0.0.1/",
    "private": "http://10.0.0.1/",
    "loopback": "http://127.0.0.1:1/",
    "loopback-mapped": "http://[::ffff:127.0.0.1]:1/",
    "loopback-decimal": "http://2130706433:1/",
    "metadata": "http://169.254.169.254/latest/meta-data/",
    "crlf": "/plain?a=%0d%0aSet-Cookie:%20b=c%0d%0a%0d%0aHTTP/1.1%20200%20OK",
    "long": "/plain?" + "x" * 40_000,
    "rubbish": "http://[not an address/%zz\x00",
    "8-bit": "/plain\xff\xfe",
    "empty": "",
}.items():
    say(
        f"redirect-{name}",
        f"redirects to {location[:50] if location.isprintable() else repr(location)[:50]}",
        redirect(location),
    )
say("redirect-nowhere", "302 without a Location", head("Content-Length: 0", status="302 Found"))
say("redirect-two", "302 with two Locations", redirect("/plain", "http://127.0.0.1:1/"))
say("redirect-300", "300 with a Location", redirect("/plain", status="300 Multiple Choices"))
