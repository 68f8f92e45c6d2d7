"""Which servers keep a connection between their requests: few per address, so that no address is crowded."""

from stages.fetcher.politeness import Rest
from stages.fetcher.server_queues import HostWork, Server

KEEP_MAX_MS = 60_000  # a connection is not kept for a longer pause: servers close theirs by then


class KeptConnections:
    def __init__(self, connections_per_address_max: int):
        self._kept_max = connections_per_address_max - 1  # beside the one that is in use
        self._keepers: dict[Rest, set[str]] = {}  # address -> servers that keep a connection to it

    def may_keep(self, host: HostWork, server: Server) -> bool:
        """Whether the connection is kept: if the next request comes soon, and the address has room for one more."""
        keepers = self._keepers.setdefault(host.address_rest, set())
        if not server.urls or server.drops_connections or server.is_on_probation or host.pause_ms > KEEP_MAX_MS:
            keepers.discard(server.name)
        elif len(keepers) < self._kept_max:
            keepers.add(server.name)
        return server.name in keepers
