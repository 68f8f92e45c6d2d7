"""On what grounds a trace's decisions were taken: addresses, what robots.txt means, its rules, the pause. Told, not taken, here."""

from contract import robots
from contract.config import Fetcher
from contract.robots import Rules
from stages.fetcher.addresses import Address, kind_of, plain
from stages.fetcher.exchange import Exchange
from stages.fetcher.resolver import FOREVER_MS, Found
from stages.fetcher.server_queues import HostWork, Server
from stages.fetcher.trace.printer import RED, Account, tell_seconds

SHOWN_MAX = 20  # addresses of a name, sitemaps of a server


def tell_addresses(account: Account, found: Found, verdicts: dict[Address, bool], now_ms: int, took_ms: int) -> None:
    """The answer of a look-up, and the gate's verdict on each address in it."""
    told = f"{len(verdicts)} address{'es' * (len(verdicts) != 1)}" if verdicts else f"no address: {found.reason}"
    is_fixed = found.expires_at_ms >= FOREVER_MS
    life = (
        "for as long as we run"
        if is_fixed
        else f"for {(found.expires_at_ms - now_ms) // 1000:,} s, by its time to live"
    )
    account.tell("answer", f"{told}, after {took_ms} ms; holds {life}", "" if verdicts else RED)
    for address, is_allowed in list(verdicts.items())[:SHOWN_MAX]:
        kind = kind_of(address)
        if is_allowed:
            verdict = "allowed" if kind.startswith("public") else f"allowed by fetcher.allow_private_addresses: {kind}"
            account.tell("", f"{address}  {verdict}{'; taken' * (plain(address) == found.addresses[0])}")
        else:
            account.tell("", f"{address}  forbidden: {kind} (fetcher.allow_private_addresses is not set)", RED)
    tell_more(account, len(verdicts))


def tell_meaning(account: Account, server: Server, exchange: Exchange) -> None:
    """What follows from an exchange for robots.txt, of which the server has taken note."""
    if server.is_left_alone:
        account.tell("means", "cannot be had: nothing of this server may be asked for now (RFC 9309 2.3.1.4)", RED)
        return
    if server.needs_robots:
        meaning = f"moved: asked for at {server.robots_url} (RFC 9309 2.3.1.2)"
    elif 200 <= exchange.status < 300:
        meaning = "these are the rules (RFC 9309 2.3.1.1)"
    elif exchange.status in robots.REDIRECTS:
        meaning = (
            f"leads nowhere, or further than {robots.REDIRECTS_MAX} redirects: everything is allowed (RFC 9309 2.3.1.2)"
        )
    else:
        meaning = "there is none: everything is allowed (RFC 9309 2.3.1.3)"
    account.tell("means", meaning)


def tell_rules(account: Account, rules: Rules, url: str) -> None:
    account.tell("group", f"user-agent {rules.group}")
    account.tell("crawl-delay", f"{rules.delay_s:g} s" if rules.delay_s else "none")
    for number, sitemap in enumerate(rules.sitemaps[:SHOWN_MAX]):
        account.tell("" if number else "sitemaps", sitemap)
    tell_more(account, len(rules.sitemaps))
    account.tell("decided by", rules.rule_for(url))


def tell_pauses(account: Account, config: Fetcher, host: HostWork, last: Exchange) -> None:
    """What counts for the pause after the host's last exchange; how long it is, politeness says."""
    factor = config.delay_response_factor
    pauses_ms = {
        f"fetcher.delay_s, by {' and '.join(config.delay_scope) or 'nothing'}": config.delay_s * 1000,
        f"last response time x {factor:g}, fetcher.delay_response_factor": last.times_ms["total"] * factor,
        "crawl-delay of robots.txt": float(host.pause_ms),
    }
    longest = max(pauses_ms, key=pauses_ms.get)
    for why, pause_ms in pauses_ms.items():
        account.tell(tell_seconds(pause_ms), why + "  <- the longest" * (why == longest and pause_ms > 0))


def tell_more(account: Account, number: int) -> None:
    if number > SHOWN_MAX:
        account.tell("", f"... ({number - SHOWN_MAX:,} more)")
