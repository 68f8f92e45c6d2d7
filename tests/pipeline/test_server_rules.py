"""Small budgets on a whole web: the books agree, no server passes its budget, and bin/why names the rule."""

import numpy as np
import pytest

from contract import names
from contract.crawl_folder import create, open_folder
from contract.generation import open_generation
from contract.log import replay
from contract.tables import EXTRACTED, REFUSED_ROWS, SERVER_RULES
from storage.tables import column, read_table
from supervise.demo import SETTINGS
from supervise.seed import leave
from synthweb import Web
from tests.pipeline.judge import committed_cycles, run

WEB_SEED, WEB_SERVERS = 8, 14
BUDGETS = {
    "server_max_urls": 8,
    "domain_max_urls": 10,
    "prefix_from_urls": 0,
    "prefix_max_urls": 1,
    "query_max_urls": 1,
}


@pytest.mark.long
def test_a_web_with_small_budgets(synthetic_web, tmp_path):
    state, port = synthetic_web(WEB_SEED, WEB_SERVERS)
    crawl, settings = tmp_path / "crawl", tmp_path / "pipeline.toml"
    settings.write_text(SETTINGS.format(hosts=state / "hosts"))
    create(crawl, 2, hash_seed=17)
    leave(crawl, Web(WEB_SEED, WEB_SERVERS, port).seeds())
    bounds = [word for name, most in BUDGETS.items() for word in ("--set", f"verifier.{name}={most}")]
    done = run("crawl", "--crawl", crawl, "--config", settings, *bounds, "--quiet", "--cycles", "6")
    assert done.returncode == 0, done.stderr
    checked = run("check", "--crawl", crawl)
    assert checked.returncode == 0, checked.stdout
    log = replay(crawl, open_folder(crawl).blocks_first)
    for block in range(log.blocks):
        servers = open_generation(crawl, block, log.generation(block)).servers
        assert (column(servers, "known") <= BUDGETS["server_max_urls"]).all()
        _, domain = np.unique(column(servers, "domain_key"), return_inverse=True)
        assert (np.bincount(domain, column(servers, "known")) <= BUDGETS["domain_max_urls"]).all()
    rule_of, texts = {}, {}
    for cycle in committed_cycles(crawl):
        for row in read_table(
            crawl / names.cycle(cycle) / names.VERIFIER / names.REFUSED_URLS, REFUSED_ROWS
        ).to_pylist():
            rule_of[row["url_key"]] = SERVER_RULES[row["rule"]]
        texts |= {
            row["url_key"]: row["url"]
            for row in read_table(crawl / names.cycle(cycle) / names.EXTRACTOR / names.EXTRACTED, EXTRACTED).to_pylist()
        }
    assert {"server_budget", "path_prefix", "query"} <= set(rule_of.values()), (
        "the budgets are not small enough: the test tests nothing"
    )
    for rule in set(rule_of.values()):
        urls = sorted(texts[key] for key, refused_by in rule_of.items() if refused_by == rule)[
            :4
        ]  # one may wait in AUX again
        told = [run("why", "--crawl", crawl, url).stdout for url in urls]
        assert any(f"by {rule}, a rule about its whole server" in each for each in told), (urls, told)
