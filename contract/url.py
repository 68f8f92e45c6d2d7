"""URLs: their canonical form, their server and domain, and the keys of all three."""

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

import ada_url
import xxhash
from publicsuffixlist import PublicSuffixList

URL_MAX_BYTES = 8_000  # longer texts are not URLs for us: servers answer them with 414, and rows must stay small
UNPARSABLE = "unparsable"
OTHER_SCHEME = "other_scheme"
# Paths with their queries that the parser does not change, unless they hold steps (./, ../).
PLAIN = r"[A-Za-z0-9_.~/-]*+(?:\?[A-Za-z0-9_.~=&/-]++)?"
# Absolute URLs that it does not change, unless they hold steps, or a name in Punycode, which may be wrong.
_PLAIN = re.compile(rf"https?://(?:[a-z0-9-]++\.)*[a-z]{{2,}}+/{PLAIN}")


class NotCanonical(ValueError):
    """A text has no canonical form; `reason` is UNPARSABLE or OTHER_SCHEME."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


def canonicalise(text: str, base: str | None = None) -> str:
    """The WHATWG serialisation without fragment, userinfo, empty query and the host's trailing dots; ASCII."""
    if _PLAIN.fullmatch(text) and "/." not in text and "xn--" not in text and len(text) <= URL_MAX_BYTES:
        return text  # most canonical URLs are plain; this takes a tenth of the parser's time
    try:
        href = ada_url.join_url(base, text) if base else ada_url.normalize_url(text)
    except (ValueError, UnicodeEncodeError):  # lone surrogates have no UTF-8
        raise NotCanonical(UNPARSABLE) from None
    if not href.startswith(("http://", "https://")):
        raise NotCanonical(OTHER_SCHEME)
    url, _, _ = href.partition("#")
    if url.endswith("?") and url.index("?") == len(url) - 1:
        url = url[:-1]
    host_start = url.index("//") + 2
    host_end = url.index("/", host_start)
    authority = url[host_start:host_end]
    plain = drop_trailing_dots(authority.rpartition("@")[2])
    if not plain or plain.startswith(":"):
        raise NotCanonical(UNPARSABLE)  # the host is nothing but dots: the parser would take the path for a host
    if plain != authority:
        url = canonicalise(url[:host_start] + plain + url[host_end:])  # '1.2.3.4..' has become an address: once more
    if len(url) > URL_MAX_BYTES:
        raise NotCanonical(UNPARSABLE)
    return url


def drop_trailing_dots(authority: str) -> str:
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, ""
    return host.rstrip(".") + colon * bool(port) + port


def server_of(url: str) -> str:
    """Scheme, host and port of a canonical URL."""
    return url[: url.index("/", 8)]


def servers_of(texts: bytes, starts: list[int]) -> list[str]:
    """The servers of the canonical URLs that begin at these offsets of a text."""
    return [texts[start : texts.index(b"/", start + 8)].decode() for start in starts]


def extension_of(url: str) -> str:
    """The extension of a canonical URL's path."""
    return path_extension(url[url.index("/", 8) :].partition("?")[0])


def path_extension(path: str) -> str:
    """What follows the last dot of the last segment, in lower case, or nothing. A compressed sitemap counts as xml."""
    name = path[path.rfind("/") + 1 :]
    extension = name[name.rfind(".") + 1 :].lower() if "." in name else ""
    return "xml" if extension == "gz" and name[-7:].lower() == ".xml.gz" else extension


def host_of(server: str) -> str:
    """The host of a server, an IPv6 address without its brackets."""
    authority = server.partition("//")[2]
    if authority.startswith("["):
        return authority[1 : authority.index("]")]
    return authority.partition(":")[0]


def host_named(text: str) -> str:
    """A host that a person wrote, as URLs spell it: lower case, ASCII, no dots around it, no brackets."""
    plain = text.strip().strip(".")
    if ":" in plain and not plain.startswith("["):
        plain = f"[{plain}]"
    if not plain or any(mark in plain for mark in "/?#@\\"):
        raise NotCanonical(UNPARSABLE)
    return host_of(server_of(canonicalise(f"http://{plain}/")))


def port_of(server: str) -> int:
    scheme, _, authority = server.partition("://")
    port = authority.rpartition("]")[2].rpartition(":")[2] if ":" in authority.rpartition("]")[2] else ""
    return int(port) if port else {"http": 80, "https": 443}[scheme]


def is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=2)
def parse_suffixes(suffix_list: bytes | None) -> PublicSuffixList:
    """The list takes a tenth of a second, so a process parses it once; stages inherit it from the warm process."""
    return PublicSuffixList(source=suffix_list.decode("utf-8") if suffix_list is not None else None)


class Server(NamedTuple):
    name: str
    key: int
    domain: str
    domain_key: int


class Keys:
    """Keys of one crawl: xxh3-64 with the crawl's secret, domains by the suffix list that the crawl froze."""

    def __init__(self, hash_seed: int, suffix_list: bytes | None = None):
        self._seed = hash_seed
        self._suffixes = parse_suffixes(suffix_list)
        self.server = lru_cache(maxsize=1 << 17)(self._server)  # decided once per server, not once per link

    def of(self, text: str) -> int:
        return xxhash.xxh3_64_intdigest(text.encode("ascii"), self._seed)

    def is_of(self, server: str, domains: frozenset[str]) -> bool:
        """Whether the server's host or registered domain is one of these."""
        return bool(domains) and (host_of(server) in domains or self.server(server).domain in domains)

    def domain(self, host: str) -> str:
        return host if is_address(host) else self._suffixes.privatesuffix(host) or host

    def _server(self, name: str) -> Server:
        domain = self.domain(host_of(name))
        return Server(name, self.of(name), domain, self.of(domain))
