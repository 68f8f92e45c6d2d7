"""Weeks of continuous crawling of a site that forgets its news: the crawl forgets them too, and nothing else."""

import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from contract import names
from contract.log import FORGET, replay
from contract.tables import FORGOTTEN, METADATA
from storage.tables import read_table
from synthweb.changing import DAY_MS, START_MS
from tests.pipeline.judge import run
from tests.pipeline.virtual_days import VirtualCrawl

HOST, STEP_DAYS, DAYS, STEPS = "news.test", 4, 12, 8


class NewsSite:
    """Its front page links to the news of the day, and to a page that never changes and has a link of its own."""

    def __init__(self, state: Path):
        self.state, self.port = state, 0
        (state / "access.jsonl").touch()
        (state / "hosts").write_text(f"127.0.0.1 {HOST}\n")

    def url(self, target: str) -> str:
        return f"http://{HOST}:{self.port}{target}"

    def seeds(self) -> list[str]:
        return [self.url("/")]

    def day(self) -> int:
        return (int((self.state / "clock").read_text()) - START_MS) // DAY_MS

    def page(self, target: str) -> tuple[int, str, str]:
        """(status, ETag, body)."""
        if target == "/":
            return 200, "", f"<a href=/steady>s</a> <a href=/news/{self.day()}>n</a> <p>day {self.day()}"
        if target == "/steady":
            return 200, '"steady"', "<a href=/kept>k</a>"
        is_page = target == "/kept" or re.fullmatch("/news/[0-9]+", target)
        return (200, f'"{target}"', f"<p>{target}") if is_page else (404, "", "")


@contextmanager
def served(site: NewsSite):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, etag, body = site.page(self.path)
            status = 304 if etag and self.headers.get("If-None-Match") == etag else status
            self.send_response(status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(0 if status == 304 else len(body)))
            self.send_header("ETag", etag)
            self.end_headers()
            self.wfile.write(b"" if status == 304 else body.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield site
    server.shutdown()
    server.server_close()


@pytest.mark.long
@pytest.mark.waits
def test_news_are_forgotten_and_what_an_unchanged_page_links_to_is_not(tmp_path, libfaketime):
    (tmp_path / "web").mkdir()
    settings = ("revisit.policy=uniform", f"revisit.interval_s={STEP_DAYS * 86_400 - 3_600}")
    settings += (f"revisit.forget_after_days={DAYS}", "scheduler.policy=breadth-first")
    with served(NewsSite(tmp_path / "web")) as site:
        crawl = VirtualCrawl(tmp_path / "crawl", site.state, site, libfaketime, STEP_DAYS * DAY_MS, *settings)
        crawl.live(STEPS)
    crawl.check()
    entries = [entry for entry in replay(crawl.path, 1).entries if entry is not None]
    forgotten = [
        url
        for entry in entries
        if entry.kind == FORGET
        for url in read_table(crawl.path / names.cycle(entry.cycle) / names.VERIFIER / names.FORGOTTEN, FORGOTTEN)
        .column("url")
        .to_pylist()
    ]
    last_day = (STEPS - 1) * STEP_DAYS
    old = {site.url(f"/news/{day}") for day in range(0, last_day - DAYS, STEP_DAYS)}
    assert old and set(forgotten) == old and len(forgotten) == len(old), crawl.told()
    why = run("why", "--crawl", crawl.path, site.url("/news/0"))
    assert "forgotten: by cycle" in why.stdout and "it was collected" in why.stdout, why.stdout + why.stderr
    for target in ("/steady", "/kept", f"/news/{last_day - STEP_DAYS}"):
        assert "collected: in cycle" in run("why", "--crawl", crawl.path, site.url(target)).stdout, target
    visits = [
        row["status"]
        for entry in entries
        if entry.fetches
        for row in read_table(
            crawl.path / names.cycle(entry.cycle) / names.EXTRACTOR / names.METADATA, METADATA
        ).to_pylist()
        if row["url"] == site.url("/steady")
    ]
    assert visits.count(304) >= 2 and visits.count(200) >= 3, "asked in full once in half of the time"
