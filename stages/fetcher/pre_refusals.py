"""URLs of a list that are not asked for at all, because the scope of the crawl leaves them out."""

from contract.config import Scope
from contract.url import Keys, extension_of, host_named, host_of, server_of
from stages.fetcher.reasons import REJECT_DOMAINS, REJECT_EXTENSIONS


def refuse_before(urls: list[str], scope: Scope, keys: Keys) -> dict[str, str]:
    """URL -> reason. The scope may have come to leave them out after they were listed."""
    domains = frozenset(host_named(name) for name in scope.reject_domains)
    servers = {server: keys.is_of(server, domains) for server in {server_of(url) for url in urls}} if domains else {}
    extensions = frozenset(text.strip().lstrip(".").lower() for text in scope.reject_extensions)
    refused = {}
    for url in urls:
        if servers and servers[server_of(url)]:
            refused[url] = REJECT_DOMAINS
        elif extension_of(url) in extensions:
            refused[url] = REJECT_EXTENSIONS
    return refused


def explain_refusal(url: str, reason: str) -> str:
    """Why refuse_before() left the URL out, in words."""
    what = f".{extension_of(url)}" if reason == REJECT_EXTENSIONS else host_of(server_of(url))
    return f"scope.{reason} leaves out {what}"
