"""A page that is fetched again: what is known of its earlier answer, and the headers that ask only for changes."""

from typing import NamedTuple


class Revisit(NamedTuple):
    """The earlier answer to a URL of the list; empty, or 0, where it is not known."""

    etag: str = ""
    last_modified: str = ""
    payload_digest: str = ""
    fetched_at_ms: int = 0

    def conditions(self) -> tuple[str, ...]:
        """The headers that ask for the page only if it has changed (RFC 9110 13.1)."""
        pairs = (("If-None-Match", self.etag), ("If-Modified-Since", self.last_modified))
        return tuple(f"{name}: {value}" for name, value in pairs if value)
