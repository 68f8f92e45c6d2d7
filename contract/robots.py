"""robots.txt (RFC 9309): what an answer to a request for it means, and which URLs its rules allow our agent.

The fetcher and the extractor read the same stored bytes with this module, so they cannot disagree. No bytes make it
raise.

Only the groups that apply to us are kept, so memory grows with the text and not with the names in it. A plain rule is
found by one look-up per length that rules have. A rule with `*` is a row of literal pieces. Each piece is taken at the
first offset where it fits: that is enough for `*`, and there is no backtracking. The remaining risk, many such rules
against a long URL, has a bound (`WORK_MAX`).
"""

import re
from functools import cached_property
from typing import NamedTuple, TypeVar

from contract.body import decode_body
from contract.robots_groups import read_directives, read_groups, token_of
from contract.tables import ANSWERED
from contract.terminal import make_plain
from contract.url import NotCanonical, canonicalise, server_of
from contract.warc import HttpMessage

PATH = "/robots.txt"
REDIRECTS = (301, 302, 303, 307, 308)
REDIRECTS_MAX = 5  # RFC 9309 2.3.1.2
ALLOW_ALL = b""
DELAY_MAX_S = 7 * 86_400.0  # a week: a longer crawl-delay is a mistake, and would overflow a column
SHOWN_MAX_BYTES = 200
# (Bytes after stars, over all rules) x (bytes of a path + LOOK_BYTES, the fixed cost of a rule in bytes): 1,000 rules
# of 20 bytes allow paths of 900 bytes. A longer path is forbidden. The worst case that a server can cause takes some
# 20 ms.
WORK_MAX = 20_000_000
LOOK_BYTES = 100

# The origin of a rule that is an absolute URL. `*` and `$` end it, as no host contains them.
_ORIGIN = re.compile(rb"[a-z][a-z0-9+.-]*://[^/?*$\\]*", re.IGNORECASE)
_INDEX = re.compile(rb"(.*/)index\.htm[^/]*", re.DOTALL)
# RFC 9309 2.2.2: octets are compared after %-encoding what is neither reserved nor unreserved (RFC 3986 2), and after
# decoding what is unreserved. `*` and `$` are decoded too: encoded, they have no special meaning (2.2.3).
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~*$")
_SAFE = bytes(_PLAIN) + b"!&'()+,/:;=?@[]#"
_OTHERWISE_SPELT = re.compile(
    rb"%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f]|[46][1-9A-F]|[57][0-9A]|3[0-9]|2[4ADE]|5F|7E)|[^%" + re.escape(_SAFE) + rb"]"
)


class Answer(NamedTuple):
    text: bytes | None  # the rules; None while they are not known
    follow: str  # the URL to ask next, or nothing


UNREACHABLE = Answer(None, "")


def read_answer(url: str, redirects: int, outcome: str, message: HttpMessage, text_max_bytes: int) -> Answer:
    """The meaning of an exchange for robots.txt that follows `redirects` redirects."""
    if outcome != ANSWERED:
        return UNREACHABLE
    if 200 <= message.status < 300:
        text = decode_body(message, text_max_bytes).content
        # Cut here, or already when it was fetched.
        is_cut = len(text) >= text_max_bytes or len(message.body) >= text_max_bytes
        return Answer(drop_last_line(text) if is_cut else text, "")
    if (
        message.status in REDIRECTS
        and redirects < REDIRECTS_MAX
        and (target := find_target(url, message.get("location")))
    ):
        return Answer(None, target)
    return Answer(ALLOW_ALL, "")


def find_target(url: str, location: str) -> str:
    """The http(s) URL that a redirect leads to, on any server; else nothing."""
    try:
        return canonicalise(location, url) if location else ""
    except NotCanonical:
        return ""


def drop_last_line(text: bytes) -> bytes:
    """The lines that are complete: a rule that was cut off could forbid or allow more than its author meant."""
    return text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]


class Rule(NamedTuple):
    """Of the rules that match, the greatest decides: the longest, then Allow."""

    octets: int
    is_allow: bool
    line: int


class Wildcard(NamedTuple):
    rule: Rule
    first: bytes  # what the path begins with
    middle: tuple[bytes, ...]
    last: bytes
    is_anchored: bool  # the path ends with `last`


Pieces = tuple[bytes, tuple[bytes, ...], bool]  # first, the others, is_anchored
Key = TypeVar("Key")
_NO_RULE = Rule(-1, True, 0)
_OVER_WORK = Rule(-1, False, 0)


class Rules:
    """What a robots.txt allows our agent to fetch from a server (scheme://host[:port])."""

    def __init__(self, text: bytes, agent: str, server: str):
        self._text = text
        self._token = token_of(agent.encode("ascii", "replace"))
        groups = read_groups(text, self._token)
        self._is_for_us = groups.names_us
        delays = groups.own_delays or groups.star_delays  # a group of our own without a delay keeps the delay of `*`
        self.delay_s = min(delays[0], DELAY_MAX_S) if delays else 0.0
        self.sitemaps = tuple(groups.sitemaps)
        self._whole: dict[bytes, Rule] = {}  # for paths that are equal
        self._begun: dict[bytes, Rule] = {}  # for paths that begin so
        wildcards: dict[Pieces, Rule] = {}
        for line, is_allow, value in groups.own if groups.names_us else groups.star:
            if pattern := pattern_of(value, is_allow, server):
                self._add(pattern, is_allow, line, wildcards)
        self._lengths = sorted({len(begin) for begin in self._begun})
        self._wildcards = sorted(
            (
                Wildcard(rule, first, rest[:-1], rest[-1], is_anchored)
                for (first, rest, is_anchored), rule in wildcards.items()
            ),
            reverse=True,
        )
        tail_bytes = sum(len(piece) + 1 for _, rest, _ in wildcards for piece in rest)
        self._path_max_bytes = WORK_MAX // max(tail_bytes, 1) - LOOK_BYTES

    def _add(self, pattern: bytes, is_allow: bool, line: int, wildcards: dict[Pieces, Rule]) -> None:
        # As Google does: a rule that allows /x/index.html allows /x/ too, because it is the same page.
        if is_allow and (index := _INDEX.fullmatch(pattern)):
            self._add(index[1] + b"$", is_allow, line, wildcards)
        is_anchored = pattern.endswith(b"$")
        first, *rest = (respell(piece) for piece in (pattern[:-1] if is_anchored else pattern).split(b"*"))
        rule = Rule(len(first) + sum(map(len, rest)) + len(rest) + is_anchored, is_allow, line)
        pieces = tuple(filter(None, rest))
        if pieces:
            keep_greater(wildcards, (first, pieces, is_anchored and bool(rest[-1])), rule)
        else:
            keep_greater(self._whole if is_anchored and not rest else self._begun, first, rule)

    def allows(self, url: str) -> bool:
        return self._decide(url).is_allow

    @property
    def group(self) -> str:
        """The agent whose group of rules counts for us: our own, or `*`."""
        return self._token.decode() if self._is_for_us else "*"

    def rule_for(self, url: str) -> str:
        """For people: the rule that decides about a URL."""
        return self._describe(self._decide(url))

    def forbids(self, url: str) -> str:
        """For people: the rule that forbids a URL; nothing where it is allowed."""
        rule = self._decide(url)
        return "" if rule.is_allow else self._describe(rule)

    def _describe(self, rule: Rule) -> str:
        if rule is _OVER_WORK:
            return "forbidden: too many rules with * for so long a URL"
        if rule is _NO_RULE:
            return "no rule"
        return f"{self._lines[rule.line]} (line {rule.line}, for user-agent {self.group})"

    @cached_property
    def _lines(self) -> dict[int, str]:
        """Line number -> text of the rules that count for us; read once, because a server may forbid many URLs."""
        rules = (*self._whole.values(), *self._begun.values(), *(wildcard.rule for wildcard in self._wildcards))
        wanted = {rule.line for rule in rules}
        found = read_directives(self._text)
        return {line: f"{name}: {make_plain(value[:SHOWN_MAX_BYTES])}" for line, name, value in found if line in wanted}

    def _decide(self, url: str) -> Rule:
        path = path_of(url)
        if path == b"/robots.txt":
            return _NO_RULE
        path_bytes = len(path)
        if path_bytes > self._path_max_bytes:
            return _OVER_WORK
        best = self._whole.get(path, _NO_RULE)
        get_rule = self._begun.get
        for length in self._lengths:
            if length > path_bytes:
                break
            rule = get_rule(path[:length])
            if rule is not None and rule > best:
                best = rule
        for rule, first, middle, last, is_anchored in self._wildcards:
            if rule < best:
                break
            if path.startswith(first) and has_pieces(path, len(first), middle, last, is_anchored):
                return rule
        return best


def keep_greater(table: dict[Key, Rule], key: Key, rule: Rule) -> None:
    """Of equal rules the first one stays, whatever their lines."""
    if key not in table or table[key][:2] < rule[:2]:
        table[key] = rule


def pattern_of(value: bytes, is_allow: bool, server: str) -> bytes:
    """The pattern of the server's paths in the value of a rule; nothing where the rule is not for this server.

    Of a URL the path counts, and only if scheme, host and port are the server's own: a rule that names another host
    neither closes nor opens this one. A Disallow without its slash gets one; such an Allow is no rule, as for Google.
    """
    origin = _ORIGIN.match(value)
    if origin:
        if not is_origin_of(origin.group(), server):
            return b""
        value = value[origin.end() :]
    elif is_allow and not value.startswith((b"/", b"*")):
        return b""
    return value if value.startswith((b"/", b"*")) else b"/" + value


def is_origin_of(origin: bytes, server: str) -> bool:
    try:
        return server_of(canonicalise(origin.decode("utf-8", "replace") + "/")) == server
    except NotCanonical:
        return False


def has_pieces(path: bytes, start: int, middle: tuple[bytes, ...], last: bytes, is_anchored: bool) -> bool:
    """Whether the pieces follow each other from `start`, with anything between them."""
    for piece in middle:
        start = path.find(piece, start)
        if start < 0:
            return False
        start += len(piece)
    if is_anchored:
        return path.endswith(last) and len(path) - len(last) >= start
    return path.find(last, start) >= 0


def path_of(url: str) -> bytes:
    """Path and query of a canonical URL, spelt as rules are; does not raise on any other text."""
    start = url.find("/", 8)
    path = url[start:].encode("utf-8", "replace") if start >= 0 else b"/"
    return respell(path.partition(b"#")[0])


def respell(path: bytes) -> bytes:
    if not path.translate(None, _SAFE):
        return path
    return _OTHERWISE_SPELT.sub(respell_octet, path)


def respell_octet(found: re.Match[bytes]) -> bytes:
    octets = found.group()
    octet = octets[0] if len(octets) == 1 else int(octets[1:], 16)
    return bytes((octet,)) if octet in _PLAIN else b"%%%02X" % octet
