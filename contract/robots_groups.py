"""The lines of a robots.txt, and those of them that are for one agent (RFC 9309 2.1, 2.2)."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from contract.url import NotCanonical, canonicalise

SITEMAPS_MAX = 1_000
AGENT, ALLOW, DISALLOW, SITEMAP, DELAY = "User-agent", "Allow", "Disallow", "Sitemap", "Crawl-delay"
# The misspellings are those that Google's parser accepts. As there, a name may be longer ('Disallowed: /x'), and a
# blank may replace the colon before a single word ('Disallow /x'): authors see that this works there, and rely on it.
_SPELLINGS = {
    b"user-agent": AGENT,
    b"useragent": AGENT,
    b"user agent": AGENT,
    b"allow": ALLOW,
    b"disallow": DISALLOW,
    b"dissallow": DISALLOW,
    b"dissalow": DISALLOW,
    b"disalow": DISALLOW,
    b"diasllow": DISALLOW,
    b"disallaw": DISALLOW,
    b"sitemap": SITEMAP,
    b"site-map": SITEMAP,
    b"crawl-delay": DELAY,
    b"crawldelay": DELAY,
    b"crawl delay": DELAY,
}
_DIRECTIVE = re.compile(rb"(%s)[^\s:]*(?:\s*:\s*|\s+(?=\S+\Z))(.*)" % b"|".join(_SPELLINGS), re.IGNORECASE | re.DOTALL)
_MAYBE_SITEMAP = re.compile(rb"site-?map", re.IGNORECASE)  # most texts have none, and need not be read line by line
_TOKEN = re.compile(rb"[A-Za-z_-]*")  # RFC 9309 2.2.1: the token of 'FooBot/1.2' is FooBot
_EVERYBODY = re.compile(rb"\*(?:\s|\Z)")
_NUMBER = re.compile(rb"\d{1,12}(?:\.\d{0,12})?|\.\d{1,12}")
_MARK = re.compile(rb"\xef(?:\xbb\xbf?)?|\xff\xfe|\xfe\xff")  # a byte order mark, whole or partial


def token_of(agent: bytes) -> bytes:
    """The part of an agent's name that is compared."""
    found = _TOKEN.match(agent)
    return found.group().lower() if found else b""


class Groups(NamedTuple):
    """The rules for one agent by name (`own`), and those for all agents that the text does not name (`star`)."""

    names_us: bool
    own: list[tuple[int, bool, bytes]]  # line, is it Allow, pattern
    star: list[tuple[int, bool, bytes]]
    own_delays: list[float]
    star_delays: list[float]
    sitemaps: dict[str, None]


def read_groups(text: bytes, token: bytes) -> Groups:
    groups = Groups(False, [], [], [], [], {})
    names_us = is_own = is_star = has_rules = False
    for line, name, value in read_directives(text):
        if name == AGENT:
            # Only rules end a row of names: other lines, Crawl-delay too, must not interfere (RFC 9309 2.2.4).
            if has_rules:
                is_own = is_star = has_rules = False
            is_star = is_star or _EVERYBODY.match(value) is not None
            is_own = is_own or bool(token) and token_of(value) == token
            names_us = names_us or is_own
        elif name == SITEMAP:
            note_sitemap(groups.sitemaps, value)
        elif name == DELAY:
            if number := _NUMBER.match(value):
                groups.own_delays.extend([float(number.group())] * is_own)
                groups.star_delays.extend([float(number.group())] * is_star)
        else:
            has_rules = True
            if value:
                groups.own.extend([(line, name == ALLOW, value)] * is_own)
                groups.star.extend([(line, name == ALLOW, value)] * is_star)
    return groups._replace(names_us=names_us)


def read_directives(text: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Line number, name and value of the lines that we understand."""
    if mark := _MARK.match(text):
        text = text[mark.end() :]
    # Without its NULs, UTF-16 of ASCII is ASCII.
    for line, content in enumerate(text.replace(b"\0", b"").splitlines(), 1):
        found = _DIRECTIVE.match(content.partition(b"#")[0].strip())
        if found:
            yield line, _SPELLINGS[found[1].lower()], found[2]


def note_sitemap(sitemaps: dict[str, None], value: bytes) -> None:
    if len(sitemaps) < SITEMAPS_MAX:
        try:
            sitemaps[canonicalise(value.decode("utf-8", "replace"))] = None
        except NotCanonical:
            pass


def read_sitemaps(text: bytes) -> list[str]:
    """The sitemaps that a robots.txt names, for any agent: canonical, each once, in its order."""
    sitemaps: dict[str, None] = {}
    if _MAYBE_SITEMAP.search(text.replace(b"\0", b"")):
        for _, name, value in read_directives(text):
            if name == SITEMAP:
                note_sitemap(sitemaps, value)
    return list(sitemaps)
