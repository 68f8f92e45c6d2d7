"""How the fetcher names itself to servers: the User-Agent, checked so that it can be no other header."""

import re
from importlib.metadata import PackageNotFoundError, version

from contract.config import Fetcher
from contract.errors import BadConfiguration

_AGENT = re.compile(r"[A-Za-z0-9_.-]+")  # a product token of RFC 9110 that robots.txt can name
_CONTACT = re.compile(r"[!-'*-~]*")  # no blanks, and no brackets that would end the comment


def find_version() -> str:
    try:
        return version("coletor")
    except PackageNotFoundError:
        return "0.1"  # run from a checkout


def user_agent(config: Fetcher) -> str:
    if not _AGENT.fullmatch(config.agent):
        raise BadConfiguration(f"fetcher.agent: expected a name of letters, digits and _.-, found {config.agent!r}")
    if not _CONTACT.fullmatch(config.contact):
        raise BadConfiguration(f"fetcher.contact: expected a URL or an address without blanks, found {config.contact!r}")
    name = f"{config.agent}/{find_version()}"
    return f"{name} (+{config.contact})" if config.contact else name
