"""robots.txt in bad manners, each at a host of its own; any other target of that host is a plain page (RFC 9309)."""

from synthweb.line import Line, Request
from synthweb.manners.redirects import redirect
from synthweb.manners.register import ROBOTS, head, manner, page, say

TEXT = "Content-Type: text/plain"
RULES = b"User-agent: *\nDisallow: /private\n"
LONG_BYTES = 2 << 20


def robots(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    return head(TEXT, f"Content-Length: {len(body)}", *lines, status=status) + body


def redirect_times(times: int, elsewhere: bool = False):
    """`times` redirects before the rules come."""

    def act(line: Line, request: Request) -> None:
        step = request.target.rpartition("?")[2]
        number = int(step) if step.isdecimal() and len(step) < 9 else 0
        if number >= times:
            return line.end(robots(RULES))
        target = f"/robots.txt?{number + 1}"
        if elsewhere:  # every second step at the other host
            host = "robots-elsewhere" if number % 2 == 0 else "robots-redirect-host"
            target = f"{request.scheme}://{host}.{request.host.partition('.')[2]}:{request.port}{target}"
        line.end(redirect(target))

    return act


manner("robots-redirects-5", "five redirects, then rules: the most that RFC 9309 asks to follow", ROBOTS)(
    redirect_times(5)
)
manner("robots-redirects-6", "six redirects, then rules", ROBOTS)(redirect_times(6))
manner("robots-redirect-loop", "redirects without end", ROBOTS)(redirect_times(10**9))
manner("robots-redirect-host", "a redirect to the robots.txt of another host, which has rules", ROBOTS)(
    redirect_times(1, elsewhere=True)
)
manner("robots-elsewhere", "the other end of that", ROBOTS)(redirect_times(1, elsewhere=True))
say(
    "robots-redirect-dead",
    "a redirect to a port where nobody listens",
    redirect("http://127.0.0.1:1/robots.txt"),
    ROBOTS,
)
say("robots-redirect-file", "a redirect to a file", redirect("file:///etc/passwd"), ROBOTS)
say("robots-500", "500", robots(b"no", status="500 Internal Server Error"), ROBOTS)
say("robots-503", "503 with a Retry-After", robots(b"no", "Retry-After: 1", status="503 Service Unavailable"), ROBOTS)
say("robots-429", "429", robots(b"no", status="429 Too Many Requests"), ROBOTS)
say("robots-403", "403: as if there were none", robots(b"no", status="403 Forbidden"), ROBOTS)
say(
    "robots-long",
    "2 MB: a rule at the beginning, comments, a rule at the end that is beyond every limit",
    robots(RULES + b"# comment\n" * (LONG_BYTES // 10) + b"Disallow: /plain\n"),
    ROBOTS,
)
say("robots-long-line", "2 MB in one line, rules before it", robots(RULES + b"Disallow: /" + b"x" * LONG_BYTES), ROBOTS)
say(
    "robots-wildcards",
    "patterns made to backtrack",
    robots(b"User-agent: *\nDisallow: /" + b"*a" * 500 + b"$\n" + b"Disallow: /" + b"*" * 2_000 + b"b$\n"),
    ROBOTS,
)
say("robots-binary", "every byte value a hundred times", robots(bytes(range(256)) * 100), ROBOTS)
say("robots-html", "a page instead of rules", page(b"<html><p>not found</p></html>"), ROBOTS)
say("robots-rubbish-status", "a first line of rubbish", b"\x00\x01 what\r\n\r\n", ROBOTS)
say("robots-close", "closed without an answer", b"", ROBOTS)


@manner("robots-drip", "a byte a second", ROBOTS)
def drip(line: Line, request: Request) -> None:
    line.send(head(TEXT, f"Content-Length: {len(RULES)}"))
    line.drip(RULES)


@manner("robots-silence", "no answer", ROBOTS)
def silence(line: Line, request: Request) -> None:
    line.stall()


@manner("robots-endless", "rules without end", ROBOTS)
def endless(line: Line, request: Request) -> None:
    line.send(head(TEXT) + RULES)
    line.send_endlessly(b"Disallow: /more\n" * 1_000)
