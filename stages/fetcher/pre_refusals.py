"""URLs of a list that are not asked for at all, because the scope of the crawl leaves them out."""

from contract.config import Scope
from contract.scope import rules
from contract.url import Keys, extension_of, host_of, server_of
from stages.fetcher.reasons import REJECT_EXTENSIONS


def refuse_before(urls: list[str], scope: Scope, keys: Keys) -> dict[str, str]:
    """URL -> reason. The scope may have come to leave them out after they were listed."""
    judge = rules.Scope(scope, keys).judge_listed
    return {url: rule for url in urls if (rule := judge(url))}


def explain_refusal(url: str, reason: str) -> str:
    """Why refuse_before() left the URL out, in words."""
    what = f".{extension_of(url)}" if reason == REJECT_EXTENSIONS else host_of(server_of(url))
    return f"scope.{reason} leaves out {what}"
