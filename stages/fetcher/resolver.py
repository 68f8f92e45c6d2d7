"""Addresses of host names: our own cache over DNS, with times to live, also for names that do not exist.

libcurl never resolves a name, so the address that is judged here is the one that is connected to. Look-ups go through
dnspython, which speaks trio and gives the whole answer: times to live, of negative answers too (RFC 2308), which the
system's resolver does not give. The preferred kind of address is asked for first, the other only where there is none.
"""

from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import dns.asyncresolver
import dns.exception
import dns.nameserver
import dns.resolver

from contract.config import Fetcher
from contract.errors import BadConfiguration
from contract.url import is_address
from stages.fetcher.addresses import Address, Gate, explain_forbidden, plain
from stages.fetcher.hosts_file import read_hosts_file
from stages.fetcher.reasons import DNS, DNS_TIMEOUT, FORBIDDEN_ADDRESS

SYSTEM_HOSTS = Path("/etc/hosts")
TTL_MIN_S = 30  # a name without a time to live is not looked up for every request ...
TTL_MAX_S = 86_400  # ... and none is kept for ever
TROUBLE_TTL_S = 60  # after a look-up that failed
ADDRESSES_MAX = 8  # of one name; more would only be tried when all before them are dead
RECORD_TYPES = {"ipv4": "A", "ipv6": "AAAA"}
FOREVER_MS = 1 << 62
NOT_IN_HOSTS_FILE = "the name is not in fetcher.hosts_file, which replaces DNS"


class Found(NamedTuple):
    addresses: list[Address]  # those that may be asked, in the order of the answer
    reason: str  # why there are none
    expires_at_ms: int
    message: str  # the reason in words, and who said so
    is_silent: bool = False  # no name server answered at all


class Resolver:
    def __init__(self, config: Fetcher, gate: Gate):
        self._gate = gate
        self._types = [RECORD_TYPES[family] for family in config.address_families]
        self._hosts_file = config.hosts_file
        self._is_replaced = bool(config.hosts_file)
        self._hosts = read_hosts_file(Path(config.hosts_file)) if config.hosts_file else read_system_hosts()
        self._resolver = None if self._is_replaced else make_resolver(config)
        self._timeout_s = config.dns_timeout_s
        self._known: dict[str, Found] = {}
        self._last_answered = ""  # a name

    def look_up(self, host: str, now_ms: int) -> Found | None:
        """What is known without a query, or nothing."""
        known = self._known.get(host)
        if known is not None and known.expires_at_ms > now_ms:
            return known
        addresses = self._at_hand(host)
        return None if addresses is None else self._keep(host, addresses, DNS, FOREVER_MS, NOT_IN_HOSTS_FILE)

    def describe_source(self, host: str) -> str:
        """For people: who is asked for the addresses of a name."""
        if is_address(host):
            return "nobody: the URL names an address"
        if self._is_replaced:
            return f"fetcher.hosts_file {self._hosts_file}, which replaces DNS"
        if host in self._hosts:
            return str(SYSTEM_HOSTS)
        return f"DNS, {', then '.join(self._types)}, of {self._describe_servers()}"

    def _describe_servers(self) -> str:
        return " or ".join(map(describe_server, self._resolver.nameservers))

    def _at_hand(self, host: str) -> list[Address] | None:
        try:
            return [ip_address(host)]
        except ValueError:
            return self._hosts.get(host, [] if self._is_replaced else None)

    async def resolve(self, host: str, now_ms: int) -> Found:
        """Asks for the addresses of a name, unless they are known and still hold."""
        found = self.look_up(host, now_ms)
        return found if found is not None else self._keep(host, *await self._ask(host, now_ms))

    def forget(self, host: str) -> None:
        self._known.pop(host, None)

    async def is_answered(self) -> bool:
        """Whether a name server answers anything: about the root, or about a name that it answered before."""
        for name, kind in ((".", "NS"), (self._last_answered + ".", self._types[0])):
            try:
                await self._resolver.resolve(name, kind, search=False, lifetime=self._timeout_s)
                return True
            except (dns.resolver.NoNameservers, dns.exception.Timeout, OSError) as error:
                if not is_silence(error):
                    return True
            except dns.exception.DNSException:
                return True
        return False

    def _keep(
        self,
        host: str,
        addresses: list[Address],
        reason: str,
        expires_at_ms: int,
        message: str,
        is_silent: bool = False,
    ) -> Found:
        allowed = [plain(address) for address in addresses if self._gate.lets(address)][:ADDRESSES_MAX]
        if allowed:
            reason = message = ""
        elif addresses:
            reason, message = FORBIDDEN_ADDRESS, explain_forbidden(addresses[0])
        found = self._known[host] = Found(allowed, reason, expires_at_ms, message, is_silent)
        return found

    async def _ask(self, host: str, now_ms: int) -> tuple[list[Address], str, int, str, bool]:
        reason, ttl_s, message, is_silent = DNS, TTL_MAX_S, "", True
        for kind in self._types:
            try:
                answer = await self._resolver.resolve(host + ".", kind, search=False, lifetime=self._timeout_s)
                self._last_answered = host
                addresses = [ip_address(row.address) for row in answer]
                return addresses, "", expiry(now_ms, ttl_of(answer.response)), "", False
            except dns.resolver.NXDOMAIN as error:
                ttl_s = min((ttl_of(response) for response in error.responses().values()), default=0)
                return (
                    [],
                    DNS,
                    expiry(now_ms, ttl_s),
                    f"there is no such name (NXDOMAIN), says {self._describe_servers()}",
                    False,
                )
            except dns.resolver.NoAnswer as error:
                ttl_s, is_silent = min(ttl_s, ttl_of(error.response())), False
                message = (
                    message or f"the name has no {' or '.join(self._types)} record, says {self._describe_servers()}"
                )
            except (dns.resolver.NoNameservers, dns.exception.Timeout, OSError) as error:
                reason, ttl_s, message = DNS_TIMEOUT, TROUBLE_TTL_S, str(error)
                is_silent = is_silent and is_silence(error)
            except (dns.exception.DNSException, ValueError) as error:  # a name that DNS cannot hold, a broken answer
                ttl_s, message, is_silent = TROUBLE_TTL_S, message or str(error), False
        return [], reason, expiry(now_ms, ttl_s), message, is_silent


def describe_server(server: str | dns.nameserver.Nameserver) -> str:
    return f"{server.address} port {server.port}" if isinstance(server, dns.nameserver.Do53Nameserver) else str(server)


def is_silence(error: Exception) -> bool:
    """Whether a look-up failed without an answer from any name server; a refusal or rubbish is an answer too."""
    tries = error.kwargs.get("errors", ()) if isinstance(error, dns.exception.DNSException) else ()
    return all(isinstance(trouble, (OSError, dns.exception.Timeout)) for _, _, _, trouble, _ in tries)


def ttl_of(response) -> int:
    """The shortest time to live on the way to the answer; of a negative one, what its zone says."""
    try:
        return response.resolve_chaining().minimum_ttl
    except dns.exception.DNSException:  # a chain that leads in a circle
        return 0


def expiry(now_ms: int, ttl_s: int) -> int:
    return now_ms + min(max(ttl_s, TTL_MIN_S), TTL_MAX_S) * 1000


def read_system_hosts() -> dict[str, list[Address]]:
    """The machine's own names, as every program on it knows them."""
    try:
        return read_hosts_file(SYSTEM_HOSTS)
    except BadConfiguration:
        return {}


def make_resolver(config: Fetcher) -> dns.asyncresolver.Resolver:
    try:
        resolver = dns.asyncresolver.Resolver(configure=not config.dns_servers)
    except dns.resolver.NoResolverConfiguration:
        raise BadConfiguration(
            "the system names no DNS server: set fetcher.dns_servers, or fetcher.hosts_file"
        ) from None
    if config.dns_servers:
        resolver.nameservers = [read_name_server(text) for text in config.dns_servers]
    resolver.timeout = max(0.1, config.dns_timeout_s / 2)  # per try, so that one lost packet does not lose the name
    return resolver


def read_name_server(text: str) -> dns.nameserver.Do53Nameserver:
    """A name server given as an address, with or without a port after a colon."""
    host, colon, port = text.rpartition(":")
    if not colon or "]" in port or host.count(":") and not host.startswith("["):
        host, port = text, "53"
    try:
        if not 0 < int(port) < 1 << 16:
            raise ValueError("no port")
        return dns.nameserver.Do53Nameserver(str(ip_address(host.strip("[]"))), int(port))
    except ValueError:
        raise BadConfiguration(
            f"fetcher.dns_servers: expected an address such as 192.0.2.1 or [2001:db8::1]:53, found {text!r}"
        ) from None
