"""Traces one URL: looks it up, judges it, waits and asks as in a crawl, and prints every step. Nothing is stored.

Resolver, Gate, Server, Politeness, Engine and Exchange decide, as in `download.py`. Here they are called one after
another for one URL, and what they did is printed. Unlike in a crawl, nothing is known from before, no connection is
kept, and a failure is not tried again.
"""

import io
import shlex
import sys
import tempfile
from pathlib import Path

import trio

from contract import robots
from contract.config import Config, require_contact
from contract.errors import EX_DATAERR, EX_OK, EX_TEMPFAIL, EX_USAGE
from contract.tables import ANSWERED, FAILED, REASON_ROBOTS, REFUSED
from contract.url import OTHER_SCHEME, UNPARSABLE, URL_MAX_BYTES, Keys, NotCanonical, canonicalise, host_of, server_of
from stages.fetcher.addresses import Address, Gate
from stages.fetcher.bodies import Bodies
from stages.fetcher.engine import Engine
from stages.fetcher.exchange import Exchange, Limits, Origin, limits_of
from stages.fetcher.identity import user_agent
from stages.fetcher.politeness import Politeness
from stages.fetcher.pre_refusals import explain_refusal, refuse_before
from stages.fetcher.reasons import FORBIDDEN_ADDRESS, TEMPORARY
from stages.fetcher.resolver import Resolver
from stages.fetcher.server_queues import HostWork, Known, Server
from stages.fetcher.slots import MemorySlots, network_of
from stages.fetcher.stopping import Clock
from stages.fetcher.trace.decisions import print_addresses, print_meaning, print_pauses, print_rules
from stages.fetcher.trace.printer import GREEN, RED, YELLOW, Printer, describe_seconds
from stages.fetcher.trace.transcript import Transcript, print_exchange

NOT_REACHED = "not_reached"  # no record is written: a later cycle asks
WAIT_S = 1.0  # for the engine, which wakes by itself
WHY_NONE = {
    OTHER_SCHEME: "its scheme is neither http nor https",
    UNPARSABLE: f"it is no URL, or one of more than {URL_MAX_BYTES:,} bytes",
}


class WatchedGate(Gate):
    """The judge of addresses; keeps its verdicts."""

    def __init__(self, allow_private: bool):
        super().__init__(allow_private)
        self.verdicts: dict[Address, bool] = {}

    def lets(self, address: Address) -> bool:
        self.verdicts[address] = verdict = super().lets(address)
        return verdict


class Settled(Exception):
    """The outcome of the URL is known before it is asked for."""

    def __init__(self, outcome: str, reason: str = "", message: str = ""):
        self.outcome, self.reason, self.message = outcome, reason, message


def trace(text: str, config: Config) -> int:
    """Prints the outcome of a URL and every decision before it; returns the exit code."""
    require_contact(config.fetcher)
    printer = Printer(sys.stdout or io.StringIO())
    printer.begin("URL")
    printer.print_fact("as given", text)
    try:
        url = canonicalise(text)
    except NotCanonical as error:
        printer.print_fact("canonical", f"none, {error.reason}: {WHY_NONE[error.reason]}", RED)
        return EX_USAGE
    run = Trace(url, config, printer)
    try:
        return trio.run(run.run)
    finally:
        run.close()


class Trace:
    def __init__(self, url: str, config: Config, printer: Printer):
        self._url = url
        self._scope, self._config = config.scope, config.fetcher
        self._printer = printer
        self._keys = Keys(0)
        self._agent = user_agent(self._config)
        self._clock = Clock()
        self._ends_at_ms = self._clock.now_ms() + round(self._config.cycle_max_s * 1000)
        self._gate = WatchedGate(self._config.allow_private_addresses)
        self._resolver = Resolver(self._config, self._gate)
        self._politeness = Politeness(MemorySlots(), self._config)
        self._bodies = Bodies(Path(tempfile.gettempdir()), self._config.bodies_memory_max_bytes)
        self._transcript = Transcript(self._config.header_max_bytes)
        self._ended: list[Exchange] = []
        self._engine = Engine(self._config, 1, self._gate.lets_text, self._ended.append, self._transcript.take)
        self._page_limits, self._robots_limits = limits_of(self._config)
        self._hosts: dict[str, HostWork] = {}
        self._home = self._host_of(url)
        self._server = Server(server_of(url), Known(), self._config)
        self._server.urls.append(url)
        self._home.add(self._server)
        self._last: Exchange | None = None  # that ended, with the URL's own host

    def close(self) -> None:
        self._engine.close()

    # An interrupt is raised where the trace waits, never inside libcurl's callbacks.
    @trio.lowlevel.enable_ki_protection
    async def run(self) -> int:
        try:
            self._print_url()
            await self._learn_rules()
            self._obey_rules()
            self._printer.begin("pause")
            self._home.obey_late(self._server.delay_ms)
            print_pauses(self._printer, self._config, self._home, self._last)
            await self._await_turn(self._home)
            self._printer.begin(f"page {self._url}")
            exchange = await self._ask(self._home, self._url, self._page_limits)
        except Settled as settled:
            return self._print_end(settled.outcome, settled.reason, settled.message)
        self._print_page(exchange)
        status = exchange.status if exchange.has_answer else 0
        return self._print_end(exchange.outcome, exchange.reason, exchange.message, status)

    def _host_of(self, url: str) -> HostWork:
        name = host_of(server_of(url))
        return self._hosts.setdefault(name, HostWork(name))

    def _print_url(self) -> None:
        print_fact = self._printer.print_fact
        print_fact("canonical", self._url)
        print_fact("server", self._server.name)
        print_fact("host", self._home.name)
        print_fact("domain", self._keys.domain(self._home.name))
        reason = refuse_before([self._url], self._scope, self._keys).get(self._url, "")
        print_fact("scope", f"refused by scope.{reason}" if reason else "does not refuse it", RED if reason else "")
        if reason:
            raise Settled(REFUSED, reason, explain_refusal(self._url, reason))

    async def _look_up(self, host: HostWork) -> None:
        """Finds the addresses of a host, unless they are known and still hold; Settled where there are none."""
        now_ms = self._clock.now_ms()
        if host.addresses and host.expires_at_ms > now_ms:
            return
        self._printer.begin(f"name {host.name}")
        self._printer.print_fact("asked", self._resolver.describe_source(host.name))
        self._gate.verdicts.clear()
        found = await self._resolver.resolve(host.name, now_ms)
        host.dns_ms = self._clock.now_ms() - now_ms
        host.addresses, host.expires_at_ms = list(found.addresses), found.expires_at_ms
        print_addresses(self._printer, found, self._gate.verdicts, now_ms, host.dns_ms)
        if not found.addresses:
            if host is self._home and found.reason == FORBIDDEN_ADDRESS:
                raise Settled(REFUSED, found.reason, found.message)
            raise Settled(NOT_REACHED if self._server.needs_robots else FAILED, found.reason, found.message)

    async def _learn_rules(self) -> None:
        """Asks for robots.txt until its rules are known; Settled where they cannot be fetched."""
        server, hops = self._server, 0
        while server.needs_robots:
            url = server.robots_url
            host = self._host_of(url)
            await self._look_up(host)
            self._printer.begin(
                f"robots.txt {url}" + (f" (redirect {hops} of at most {robots.REDIRECTS_MAX})" if hops else "")
            )
            await self._await_turn(host)
            exchange = await self._ask(host, url, self._robots_limits, robots_for=server.name)
            block = exchange.response_head() + exchange.body.whole() if exchange.has_answer else b""
            exchange.body.release()
            server.note_robots(url, exchange.outcome, block)
            print_meaning(self._printer, server, exchange)
            if server.is_left_alone:
                raise Settled(NOT_REACHED, exchange.reason, exchange.message)
            if not server.needs_robots:
                host.rest_at_least(server.delay_ms)
            self._rest(host, exchange)
            hops += 1

    def _obey_rules(self) -> None:
        self._printer.begin("rules")
        print_rules(self._printer, self._server.rules, self._url)
        forbidden = self._server.pop_forbidden()
        self._printer.print_fact("verdict", "forbidden" if forbidden else "allowed", RED if forbidden else GREEN)
        if forbidden:
            raise Settled(REFUSED, REASON_ROBOTS, forbidden[1])

    async def _await_turn(self, host: HostWork) -> None:
        """Waits until the host may be asked; Settled where that is too late."""
        while True:
            now_ms = self._clock.now_ms()
            self._politeness.admit(host, network_of(host.address), self._keys.domain(host.name), now_ms)
            wait_ms = max(0, host.due_at_ms - now_ms)
            if host.due_at_ms >= self._ends_at_ms:
                self._printer.print_fact(
                    "waits", f"not: {describe_seconds(wait_ms)} are more than fetcher.cycle_max_s leaves", RED
                )
                raise Settled(NOT_REACHED)
            if wait_ms or not self._server.needs_robots:
                self._printer.print_fact(
                    "waits", f"{describe_seconds(wait_ms)}, the rest of it{' ...' if wait_ms else ''}"
                )
            while self._politeness.take(now_ms := self._clock.now_ms()) is None:
                await trio.sleep(max(0, self._politeness.next_at() - now_ms) / 1000)
            if host.expires_at_ms > now_ms:
                return
            self._politeness.leave(host, now_ms, has_more=False)
            await self._look_up(host)  # its addresses hold no longer

    async def _ask(self, host: HostWork, url: str, limits: Limits, robots_for: str = "") -> Exchange:
        exchange = Exchange(
            Origin(server_of(url), str(host.address), self._agent), url, limits, self._bodies, robots_for=robots_for
        )
        exchange.started_at_ms = self._clock.now_ms()
        exchange.times_ms["dns"], host.dns_ms = host.dns_ms, 0
        self._transcript.clear()
        self._engine.start(exchange)
        while not self._ended:
            await self._engine.wait(WAIT_S)
        self._ended.clear()
        print_exchange(self._printer, self._transcript, exchange, limits.body_max_bytes)
        if retry_after_s := exchange.retry_after_s(self._clock.now_ms()):
            self._printer.print_fact("Retry-After", f"asks to be left alone for {retry_after_s:,} s")
        if host is self._home:
            self._last = exchange
        return exchange

    def _rest(self, host: HostWork, exchange: Exchange) -> None:
        """Begins the rests after a request, as in a crawl."""
        now_ms = self._clock.now_ms()
        host.note_end(exchange, now_ms, self._config)
        host.rested_since_ms = now_ms
        self._politeness.end(host, now_ms, exchange.times_ms["total"], has_more=False)

    def _print_page(self, exchange: Exchange) -> None:
        self._rest(self._home, exchange)
        rest_ms = max(0, self._home.ready_at_ms - self._clock.now_ms())
        self._printer.print_fact("rests", f"{describe_seconds(rest_ms)} before a crawl would ask this host again")
        if exchange.status in robots.REDIRECTS:
            target = robots.find_target(exchange.url, exchange.header(b"location"))
            self._printer.print_fact(
                "leads to",
                f"{target}, which is not followed; to trace it: bin/fetcher --trace {shlex.quote(target)}"
                if target
                else "nowhere: its Location is no URL that is fetched",
            )
        exchange.body.release()

    def _print_end(self, outcome: str, reason: str, message: str, status: int = 0) -> int:
        print_fact = self._printer.print_fact
        self._printer.begin("outcome")
        print_fact("outcome", outcome, {ANSWERED: GREEN, REFUSED: YELLOW}.get(outcome, RED))
        if status:
            print_fact("status", str(status))
        if reason:
            print_fact("reason", reason)
        if message:
            print_fact("message", message)
        if outcome == NOT_REACHED:
            print_fact("record", "none: the URL stays waiting, for it was never asked for")
        if outcome not in (FAILED, NOT_REACHED):
            return EX_OK
        if reason and reason not in TEMPORARY:
            print_fact("may pass", "not soon: this cycle would not ask again")
            return EX_DATAERR
        retries_max = self._config.retries_max if outcome == FAILED else 0
        print_fact(
            "may pass",
            "yes" + (f": this cycle would ask again, fetcher.retries_max = {retries_max}" if retries_max else ""),
        )
        return EX_TEMPFAIL
