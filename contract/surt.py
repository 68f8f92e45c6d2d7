"""SURT prefixes: the beginning of a URL with its host reversed, so that one prefix takes a host and all hosts below it.

    br,                     every host of .br
    br,ufmg,                ufmg.br and all hosts below it, any port
    br,ufmg,www)/           www.ufmg.br alone, its default port alone
    br,ufmg,www)/ensino     its paths that begin so: /ensino, /ensino/x, /ensinos
    br,ufmg,www:8080)/      the server at that port
    192.0.2.1)/             addresses are not reversed

Heritrix's spelling, http://(br,ufmg,www,)/ensino, means the same. As there, http and https are the same.
One thing differs from a comparison of texts: a host ends with a whole label, so br,ufmg does not take br,ufmgx.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from contract.url import UNPARSABLE, NotCanonical, canonicalise, host_named, host_of, is_address, server_of

_FORM = re.compile(r"(?:(https?)://)?\(?(\[[0-9a-f:.]+\]|[^\[\]()/?#@:\\\s]+)(:\d+)?(?:\)(/[^#]*)?)?", re.I)


class Surt(NamedTuple):
    """`host` is as surt_of() begins; without a path it takes hosts below it too, with one its server alone."""

    host: str
    path: str


@lru_cache(maxsize=1 << 10)  # several rules ask for the same server behind each other
def surt_of(server: str) -> str:
    """A server as br,ufmg,www, with :port behind it unless that is the scheme's own."""
    host = host_of(server)
    authority = server.partition("//")[2]
    port = authority.rpartition("]")[2].partition(":")[2]
    return reverse_host(host) + (f":{port}" if port else "")


def reverse_host(host: str) -> str:
    plain = host.replace(",", "%2C")  # the URL standard lets a label hold a comma; here it would pass for two labels
    return (host if is_address(host) else ",".join(reversed(plain.split(".")))) + ","


def parse_surt(text: str) -> Surt:
    """A prefix as people write it. Raises NotCanonical where the text is no prefix."""
    found = _FORM.fullmatch(text.strip())
    if not found or "://" in text and "://(" not in text:
        raise NotCanonical(UNPARSABLE)
    scheme, written, port, path = found.groups()
    labels = written.rstrip(",").split(",")
    host = host_named(".".join(reversed(labels)))
    if (
        not all(labels)
        or is_address(host) != is_address(written.rstrip(",").strip("[]"))
        or "." in written
        and not is_address(host)
    ):
        raise NotCanonical(UNPARSABLE)
    if not port and ")" not in text:
        return Surt(reverse_host(host), "")
    bracketed = f"[{host}]" if ":" in host else host
    url = canonicalise(f"{scheme or 'http'}://{bracketed}{port or ''}{path or '/'}")
    server = server_of(url)
    # A prefix may end with an empty query, a canonical URL may not.
    cut = "?" * (bool(path) and path.endswith("?") and not url.endswith("?"))
    return Surt(surt_of(server), url[len(server) :] + cut)


class SurtPrefixes:
    """A list of prefixes. Callers ask about the server first, then, if that does not decide, about paths."""

    def __init__(self, texts: Iterable[str]):
        parsed = [parse_surt(text) for text in texts]
        self._hosts = tuple(prefix.host for prefix in parsed if not prefix.path)
        self._paths: dict[str, tuple[str, ...]] = {}
        for prefix in parsed:
            if prefix.path:
                self._paths[prefix.host] = (*self._paths.get(prefix.host, ()), prefix.path)

    def __bool__(self) -> bool:
        return bool(self._hosts or self._paths)

    @property
    def names_paths(self) -> bool:
        return bool(self._paths)

    def takes_server(self, server: str) -> bool:
        """Whether every URL of a server begins with one of the prefixes."""
        surt = surt_of(server)
        return surt.startswith(self._hosts) or "/" in self._paths.get(surt, ())

    def paths_of(self, server: str) -> tuple[str, ...]:
        """The beginnings of the paths, with their queries, that are taken on a server."""
        return self._paths.get(surt_of(server), ())
