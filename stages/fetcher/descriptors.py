"""The limit on open files, which bounds the connections that a process can hold."""

import resource

from stages.fetcher.stopping import say

DESCRIPTORS_SPARE = 128  # for our files, some bodies on disk, trio, name look-ups, the supervisor's pipes, libcurl


def allow_connections(connections_max: int, bodies_max: int = 0) -> int:
    """Raises the limit on open files as far as allowed; returns how many connections it leaves room for.

    The limit includes bodies, which may all be on disk at once. But no connection is given up for them: few ever are.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections_max + bodies_max + DESCRIPTORS_SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = connections_max if soft == resource.RLIM_INFINITY else soft - DESCRIPTORS_SPARE
    if room < connections_max:
        say(
            f"the limit on open files leaves room for {room} connections, not fetcher.connections_max = "
            f"{connections_max}: `ulimit -n {connections_max + 1000}` raises it where the system allows"
        )
    return max(1, min(connections_max, room))
