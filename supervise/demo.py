"""The demonstration: a web of 300 servers on loopback, crawled to its end."""

import fcntl
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from contract import config_file, names
from contract.crawl_folder import create
from contract.errors import EX_TEMPFAIL, Locked, TryLater
from contract.lines import say_if_possible
from contract.log import KINDS, describe_commits, replay
from contract.units import count, duration, size
from storage.publish import put, read_manifest
from supervise.crawl import run_cycles
from supervise.demo_profile import choose_folder, combine, read_profile, require_same
from supervise.pipeline import Limits
from supervise.seed import leave
from supervise.session import Session

FOLDER = Path("demo")
WEB_SEED = 1
WEB_SERVERS = 300
READY_WITHIN_S = 30.0

# Quick, because it crawls loopback. The result is exact: traps are cut by the URL alone, so order does not matter.
SETTINGS = """\
# The demonstration's configuration: loopback only, short waits, traps cut by the URL alone.
[blocks]
first = 2
servers_max = 140

[scheduler]
server_max_urls = 500

[fetcher]
agent = "coletor"
contact = "mailto:nobody@localhost"
transfers_max = 100
delay_s = 0.01
total_timeout_s = 10.0
hosts_file = "{hosts}"
allow_private_addresses = true
server_failures_max = 3

[scope]
accept_suffixes = ["test"]
url_length_max = 200
path_depth_max = 8
segment_repeats_max = 2

[verifier]
server_backoff_s = 0.1
server_backoffs_max = 1
"""


def run(arguments) -> int:
    profile = read_profile(arguments.config) if arguments.config else None
    folder = choose_folder(FOLDER, profile.file) if profile else FOLDER
    content = SETTINGS.format(hosts="web/hosts")
    crawl, web, settings = folder / "crawl", folder / "web", folder / "pipeline.toml"
    web.mkdir(parents=True, exist_ok=True)
    hold_folder(folder)
    resume = f"bin/{names.DEMO_COMMAND}"
    if profile:
        content = combine(content, profile)
        if settings.exists():
            require_same(settings, content, profile)
        resume += f" --config {shlex.quote(str(profile.file))}"
        for line in [] if arguments.quiet else profile.describe():
            say_if_possible(line, sys.stderr)
    put(settings, content.encode())
    began = time.monotonic()
    server = start_web(web)
    try:
        ready = json.loads((web / "ready.json").read_bytes())
        if not (crawl / names.CRAWL_FILE).exists():
            create(crawl, config_file.load(settings, arguments.set).blocks.first, config=config_file.load(settings))
            leave(crawl, ready["seeds"])
        if not arguments.quiet:
            say_if_possible(
                f"a web of {count(ready['servers'], 'server')} listens on loopback, port {ready['port']}; "
                f"crawling it into {crawl} (stop with Ctrl-C; the same command resumes)",
                sys.stderr,
            )
        arguments.crawl, arguments.config, arguments.yes = crawl, settings, True  # the folder may have been moved
        session = Session(arguments, names.DEMO_COMMAND)
        code = session.run(lambda ring: run_cycles(ring, Limits(until_done=True)))
    finally:
        server.stdin.close()
        server.wait()
    if session.stopped:
        say_if_possible(f"interrupted; {resume} resumes it", sys.stderr)
        return EX_TEMPFAIL
    print_result(session, folder, crawl, time.monotonic() - began)
    return code


def hold_folder(folder: Path) -> None:
    """Keeps other demonstrations out of the folder until this process ends: they would start the web on its port."""
    try:
        fcntl.flock(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Locked(
            f"a demonstration is running in {folder.resolve()} already: wait until it has ended, or start another "
            "one in another folder"
        ) from None


def start_web(state: Path) -> subprocess.Popen:
    """Starts synthweb on the port that this demonstration had before, or on a free one; it ends with this process."""
    ready, kept_port = state / "ready.json", state / "port"
    port = int(kept_port.read_text()) if kept_port.exists() else 0  # URLs of a resumed demonstration contain it
    ready.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-P",
        "-m",
        "synthweb",
        "serve",
        "--seed",
        str(WEB_SEED),
        "--servers",
        str(WEB_SERVERS),
        "--port",
        str(port),
        "--state",
        str(state),
        "--until-eof",
    ]
    errors_file = state / "said.txt"
    with open(errors_file, "w") as errors:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=errors, start_new_session=True)
    deadline = time.monotonic() + READY_WITHIN_S
    while not ready.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            server.wait()
            raise TryLater(
                f"the demonstration's web did not start: {errors_file.read_text().strip() or 'it printed nothing'}"
            )
        time.sleep(0.02)
    kept_port.write_text(str(json.loads(ready.read_bytes())["port"]))
    return server


def print_result(session: Session, folder: Path, crawl: Path, seconds: float) -> None:
    if session.quiet:
        return
    log = replay(crawl, session.crawl.blocks_first)
    session.show(f"\n{session.word}")
    cycles = [entry.cycle for entry in log.entries if entry and KINDS[entry.kind].fetches]
    if not cycles:
        return
    counts = {cycle: read_manifest(crawl / names.cycle(cycle) / names.FETCHER)["counts"] for cycle in cycles}
    total = {name: sum(count[name] for count in counts.values()) for name in ("answered", "bytes", "failed", "refused")}
    session.say(
        f"{count(total['answered'], 'page')} ({size(total['bytes'])}) in {count(len(cycles), 'cycle')}, "
        f"{count(total['failed'], 'failed attempt')}, {total['refused']:,} refused by robots.txt; "
        f"{count(log.blocks, 'block')}, {describe_commits(log.length, log.kinds)}; "
        f"this run: {count(session.flights.counts.cycles, 'cycle')}, {duration(seconds)}"
    )
    session.show(f"(remove {folder}/ to begin anew)")
    richest = crawl / names.cycle(max(cycles, key=lambda cycle: counts[cycle]["answered"]))
    files = {
        crawl / names.LOG: "one small file per commit: the only truth",
        richest / names.FETCHER: "pages, as WARC records",
        richest / names.EXTRACTOR: "tables of URLs, metadata and links, as Parquet",
        crawl / names.GENERATIONS: "every known URL, by block",
        folder / "web" / "access.jsonl": "what the web's own servers saw",
    }
    width = max(len(str(path)) for path in files)
    session.show("\nwhat lies where")
    for path, meaning in files.items():
        session.show(f"  {str(path):<{width}}  {meaning}")
    session.show(f"""
try next
  bin/status --crawl {crawl}
  bin/check --crawl {crawl}
  bin/show {richest / names.EXTRACTOR / names.METADATA}
  bin/show {richest / names.FETCHER / names.PAGES}/00000.warc.zst
  bin/seed --crawl mine --set fetcher.contact=https://your.site/crawler https://your.site/
  bin/run-cycle --crawl mine""")
