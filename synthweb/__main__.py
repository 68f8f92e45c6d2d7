"""Serves a web made from a seed on loopback, and tells what a correct crawl of it collects.

    python -m synthweb serve --seed 1 --servers 300 --port 8080 --state DIR [--until-eof]
    python -m synthweb seeds --seed 1 --servers 300 --port 8080
    python -m synthweb truth --seed 1 --servers 300 --port 8080 [--forbidden]
    python -m synthweb census --seed 1 --servers 300
    python -m synthweb changing --seed 1 --servers 6 --pages 20 --port 8080 --state DIR [--sitemaps] [--until-eof]
    python -m synthweb names HOSTS_FILE | hostile --state DIR | latency --state DIR    (each has its --help)

serve   listens on addresses of its own in 127/8, all on one port (0: any that is free), until SIGTERM, SIGINT
        or, with --until-eof, the end of standard input. It keeps in DIR:
          hosts         address and names, in the form of hosts(5)
          ready.json    port, pid, servers, seeds; there exactly while it listens
          access.jsonl  one line per request: started_ms, ended_ms (monotonic), started_wall_ms, address, host,
                        target, status (0: closed without an answer), user_agent
seeds   prints the URLs to begin with, one per line.
truth   prints the URLs that a crawl by the default rules must collect, sorted, one per line; with --forbidden
        those that it finds linked and robots.txt forbids to `coletor`.
census  prints what the web consists of, a name and a count per line.
changing
        serves, as `serve` does, another web: so many servers with so many pages each, which change at known rates,
        at the moment that the file DIR/clock has (milliseconds since 1970; replace it to let time pass). Answers have
        validators, and conditions are obeyed. started_wall_ms of access.jsonl is that moment. With --sitemaps, each
        server has a /sitemap.xml with the time of each page's last change; one server in three lies there.
names   is a name server for a hosts file; hostile serves every bad manner that a crawler must survive; latency is
        thousands of servers that each take their time.

The same seed and number of servers always give the same web, byte for byte.

Example, a web of 40 servers and its truth:
    python -m synthweb serve --seed 7 --servers 40 --port 8080 --state web-state &
    python -m synthweb truth --seed 7 --servers 40 --port 8080 | wc -l

Exit codes: 0 done, 64 usage, 75 the port is in use, 78 the addresses cannot be listened on.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

import trio

from synthweb import rehearsals
from synthweb.changing_web import SERVERS_MAX as CHANGING_MAX
from synthweb.changing_web import ChangingWeb
from synthweb.listener import PortInUse, serve
from synthweb.plan import SERVERS_MAX, SERVERS_MIN
from synthweb.web import Web

EXIT_USAGE, EXIT_TRY_LATER, EXIT_CONFIGURATION = 64, 75, 78


class Parser(argparse.ArgumentParser):
    def format_help(self) -> str:
        return self.get_default("describe")() if self.get_default("describe") else __doc__

    def error(self, message: str):
        print(f"synthweb: {message}; see python -m synthweb --help", file=sys.stderr)
        sys.exit(EXIT_USAGE)


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="synthweb")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name in ("serve", "seeds", "truth", "census"):
        command = commands.add_parser(name)
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--servers", type=int, default=300)
        command.add_argument("--port", type=int, default=8080)
        if name == "serve":
            command.add_argument("--state", type=Path, required=True)
            command.add_argument("--until-eof", action="store_true")
        if name == "truth":
            command.add_argument("--forbidden", action="store_true")
    changing = commands.add_parser("changing")
    for name, default in (("seed", 1), ("servers", 6), ("pages", 20), ("port", 8080)):
        changing.add_argument(f"--{name}", type=int, default=default)
    changing.add_argument("--state", type=Path, required=True)
    changing.add_argument("--until-eof", action="store_true")
    changing.add_argument("--sitemaps", action="store_true")
    rehearsals.add_commands(commands)
    options = parser.parse_args(arguments)
    if options.command in rehearsals.COMMANDS:
        return options
    port_min = 0 if options.command in ("serve", "changing") else 1
    if not port_min <= options.port <= 65_535:
        parser.error(f"--port: expected {port_min} to 65535, found {options.port}")
    least, most = (1, CHANGING_MAX) if options.command == "changing" else (SERVERS_MIN, SERVERS_MAX)
    if not least <= options.servers <= most:
        parser.error(f"--servers: expected {least} to {most}, found {options.servers}")
    if options.command == "changing" and options.pages < 1:
        parser.error(f"--pages: expected 1 or more, found {options.pages}")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    if options.command in rehearsals.COMMANDS:
        return rehearsals.COMMANDS[options.command](options)
    if options.command == "changing":
        changing = ChangingWeb(
            options.seed, options.servers, options.pages, options.port, options.state, options.sitemaps
        )
        return _serve(changing, options)
    web = Web(options.seed, options.servers, options.port)
    if options.command == "serve":
        return _serve(web, options)
    if options.command == "seeds":
        lines = web.seeds()
    elif options.command == "truth":
        lines = sorted(web.forbidden() if options.forbidden else web.truth())
    else:
        lines = [f"{name} {count}" for name, count in sorted(web.census().items())]
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at its end
    return 0


def _serve(web: Web | ChangingWeb, options: argparse.Namespace) -> int:
    code = 0
    try:
        trio.run(_serve_until_told, web, options.state, options.until_eof)
    except* PortInUse as busy:
        print(f"synthweb: cannot serve: {busy.exceptions[0].strerror}.", file=sys.stderr)
        code = EXIT_TRY_LATER
    except* OSError as failed:
        print(f"synthweb: cannot serve: {failed.exceptions[0]}.", file=sys.stderr)
        code = EXIT_CONFIGURATION
    return code


async def _serve_until_told(web: Web | ChangingWeb, state_dir: Path, until_eof: bool) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            served = await nursery.start(serve, web, state_dir)
            print(f"synthweb: {len(served.servers)} servers on port {served.port}, pid {os.getpid()}", file=sys.stderr)
            if until_eof:
                nursery.start_soon(_cancel_at_eof, nursery.cancel_scope)
            async for _ in signals:
                nursery.cancel_scope.cancel()
                break


async def _cancel_at_eof(scope: trio.CancelScope) -> None:
    # os.read in a thread, not a non-blocking descriptor: that flag would be shared with the parent's end.
    while await trio.to_thread.run_sync(os.read, 0, 4096, abandon_on_cancel=True):
        pass
    scope.cancel()


if __name__ == "__main__":
    sys.exit(main())
