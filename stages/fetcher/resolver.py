"""Addresses of host names: from a hosts file or from the system's resolver, each name asked once a run.

libcurl never resolves a name, so the address that is judged here is the one that is connected to: a name whose
answer changes between two look-ups (DNS rebinding) gains nothing.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from socket import IPPROTO_TCP, SOCK_STREAM

import trio

from contract.errors import BadConfiguration
from stages.fetcher.exchange import DNS, FORBIDDEN_ADDRESS

Address = IPv4Address | IPv6Address
GLOBAL_UNICAST = IPv6Network("2000::/3")  # all that IANA has given out of the public IPv6 Internet


def is_global(address: Address) -> bool:
    """Whether the address is of the public Internet, forms that carry an IPv4 address inside included."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return is_global(inner)
        if address not in GLOBAL_UNICAST:
            return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback or address.is_link_local
    )


def choose(addresses: list[Address], allow_private: bool) -> tuple[Address | None, str]:
    """The first address that may be asked, or none and the reason."""
    if not addresses:
        return None, DNS
    allowed = addresses if allow_private else [address for address in addresses if is_global(address)]
    return (plain(allowed[0]), "") if allowed else (None, FORBIDDEN_ADDRESS)


def plain(address: Address) -> Address:
    """The IPv4 address where an IPv6 one only maps it, so that politeness knows them as one."""
    return getattr(address, "ipv4_mapped", None) or address


def read_hosts_file(path: Path) -> dict[str, list[Address]]:
    """Names and their addresses in the form of hosts(5)."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfiguration(f"fetcher.hosts_file {path}: expected a hosts file, found {error}") from None
    hosts: dict[str, list[Address]] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            address = ip_address(words[0])
        except ValueError:
            raise BadConfiguration(f"fetcher.hosts_file {path} line {number}: expected an address, found {words[0]!r}") from None
        for name in words[1:]:
            hosts.setdefault(name.lower().rstrip("."), []).append(address)
    return hosts


class Resolver:
    def __init__(self, hosts_file: str, allow_private: bool):
        self._hosts = read_hosts_file(Path(hosts_file)) if hosts_file else None
        self._allow_private = allow_private
        self._known: dict[str, list[Address]] = {}

    def look_up(self, host: str) -> tuple[Address | None, str] | None:
        """Address, or none and the reason, where that needs no waiting; else nothing."""
        addresses = self._at_hand(host)
        return None if addresses is None else choose(addresses, self._allow_private)

    async def resolve(self, host: str) -> tuple[Address | None, str]:
        if self._at_hand(host) is None:
            self._known[host] = await ask_system(host)
        return choose(self._at_hand(host), self._allow_private)

    def _at_hand(self, host: str) -> list[Address] | None:
        try:
            return [ip_address(host)]
        except ValueError:
            pass
        if self._hosts is not None:
            return self._hosts.get(host, [])  # what is not in the file does not exist
        return self._known.get(host)


async def ask_system(host: str) -> list[Address]:
    """The system resolver's addresses in its order (RFC 6724), none where it knows none."""
    try:
        found = await trio.socket.getaddrinfo(host, None, type=SOCK_STREAM, proto=IPPROTO_TCP)
    except (OSError, UnicodeError):
        return []
    return [ip_address(place[0]) for _, _, _, _, place in found]
