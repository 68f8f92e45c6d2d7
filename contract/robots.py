"""robots.txt (RFC 9309): what an answer to a request for it means, and its rules for our agent, through protego.

The fetcher and the extractor read the same stored bytes through here, so they cannot disagree. Never raises on any.
"""

import re
from typing import NamedTuple

from protego import Protego

from contract.body import decode_body
from contract.tables import ANSWERED
from contract.url import NotCanonical, canonicalise, server_of
from contract.warc import HttpMessage

PATH = "/robots.txt"
REDIRECTS = (301, 302, 303, 307, 308)
REDIRECTS_MAX = 5
ALLOW_ALL = b""
_AGENT_LINE = re.compile(r"\s*user-?agent\s*:([^#]*)", re.IGNORECASE)
DELAY_MAX_S = 7 * 86_400.0  # a week: a longer crawl-delay is a mistake, and would overflow a column


class Answer(NamedTuple):
    text: bytes | None  # the rules; none while they are not known
    follow: str  # where to ask next, or nothing


UNREACHABLE = Answer(None, "")


def read_answer(url: str, redirects: int, outcome: str, message: HttpMessage, text_max_bytes: int) -> Answer:
    """The meaning of an exchange for robots.txt that came after so many redirects."""
    if outcome != ANSWERED:
        return UNREACHABLE
    if 200 <= message.status < 300:
        return Answer(decode_body(message, text_max_bytes)[0], "")
    if message.status in REDIRECTS and redirects < REDIRECTS_MAX and (target := find_target(url, message.get("location"))):
        return Answer(None, target)
    return Answer(ALLOW_ALL, "")


def find_target(url: str, location: str) -> str:
    """The URL that a redirect leads to if it stays on the server, else nothing."""
    try:
        target = canonicalise(location, url)
    except NotCanonical:
        return ""
    return target if location and server_of(target) == server_of(url) else ""


class Rules:
    def __init__(self, text: bytes, agent: str):
        self._agent = agent
        try:
            self._rules = Protego.parse(fold_other_agents(text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"), agent))
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


def fold_other_agents(text: str, agent: str) -> str:
    """The text with each row of groups for other agents made one: the parser keeps every rule once for every name above it,
    so that 100 kB of names and rules would take a gigabyte."""
    lines, was_other = [], False
    for line in text.splitlines():
        found = _AGENT_LINE.match(line)
        if found:
            name = found[1].strip().lower()
            is_other = name != "*" and name not in agent.lower() and agent.lower() not in name
            if is_other and was_other:
                continue
            was_other = is_other
            line = "User-agent: ~" if is_other else line
        elif line.strip():
            was_other = False
        lines.append(line)
    return "\n".join(lines)
