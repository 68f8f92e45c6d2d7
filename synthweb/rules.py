"""The rules that restrict a crawl of the web: which canonical URLs it may ask for at all."""

from collections import Counter
from dataclasses import dataclass
from urllib.parse import urlsplit

EXCLUDED_EXTENSIONS = (
    "7z", "avi", "bmp", "css", "doc", "exe", "gif", "gz", "ico", "iso", "jpeg", "jpg", "js", "mov",
    "mp3", "mp4", "pdf", "png", "rar", "svg", "tar", "tgz", "webp", "wmv", "woff", "xls", "zip",
)  # fmt: skip


@dataclass(frozen=True)
class Rules:
    """What every crawl of the web must be told; a judge and a crawler that differ here cannot agree."""

    url_length_max: int = 200
    path_depth_max: int = 8
    segment_repeats_max: int = 2
    excluded_extensions: tuple[str, ...] = EXCLUDED_EXTENSIONS
    scope_suffix: str = ".test"

    def admits(self, url: str) -> bool:
        """Whether a canonical URL is in scope and not a trap, by its text alone."""
        return self.refusal(url) is None

    def refusal(self, url: str) -> str | None:
        """The name of the first rule that refuses a canonical URL, or None."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not host.endswith(self.scope_suffix):
            return "scope"
        if len(url) > self.url_length_max:
            return "url_length_max"
        segments = parts.path.split("/")
        named = [segment for segment in segments if segment]
        if len(named) > self.path_depth_max:
            return "path_depth_max"
        if named and max(Counter(named).values()) > self.segment_repeats_max:
            return "segment_repeats_max"
        _, dot, extension = segments[-1].rpartition(".")
        if dot and extension.lower() in self.excluded_extensions:
            return "excluded_extensions"
        return None
