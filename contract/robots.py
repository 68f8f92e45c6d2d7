"""robots.txt rules of one server for our agent (RFC 9309), through protego; never raises on any bytes."""

from protego import Protego

DELAY_MAX_S = 7 * 86_400.0  # a week: a longer crawl-delay is a mistake, and would overflow a column


class Rules:
    def __init__(self, text: bytes, agent: str):
        self._agent = agent
        try:
            self._rules = Protego.parse(text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))
        except Exception:  # a parser that fails on hostile bytes must not open the server to us
            self._rules = None

    def allows(self, url: str) -> bool:
        if self._rules is None:
            return False
        try:
            return bool(self._rules.can_fetch(url, self._agent))
        except Exception:
            return False

    @property
    def delay_s(self) -> float:
        """The crawl-delay, 0 where there is none."""
        try:
            delay = self._rules and self._rules.crawl_delay(self._agent)
        except Exception:
            delay = None
        return min(delay, DELAY_MAX_S) if delay and delay > 0 else 0.0
