"""Prints the reasons for each decision of a trace: addresses, robots.txt, its rules, the pause. Decides nothing."""

from contract import robots
from contract.config import Fetcher
from contract.pause import explain_pauses
from contract.robots import Rules
from stages.fetcher.addresses import Address, kind_of, plain
from stages.fetcher.exchange import Exchange
from stages.fetcher.resolver import FOREVER_MS, Found
from stages.fetcher.server_queues import HostWork, Server
from stages.fetcher.trace.printer import RED, Printer, describe_seconds

SHOWN_MAX = 20  # addresses of a name, sitemaps of a server


def print_addresses(printer: Printer, found: Found, verdicts: dict[Address, bool], now_ms: int, took_ms: int) -> None:
    """Prints the answer of a look-up, and the gate's verdict on each address in it."""
    answer = f"{len(verdicts)} address{'es' * (len(verdicts) != 1)}" if verdicts else f"no address: {found.reason}"
    is_fixed = found.expires_at_ms >= FOREVER_MS
    life = (
        "for as long as we run"
        if is_fixed
        else f"for {(found.expires_at_ms - now_ms) // 1000:,} s, by its time to live"
    )
    printer.print_fact("answer", f"{answer}, after {took_ms} ms; holds {life}", "" if verdicts else RED)
    for address, is_allowed in list(verdicts.items())[:SHOWN_MAX]:
        kind = kind_of(address)
        if is_allowed:
            verdict = "allowed" if kind.startswith("public") else f"allowed by fetcher.allow_private_addresses: {kind}"
            printer.print_fact("", f"{address}  {verdict}{'; taken' * (plain(address) == found.addresses[0])}")
        else:
            printer.print_fact("", f"{address}  forbidden: {kind} (fetcher.allow_private_addresses is not set)", RED)
    print_more(printer, len(verdicts))


def print_meaning(printer: Printer, server: Server, exchange: Exchange) -> None:
    """Prints what follows from an exchange for robots.txt; the server has noted it already."""
    if server.is_left_alone:
        printer.print_fact(
            "means", "cannot be fetched: nothing of this server may be asked for now (RFC 9309 2.3.1.4)", RED
        )
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
    printer.print_fact("means", meaning)


def print_rules(printer: Printer, rules: Rules, url: str) -> None:
    printer.print_fact("group", f"user-agent {rules.group}")
    printer.print_fact("crawl-delay", f"{rules.delay_s:g} s" if rules.delay_s else "none")
    for number, sitemap in enumerate(rules.sitemaps[:SHOWN_MAX]):
        printer.print_fact("" if number else "sitemaps", sitemap)
    print_more(printer, len(rules.sitemaps))
    printer.print_fact("decided by", rules.rule_for(url))


def print_pauses(printer: Printer, config: Fetcher, host: HostWork, last: Exchange) -> None:
    """Prints the rules for the pause after the host's last exchange; politeness says when it is over."""
    pauses_ms = explain_pauses(config, host.pause_ms, last.times_ms["total"])
    longest = max(pauses_ms, key=pauses_ms.get)
    for why, pause_ms in pauses_ms.items():
        printer.print_fact(describe_seconds(pause_ms), why + "  <- the longest" * (why == longest and pause_ms > 0))


def print_more(printer: Printer, number: int) -> None:
    if number > SHOWN_MAX:
        printer.print_fact("", f"... ({number - SHOWN_MAX:,} more)")
