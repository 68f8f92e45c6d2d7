"""One URL of the web, kept as the parts that its generator chose, and its canonical text."""

from dataclasses import dataclass
from urllib.parse import quote

# What the WHATWG URL standard leaves as it is in a path; everything else is percent-encoded as UTF-8.
# The generator writes "%" in a path only as part of an escape.
PATH_SAFE = "/%:@!$&'()*+,;=~-._|[]"

DEFAULT_PORT = 80


@dataclass(frozen=True, slots=True)
class Url:
    """Scheme http, a lower-case host, a decoded path that begins with "/", an ASCII query (may be empty).

    The port is not a part: the whole web is served on one, and the same web can be moved to another.
    """

    host: str
    path: str = "/"
    query: str = ""

    def target(self) -> str:
        """What a request line carries: canonical path and query."""
        return request_target(self.path, self.query)

    def text(self, port: int) -> str:
        """The canonical form: WHATWG serialisation without fragment, userinfo or empty query."""
        return f"http://{authority(self.host, port)}{self.target()}"


def request_target(path: str, query: str) -> str:
    escaped = quote(path, safe=PATH_SAFE)
    return f"{escaped}?{query}" if query else escaped


def authority(host: str, port: int) -> str:
    """Host and port as a serialised URL has them: the default port is not written."""
    return host if port == DEFAULT_PORT else f"{host}:{port}"
