"""A file of addresses and names that replaces DNS, in the form of hosts(5)."""

from ipaddress import ip_address
from pathlib import Path

from contract.errors import BadConfiguration
from stages.fetcher.addresses import Address


def read_hosts_file(path: Path) -> dict[str, list[Address]]:
    """Names and their addresses."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise BadConfiguration(f"fetcher.hosts_file {path}: expected a hosts file, found {error}") from None
    hosts: dict[str, list[Address]] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            address = ip_address(words[0])
        except ValueError:
            raise BadConfiguration(
                f"fetcher.hosts_file {path} line {number}: expected an address, found {words[0]!r}"
            ) from None
        for name in words[1:]:
            hosts.setdefault(name.lower().rstrip("."), []).append(address)
    return hosts
