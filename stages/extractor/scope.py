"""Which URLs a crawl wants: rules about the server, judged once a server, then rules about the URL.

The first rule that decides wins; rules are judged in the order of RULES. Those of TRAPS tell URLs that a server makes
without end from those that lead somewhere.
"""

import re
from functools import lru_cache

from contract.config import Scope as ScopeConfig
from contract.url import Keys, extension_of, host_named, host_of, is_address, server_of

OUT_OF_SCOPE = ("accept_suffixes", "reject_domains", "reject_extensions", "reject_patterns")
TRAPS = ("url_length_max", "path_depth_max", "segment_repeats_max")
RULES = OUT_OF_SCOPE + TRAPS

_ACCEPT_SUFFIXES, _REJECT_DOMAINS, _REJECT_EXTENSIONS, _REJECT_PATTERNS = OUT_OF_SCOPE
_URL_LENGTH, _PATH_DEPTH, _SEGMENT_REPEATS = TRAPS


class Scope:
    def __init__(self, config: ScopeConfig, keys: Keys):
        self._config = config
        self._keys = keys
        self._suffixes = tuple(host_named(text) for text in config.accept_suffixes)
        self._endings = tuple("." + suffix for suffix in self._suffixes)
        self._domains = frozenset(host_named(text) for text in config.reject_domains)
        self._extensions = frozenset(text.strip().lstrip(".").lower() for text in config.reject_extensions)
        self._patterns = tuple(re.compile(text) for text in config.reject_patterns)
        self.judge_server = lru_cache(maxsize=1 << 17)(self._judge_server)

    def judge(self, url: str) -> str:
        """The rule that a canonical URL breaks, or nothing."""
        server = server_of(url)
        return self.judge_server(server) or self._judge_path(url, url[len(server):].partition("?")[0])

    def _judge_server(self, server: str) -> str:
        host = host_of(server)
        if self._suffixes and host not in self._suffixes and (is_address(host) or not host.endswith(self._endings)):
            return _ACCEPT_SUFFIXES
        if self._keys.is_of(server, self._domains):
            return _REJECT_DOMAINS
        return ""

    def _judge_path(self, url: str, path: str) -> str:
        if extension_of(url) in self._extensions:
            return _REJECT_EXTENSIONS
        if any(pattern.search(url) for pattern in self._patterns):
            return _REJECT_PATTERNS
        if len(url) > self._config.url_length_max:
            return _URL_LENGTH
        segments = [segment for segment in path.split("/") if segment]
        if len(segments) > self._config.path_depth_max:
            return _PATH_DEPTH
        most = self._config.segment_repeats_max
        if len(segments) > most and any(segments.count(segment) > most for segment in set(segments)):
            return _SEGMENT_REPEATS
        return ""
