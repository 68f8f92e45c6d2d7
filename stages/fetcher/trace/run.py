"""One URL traced: looked up, judged, waited for and asked as in a crawl, with every step told; nothing is stored.

Resolver, Gate, Server, Politeness, Engine and Exchange decide, as in `download.py`; here they are called one after
another for one URL and asked what they did. What differs: nothing is known from before, no connection is kept, and a
failure is not tried again.
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
from stages.fetcher.trace.decisions import tell_addresses, tell_meaning, tell_pauses, tell_rules
from stages.fetcher.trace.printer import GREEN, RED, YELLOW, Account, tell_seconds
from stages.fetcher.trace.transcript import Wire, tell_answer

NOT_REACHED = "not_reached"  # no record is written: a later cycle asks
WAIT_S = 1.0  # for the engine, which wakes by itself
WHY_NONE = {
    OTHER_SCHEME: "its scheme is neither http nor https",
    UNPARSABLE: f"it is no URL, or one of more than {URL_MAX_BYTES:,} bytes",
}


class WatchedGate(Gate):
    """The judge of addresses, with its verdicts on record."""

    def __init__(self, allow_private: bool):
        super().__init__(allow_private)
        self.verdicts: dict[Address, bool] = {}

    def lets(self, address: Address) -> bool:
        self.verdicts[address] = verdict = super().lets(address)
        return verdict


class Settled(Exception):
    """What becomes of the URL is known before it is asked for."""

    def __init__(self, outcome: str, reason: str = "", message: str = ""):
        self.outcome, self.reason, self.message = outcome, reason, message


def trace(text: str, config: Config) -> int:
    """Prints what becomes of a URL, and why; the exit code."""
    require_contact(config.fetcher)
    account = Account(sys.stdout or io.StringIO())
    account.begin("URL")
    account.tell("as given", text)
    try:
        url = canonicalise(text)
    except NotCanonical as error:
        account.tell("canonical", f"none, {error.reason}: {WHY_NONE[error.reason]}", RED)
        return EX_USAGE
    run = Trace(url, config, account)
    try:
        return trio.run(run.run)
    finally:
        run.close()


class Trace:
    def __init__(self, url: str, config: Config, account: Account):
        self._url = url
        self._scope, self._config = config.scope, config.fetcher
        self._account = account
        self._keys = Keys(0)
        self._agent = user_agent(self._config)
        self._clock = Clock()
        self._ends_at_ms = self._clock.now_ms() + round(self._config.cycle_max_s * 1000)
        self._gate = WatchedGate(self._config.allow_private_addresses)
        self._resolver = Resolver(self._config, self._gate)
        self._politeness = Politeness(MemorySlots(), self._config)
        self._bodies = Bodies(Path(tempfile.gettempdir()), self._config.bodies_memory_max_bytes)
        self._wire = Wire(self._config.header_max_bytes)
        self._ended: list[Exchange] = []
        self._engine = Engine(self._config, 1, self._gate.lets_text, self._ended.append, self._wire.take)
        self._page_limits, self._robots_limits = limits_of(self._config)
        self._hosts: dict[str, HostWork] = {}
        self._home = self._host_of(url)
        self._server = Server(server_of(url), Known(), self._config)
        self._server.urls.append(url)
        self._home.add(self._server)
        self._last: Exchange | None = None  # that ended, with the URL's own host

    def close(self) -> None:
        self._engine.close()

    # An interrupt is raised where the trace waits, never inside of libcurl's callbacks.
    @trio.lowlevel.enable_ki_protection
    async def run(self) -> int:
        try:
            self._tell_url()
            await self._learn_rules()
            self._obey_rules()
            self._account.begin("pause")
            self._home.obey_late(self._server.delay_ms)
            tell_pauses(self._account, self._config, self._home, self._last)
            await self._await_turn(self._home)
            self._account.begin(f"page {self._url}")
            exchange = await self._ask(self._home, self._url, self._page_limits)
        except Settled as settled:
            return self._tell_end(settled.outcome, settled.reason, settled.message)
        self._tell_page(exchange)
        status = exchange.status if exchange.has_answer else 0
        return self._tell_end(exchange.outcome, exchange.reason, exchange.message, status)

    def _host_of(self, url: str) -> HostWork:
        name = host_of(server_of(url))
        return self._hosts.setdefault(name, HostWork(name))

    def _tell_url(self) -> None:
        tell = self._account.tell
        tell("canonical", self._url)
        tell("server", self._server.name)
        tell("host", self._home.name)
        tell("domain", self._keys.domain(self._home.name))
        reason = refuse_before([self._url], self._scope, self._keys).get(self._url, "")
        tell("scope", f"refused by scope.{reason}" if reason else "does not refuse it", RED if reason else "")
        if reason:
            raise Settled(REFUSED, reason, explain_refusal(self._url, reason))

    async def _look_up(self, host: HostWork) -> None:
        """Finds the addresses of a host, unless they are known and still hold; Settled where there are none."""
        now_ms = self._clock.now_ms()
        if host.addresses and host.expires_at_ms > now_ms:
            return
        self._account.begin(f"name {host.name}")
        self._account.tell("asked", self._resolver.tell_source(host.name))
        self._gate.verdicts.clear()
        found = await self._resolver.resolve(host.name, now_ms)
        host.dns_ms = self._clock.now_ms() - now_ms
        host.addresses, host.expires_at_ms = list(found.addresses), found.expires_at_ms
        tell_addresses(self._account, found, self._gate.verdicts, now_ms, host.dns_ms)
        if not found.addresses:
            if host is self._home and found.reason == FORBIDDEN_ADDRESS:
                raise Settled(REFUSED, found.reason, found.message)
            raise Settled(NOT_REACHED if self._server.needs_robots else FAILED, found.reason, found.message)

    async def _learn_rules(self) -> None:
        """Asks for robots.txt until its rules are known; Settled where they cannot be had."""
        server, hops = self._server, 0
        while server.needs_robots:
            url = server.robots_url
            host = self._host_of(url)
            await self._look_up(host)
            self._account.begin(
                f"robots.txt {url}" + (f" (redirect {hops} of at most {robots.REDIRECTS_MAX})" if hops else "")
            )
            await self._await_turn(host)
            exchange = await self._ask(host, url, self._robots_limits, robots_for=server.name)
            block = exchange.response_head() + exchange.body.whole() if exchange.has_answer else b""
            exchange.body.release()
            server.note_robots(url, exchange.outcome, block)
            tell_meaning(self._account, server, exchange)
            if server.is_left_alone:
                raise Settled(NOT_REACHED, exchange.reason, exchange.message)
            if not server.needs_robots:
                host.rest_at_least(server.delay_ms)
            self._rest(host, exchange)
            hops += 1

    def _obey_rules(self) -> None:
        self._account.begin("rules")
        tell_rules(self._account, self._server.rules, self._url)
        forbidden = self._server.pop_forbidden()
        self._account.tell("verdict", "forbidden" if forbidden else "allowed", RED if forbidden else GREEN)
        if forbidden:
            raise Settled(REFUSED, REASON_ROBOTS, forbidden[1])

    async def _await_turn(self, host: HostWork) -> None:
        """Waits until the host may be asked; Settled where that is too late."""
        while True:
            now_ms = self._clock.now_ms()
            self._politeness.admit(host, network_of(host.address), self._keys.domain(host.name), now_ms)
            wait_ms = max(0, host.due_at_ms - now_ms)
            if host.due_at_ms >= self._ends_at_ms:
                self._account.tell(
                    "waits", f"not: {tell_seconds(wait_ms)} are more than fetcher.cycle_max_s leaves", RED
                )
                raise Settled(NOT_REACHED)
            if wait_ms or not self._server.needs_robots:
                self._account.tell("waits", f"{tell_seconds(wait_ms)}, the rest of it{' ...' if wait_ms else ''}")
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
        self._wire.clear()
        self._engine.start(exchange)
        while not self._ended:
            await self._engine.wait(WAIT_S)
        self._ended.clear()
        tell_answer(self._account, self._wire, exchange, limits.body_max_bytes)
        if retry_after_s := exchange.retry_after_s(self._clock.now_ms()):
            self._account.tell("Retry-After", f"asks to be left alone for {retry_after_s:,} s")
        if host is self._home:
            self._last = exchange
        return exchange

    def _rest(self, host: HostWork, exchange: Exchange) -> None:
        """The rests that begin after a request, as in a crawl."""
        now_ms = self._clock.now_ms()
        if exchange.status in (429, 503):
            host.slow_down(now_ms, exchange.retry_after_s(now_ms), round(self._config.delay_s * 1000))
        elif exchange.outcome == ANSWERED:
            host.speed_up(now_ms)
        host.rested_since_ms = now_ms
        self._politeness.end(host, now_ms, exchange.times_ms["total"], has_more=False)

    def _tell_page(self, exchange: Exchange) -> None:
        self._rest(self._home, exchange)
        rest_ms = max(0, self._home.ready_at_ms - self._clock.now_ms())
        self._account.tell("rests", f"{tell_seconds(rest_ms)} before a crawl would ask this host again")
        if exchange.status in robots.REDIRECTS:
            target = robots.find_target(exchange.url, exchange.header(b"location"))
            self._account.tell(
                "leads to",
                f"{target}, which is not followed; to trace it: bin/fetcher --trace {shlex.quote(target)}"
                if target
                else "nowhere: its Location is no URL that is fetched",
            )
        exchange.body.release()

    def _tell_end(self, outcome: str, reason: str, message: str, status: int = 0) -> int:
        tell = self._account.tell
        self._account.begin("outcome")
        tell("outcome", outcome, {ANSWERED: GREEN, REFUSED: YELLOW}.get(outcome, RED))
        if status:
            tell("status", str(status))
        if reason:
            tell("reason", reason)
        if message:
            tell("message", message)
        if outcome == NOT_REACHED:
            tell("record", "none: the URL stays waiting, for it was never asked for")
        if outcome not in (FAILED, NOT_REACHED):
            return EX_OK
        if reason and reason not in TEMPORARY:
            tell("may pass", "not soon: this cycle would not ask again")
            return EX_DATAERR
        retries_max = self._config.retries_max if outcome == FAILED else 0
        tell(
            "may pass",
            "yes" + (f": this cycle would ask again, fetcher.retries_max = {retries_max}" if retries_max else ""),
        )
        return EX_TEMPFAIL
