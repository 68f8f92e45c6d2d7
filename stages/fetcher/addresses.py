"""Which addresses may be asked: those of the public Internet, unless the configuration allows all."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
GLOBAL_UNICAST = IPv6Network("2000::/3")  # all that IANA has assigned for the public IPv6 Internet
TEREDO = IPv6Network("2001::/32")  # tunnels that carry an IPv4 address inside


def is_global(address: Address) -> bool:
    """Whether the address is public; an IPv4 address inside an IPv6 one is judged itself."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return is_global(inner)
        if address not in GLOBAL_UNICAST or address in TEREDO:
            return False
    return address.is_global and not (
        address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or address.is_loopback
        or address.is_link_local
    )


def kind_of(address: Address) -> str:
    """For people: what kind of address it is; is_global() decides."""
    inner = address.version == 6 and (address.ipv4_mapped or address.sixtofour)
    if inner:
        return f"{kind_of(inner)}, as {inner} inside an IPv6 address"
    if is_global(address):
        return "public"
    kinds = ("unspecified", "loopback", "link_local", "multicast", "reserved", "private")
    found = next((kind for kind in kinds if getattr(address, f"is_{kind}")), "not of the public Internet")
    return found.replace("_", "-")


def explain_forbidden(address: Address) -> str:
    """Why the address is not asked, and the setting that would allow it."""
    return f"{address} ({kind_of(address)}) is refused: set fetcher.allow_private_addresses = true to ask it"


def plain(address: Address) -> Address:
    """The IPv4 address where an IPv6 one only maps it, so that politeness treats both as one."""
    return getattr(address, "ipv4_mapped", None) or address


class Gate:
    """The judge of addresses: called when a name is resolved, and again when a socket is made."""

    def __init__(self, allow_private: bool):
        self._allow_private = allow_private

    def lets(self, address: Address) -> bool:
        return self._allow_private or is_global(address)

    def lets_text(self, text: str) -> bool:
        try:
            return self.lets(ip_address(text.partition("%")[0]))
        except ValueError:
            return False
