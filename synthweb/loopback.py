"""Listening on every address of 127/8 with one socket, and on nothing else."""

import resource
import socket

NETWORK = "127."


def listen_on_loopback(port: int = 0, backlog: int = 1024) -> socket.socket:
    """A socket that takes connections to any address of 127/8. One bound to 0.0.0.0 does on Linux; bound to the
    loopback device as well (which Linux 5.7 and later allow to everybody), no other machine can reach it."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
        listener.bind(("0.0.0.0", port))
        listener.listen(backlog)
    except OSError:
        listener.close()
        raise
    return listener


def address_of(number: int, second: int) -> str:
    """The address of server `number` in 127.second/8 and up: 62,500 a second octet, none ends in 0 or 255."""
    upper, rest = divmod(number, 62_500)
    third, fourth = divmod(rest, 250)
    return f"127.{second + upper}.{third}.{fourth + 1}"


def allow_descriptors(wanted: int) -> None:
    """Ask for room for so many connections, where the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
