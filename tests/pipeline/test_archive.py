"""profiles/archive.toml: pywb shows pages as they looked, and no page of another host is asked for."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.pages import CACHE
from contract import names
from contract.config_file import load
from tests.pipeline.archived_site import CRAWLER, DOCS, ELSEWHERE, EXHIBIT, HOSTS, REJECTED, STATIC, Site, serving
from tests.pipeline.judge import ROOT, collected_urls, run
from tests.stages.test_warc_tools import Wayback

PROFILE = ROOT / "profiles" / "archive.toml"
DOCUMENTATION = CACHE / "sqlite3-doc" / "usr/share/doc/sqlite3"
PAGES = (EXHIBIT, "/index.html", "/atomiccommit.html")
EQUAL_MIN = 0.95
PATIENCE_S = 600.0  # reached only where it hangs
WINDOW = "1280,1600"


@pytest.fixture
def documentation() -> Path:
    if not DOCUMENTATION.is_dir():
        miss = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        miss("the documentation of SQLite is not unpacked in build/bench-pages: .ci/run does that")
    return DOCUMENTATION


class Browser:
    """Chromium without scripts, which asks nobody but loopback."""

    def __init__(self, program: str, folder: Path):
        self._program, self._folder = program, folder
        (folder / "Default").mkdir(parents=True)
        settings = {"profile": {"default_content_setting_values": {"javascript": 2}}}
        (folder / "Default" / "Preferences").write_text(json.dumps(settings))

    def look_at(self, url: str, name: str) -> np.ndarray:
        """What the window shows, as pixels."""
        picture = self._folder / f"{name}.png"
        command = [
            self._program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-sync",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-proxy-server",
            "--hide-scrollbars",
            "--host-resolver-rules=MAP * 127.0.0.1",
            f"--user-data-dir={self._folder}",
            f"--window-size={WINDOW}",
            f"--screenshot={picture}",
            url,
        ]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S)
        assert picture.exists(), done.stderr
        return np.asarray(Image.open(picture).convert("RGB"))


def crawl_site(site: Site, folder: Path) -> Path:
    crawl, hosts = folder / "crawl", folder / "hosts"
    hosts.write_text("".join(f"127.0.0.1 {host}\n" for host in HOSTS))
    settings = (
        "fetcher.contact=https://crawler.test/",
        f"fetcher.agent={CRAWLER}",
        f"fetcher.hosts_file={hosts}",
        "fetcher.allow_private_addresses=true",
        "fetcher.delay_s=0",
        "fetcher.delay_response_factor=0",
        "scheduler.server_max_urls=1000",
        "blocks.first=1",
        f'scope.accept_domains=["{DOCS}"]',
        f'scope.reject_domains=["{REJECTED}"]',
        "scope.hops_max=1",
    )
    options = ["--crawl", crawl, "--config", PROFILE, *(word for setting in settings for word in ("--set", setting))]
    seed = ["seed", *options, *(site.url(DOCS, path) for path in PAGES)]
    for command in (seed, ["crawl", *options, "--until-done", "--quiet"], ["check", "--crawl", crawl]):
        done = run(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    return crawl


@pytest.mark.long
def test_a_replay_looks_like_the_site(needs, documentation, tmp_path):
    browser = Browser(needs("chromium"), tmp_path / "browser")
    with serving(documentation) as site:
        originals = [browser.look_at(site.url(DOCS, path), f"original-{number}") for number, path in enumerate(PAGES)]
        shown = {url for _, url in site.asked if not url.endswith("/favicon.ico")}
        site.asked.clear()
        crawl = crawl_site(site, tmp_path)
    asked = {url for agent, url in site.asked if agent.startswith(CRAWLER)}
    refused = {site.url(STATIC, "/closed.png"), site.url(REJECTED, "/banner.png")}
    assert refused < shown and not refused & asked, "robots.txt and reject_domains hold for what a page needs"
    assert shown - refused - set(collected_urls(crawl)) == set(), "what the browser asked for is archived"
    foreign = {site.url(STATIC, "/page.html"), site.url(ELSEWHERE, "/page.html")}
    assert not foreign & asked, "pages of other hosts are no part of the site"
    files = sorted((crawl / names.CYCLES).glob(f"*/{names.FETCHER}/{names.PAGES}/*.warc.gz"))
    replayed = replay(browser, site, files, tmp_path / "wayback")
    equal = {path: equal_share(*pair) for path, *pair in zip(PAGES, originals, replayed)}
    assert min(equal.values()) >= EQUAL_MIN, equal


def replay(browser: Browser, site: Site, files: list[Path], folder: Path) -> list[np.ndarray]:
    """What the browser shows of the pages once the site is gone."""
    folder.mkdir()
    wayback = Wayback(folder, files)
    try:
        wayback.wait_until_ready()
        start = f"http://127.0.0.1:{wayback.port}/pages/mp_/"
        urls = [start + site.url(DOCS, path) for path in PAGES]
        return [browser.look_at(url, f"replayed-{number}") for number, url in enumerate(urls)]
    finally:
        wayback.end()


def equal_share(one: np.ndarray, other: np.ndarray) -> float:
    return float((one == other).all(axis=2).mean())


def test_every_profile_is_a_configuration():
    profiles = {path.name: load(path) for path in PROFILE.parent.iterdir()}
    assert profiles["archive.toml"].fetcher.warc_compression == "gzip"
