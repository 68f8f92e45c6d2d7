"""One small web per session, and a crawl of it after its first cycle, which tests copy.

A test that reads the web's record of requests, or whose pages must fail as on the first visit, serves a web of its own
(`synthetic_web`).
"""

import pytest

from tests.conftest import serve_web
from tests.pipeline.test_supervisor import Crawl

SMALL_SEED, SMALL_SERVERS = 8, 4


@pytest.fixture(scope="session")
def small_web(tmp_path_factory):
    """State folder and port."""
    with serve_web(tmp_path_factory.mktemp("small-web"), SMALL_SEED, SMALL_SERVERS) as web:
        yield web


@pytest.fixture(scope="session")
def first_cycle(small_web, tmp_path_factory) -> Crawl:
    crawl = Crawl(tmp_path_factory.mktemp("first-cycle"), *small_web, servers=SMALL_SERVERS)
    assert crawl.run("run-cycle").returncode == 0  # also: its configuration is stored from now on
    return crawl


@pytest.fixture
def crawled(first_cycle, tmp_path) -> Crawl:
    """A crawl of the small web after its first cycle."""
    return first_cycle.copy(tmp_path)
