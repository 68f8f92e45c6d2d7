"""The User-Agent; contract/config.py makes sure that its parts cannot add another header."""

from importlib.metadata import PackageNotFoundError, version

from contract.config import Fetcher


def find_version() -> str:
    try:
        return version("coletor")
    except PackageNotFoundError:
        return "0.1"  # run from a checkout


def user_agent(config: Fetcher) -> str:
    name = f"{config.agent}/{find_version()}"
    return f"{name} (+{config.contact})" if config.contact else name
