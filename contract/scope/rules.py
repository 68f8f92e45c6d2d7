"""The rules of [scope] in their order, and the judge that applies them to URLs.

The judge applies rules about the server first, once per server, then rules about the URL, then rules about its page.
The first rule that rejects a URL wins, and the books count it. Within each of the three groups, the order is that of
RULES. A rule has the name of its key in the configuration. Only 'accept' has no key: a URL breaks it if no accept_ list
takes it, nor link_sources. Rules of TRAPS reject URLs that a server makes without end. docs/scope.md is the manual.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import unquote

from contract.config import Scope as Settings
from contract.scope.traps import (
    find_mark,
    goes_deeper,
    has_endless_labels,
    has_far_date,
    has_host,
    has_repeats,
    has_session_segment,
    may_hide_session,
)
from contract.surt import SurtPrefixes
from contract.url import Keys, extension_of, host_named, host_of, is_address, path_extension, server_of

# Rules about the server and the URL.
_ACCEPT, REJECT_DOMAINS, _SURTS, REJECT_EXTENSIONS = "accept", "reject_domains", "reject_surts", "reject_extensions"
_PATTERNS, _TERMS, _DYNAMIC = "reject_patterns", "reject_terms", "reject_dynamic"
_HOST_LABELS, _URL_LENGTH, _PATH_DEPTH = "host_labels_max", "url_length_max", "path_depth_max"
_SEGMENT_REPEATS, _CALENDAR_YEARS = "segment_repeats_max", "calendar_years_max"
_SESSION_SEGMENTS, _HOSTS_IN_PATHS = "reject_session_segments", "reject_hosts_in_paths"
# Rules about the page that links to it.
_HOPS, _DEEPER_REPEATS, PAGE_LINKS = "hops_max", "deeper_repeats_max", "page_links_max_bytes"
RULES = (
    _ACCEPT,
    REJECT_DOMAINS,
    _SURTS,
    REJECT_EXTENSIONS,
    _PATTERNS,
    _TERMS,
    _DYNAMIC,
    _HOST_LABELS,
    _URL_LENGTH,
    _PATH_DEPTH,
    _SEGMENT_REPEATS,
    _CALENDAR_YEARS,
    _SESSION_SEGMENTS,
    _HOSTS_IN_PATHS,
    _HOPS,
    _DEEPER_REPEATS,
    PAGE_LINKS,
)
OUT_OF_SCOPE = (_ACCEPT, REJECT_DOMAINS, _SURTS, REJECT_EXTENSIONS, _PATTERNS, _TERMS, _DYNAMIC, _HOPS)
TRAPS = tuple(rule for rule in RULES if rule not in OUT_OF_SCOPE)

SERVERS_REMEMBERED = 1 << 17
HOPS_UNLIMITED = 255  # the largest depth that tables can hold
# Extensions of programs, for reject_dynamic.
_PROGRAMS = """
    action asp aspx cfc cfm cgi dll do exe fcgi jsf jsp jspx nsf php php3 php4 php5 phtml pl
"""
PROGRAMS = frozenset(_PROGRAMS.split())


class Scope:
    """Judges URLs by one configuration. `year` is the crawl's present year; 0: not known, and then no date is far."""

    def __init__(self, config: Settings, keys: Keys, year: int = 0):
        self._config = config
        self._keys = keys
        self._year = year
        self.page_links_max_bytes = config.page_links_max_bytes
        suffixes = [host_named(text) for text in config.accept_suffixes]
        self._suffixes = frozenset(suffixes)
        self._endings = tuple("." + suffix for suffix in suffixes)
        self._accept_domains = frozenset(host_named(text) for text in config.accept_domains)
        self._accept_patterns = tuple(re.compile(text) for text in config.accept_patterns)
        self._accepts_all = not (suffixes or self._accept_domains or config.accept_surts or self._accept_patterns)
        self._accept_surts = SurtPrefixes((*config.accept_surts, *config.link_sources))
        self._reject_domains = frozenset(host_named(text) for text in config.reject_domains)
        self._reject_surts = SurtPrefixes(config.reject_surts)
        self._extensions = frozenset(text.strip().lstrip(".").lower() for text in config.reject_extensions)
        self._patterns = tuple(re.compile(text) for text in config.reject_patterns)
        self._terms = tuple(term.strip().lower() for term in config.reject_terms)
        self._judges_dates = bool(config.calendar_years_max and year)
        self._looks_at_location = bool(
            self._accept_patterns or self._accept_surts.names_paths or self._reject_surts.names_paths
        )
        self._looks_at_words = bool(self._patterns or self._terms or config.reject_dynamic)
        self._depth_unjudged = min(config.path_depth_max, config.segment_repeats_max)
        self.judge_server = lru_cache(maxsize=SERVERS_REMEMBERED)(self._judge_server)
        self._paths_of = lru_cache(maxsize=SERVERS_REMEMBERED)(self._find_paths)

    def judge(self, url: str) -> str:
        """The rule that a canonical URL breaks by itself, or nothing."""
        server = url[: url.index("/", 8)]
        rule = self.judge_server(server)
        if rule:
            return rule
        target = url[len(server) :]
        path, _, query = target.partition("?")
        if self._looks_at_location and (rule := self._judge_location(server, url, target)):
            return rule
        extension = path_extension(path)
        if extension in self._extensions:
            return REJECT_EXTENSIONS
        if self._looks_at_words and (rule := self._judge_words(url, path, extension)):
            return rule
        return self._judge_traps(server, url, path, query)

    def judge_listed(self, url: str) -> str:
        """The rule by which the fetcher refuses a listed URL, or nothing.

        Only reject_domains and reject_extensions count. All other rules judge links: a seed is fetched even if it is
        out of scope.
        """
        if self._reject_domains and self._keys.is_of(server_of(url), self._reject_domains):
            return REJECT_DOMAINS
        return REJECT_EXTENSIONS if extension_of(url) in self._extensions else ""

    def judge_depth(self, depth: int) -> str:
        """The rule that every link of a page `depth` hops from a seed breaks, or nothing."""
        return _HOPS if self._config.hops_max < HOPS_UNLIMITED and depth >= self._config.hops_max else ""

    def is_suspect(self, page_url: str) -> bool:
        """Whether judge_from() can reject any link of a page. It seldom can: most folders repeat nothing."""
        segments = folder_of(page_url).split("/")[3:-1]
        most = self._config.deeper_repeats_max
        return len(segments) - len(set(segments)) >= most - 1 and any(
            segments.count(segment) >= most for segment in set(segments)
        )

    def judge_from(self, page_url: str, target_url: str) -> str:
        """The rule that a URL breaks as a link of a suspect page, or nothing. REQUIRES: judge() passed the URL."""
        deeper = goes_deeper(folder_of(page_url), folder_of(target_url), self._config.deeper_repeats_max)
        return _DEEPER_REPEATS if deeper else ""

    def judge_link(self, url: str, page_url: str, depth: int) -> str:
        """The rule that a URL breaks as a link of a page `depth` hops from a seed, or nothing."""
        rule = self.judge(url) or self.judge_depth(depth)
        return rule or (self.judge_from(page_url, url) if self.is_suspect(page_url) else "")

    def _judge_server(self, server: str) -> str:
        """The rule that all URLs of a server break, or nothing."""
        if (
            not self._accepts_all
            and not self._accept_patterns
            and not self._takes(server)
            and not self._accept_surts.paths_of(server)
        ):
            return _ACCEPT
        if self._keys.is_of(server, self._reject_domains):
            return REJECT_DOMAINS
        if self._reject_surts and self._reject_surts.takes_server(server):
            return _SURTS
        host = host_of(server)
        if not is_address(host) and has_endless_labels(host, self._config.host_labels_max):
            return _HOST_LABELS
        return ""

    def _takes(self, server: str) -> bool:
        """Whether an accept_ list takes all URLs of a server."""
        host = host_of(server)
        if host in self._suffixes or host.endswith(self._endings) and not is_address(host):
            return True
        return self._keys.is_of(server, self._accept_domains) or self._accept_surts.takes_server(server)

    def _find_paths(self, server: str) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        """How accepted and rejected paths of a server begin, and whether the whole server is accepted."""
        is_taken = self._accepts_all or self._takes(server)
        return self._accept_surts.paths_of(server), self._reject_surts.paths_of(server), is_taken

    def _judge_location(self, server: str, url: str, target: str) -> str:
        accepted, rejected, is_taken = self._paths_of(server)
        if not (
            is_taken or target.startswith(accepted) or any(pattern.search(url) for pattern in self._accept_patterns)
        ):
            return _ACCEPT
        return _SURTS if target.startswith(rejected) else ""

    def _judge_words(self, url: str, path: str, extension: str) -> str:
        if any(pattern.search(url) for pattern in self._patterns):
            return _PATTERNS
        if self._terms:
            plain = unquote(url).lower()
            if any(term in plain for term in self._terms):
                return _TERMS
        if self._config.reject_dynamic and ("?" in url or extension in PROGRAMS or "/cgi-bin/" in path.lower()):
            return _DYNAMIC
        return ""

    def _judge_traps(self, server: str, url: str, path: str, query: str) -> str:
        config = self._config
        if len(url) > config.url_length_max:
            return _URL_LENGTH
        if path.count("/") > self._depth_unjudged:
            segments = [segment for segment in path.split("/") if segment]
            if len(segments) > config.path_depth_max:
                return _PATH_DEPTH
            if len(set(segments)) < len(segments) and has_repeats(segments, config.segment_repeats_max):
                return _SEGMENT_REPEATS
        mark = find_mark(path)
        if (mark or query) and self._judges_dates and has_far_date(path, query, self._year, config.calendar_years_max):
            return _CALENDAR_YEARS
        if (
            mark or may_hide_session(path) or server[8:].partition(":")[0] in path
        ):  # http hosts lack their first letter here
            if config.reject_session_segments and has_session_segment(path):
                return _SESSION_SEGMENTS
            if config.reject_hosts_in_paths and has_host(path, host_of(server)):
                return _HOSTS_IN_PATHS
        return ""


def folder_of(url: str) -> str:
    """A URL up to the last slash of its path."""
    address = url.partition("?")[0]
    return address[: address.rindex("/") + 1]


def year_of(at_ms: int) -> int:
    """The year of a time, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).year
