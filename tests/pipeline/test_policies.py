"""Every policy, killed in the middle, crawls a web to the same final set; stages write the same bytes again."""

import random
from collections import defaultdict
from pathlib import Path

import pytest

from contract import names
from contract.crawl_folder import open_folder
from contract.generation import open_generation
from contract.log import replay
from contract.policies import POLICIES, parts_of_text
from contract.tables import METADATA
from storage.tables import column, read_table
from supervise.seed import leave
from tests.pipeline.judge import committed_cycles, run
from tests.pipeline.struck import STAGE, SUPERVISOR, WEB_SEED, Struck, find, has_ended, strike, wait_for
from tests.sampling import sampling

SERVERS = 12
GATED = sorted(name for name, policy in POLICIES.items() if policy.is_gated)
OTHERS = [*sorted(set(POLICIES) - set(GATED)), "0.5*focused + 0.5*opic"]
KEYS = (
    "fetcher.delay_s=0.005",
    "scheduler.list_max_urls=60",
    "verifier.prescheduled_max=20",
    "blocks.first=2",
    "scheduler.centrality_urls_min=5000",
)
REDIRECTS = range(300, 400)
MOMENT_MAX_S = 0.3  # after a second cycle was seen


@pytest.fixture
def make(tmp_path, synthetic_web):
    def make(policy: str) -> Struck:
        state, port = synthetic_web(WEB_SEED, SERVERS)
        keys = (*KEYS, f"scheduler.policy={policy}")
        for name in {file.key for part in parts_of_text(policy) for file in part.policy.files} & FILES.keys():
            (tmp_path / name).write_text("\n".join(FILES[name](port)) + "\n")
            keys = (*keys, f"{name}={tmp_path / name}")
        return Struck(tmp_path, state, port, blocks=2, servers=SERVERS, more_keys=keys)

    return make


def make_ranks(port: int) -> list[str]:
    """Ranks of servers; a third of them has none."""
    chance = random.Random(sampling.seed)
    return [f"http://s{number}.test:{port} {chance.random()}" for number in range(SERVERS) if number % 3]


# What the files of policies hold; others than these are not given. No budget of a domain refuses anything here.
FILES = {
    "scheduler.ranks_file": make_ranks,
    "scheduler.terms_file": lambda port: ["blog", "água", "новости", "plain text"],
    "scheduler.centralities_file": lambda port: [f"s{number}.test {number}" for number in range(SERVERS)],
}


def kill_once(crawl: Struck, chance: random.Random) -> int:
    """Starts it, and kills one process in the middle; how many were killed."""
    process = crawl.start()
    kind, stage = chance.choice([(SUPERVISOR, ""), *((STAGE, name) for name in names.STAGES)])
    wait_for(process, lambda: len(names.numbered(crawl.path / names.CYCLES)) > 3)
    if has_ended(process, chance.uniform(0, MOMENT_MAX_S)):
        return 0
    victims = wait_for(process, lambda: find(process, kind, stage))
    killed = bool(victims) and strike(victims[0])
    process.wait()
    return int(killed)


@pytest.mark.parametrize("policy", OTHERS)
@pytest.mark.sampled(1)
def test_every_policy_comes_to_the_same_final_set_although_it_is_killed(make, policy, tmp_path):
    crawl, chance = make(policy), random.Random(f"{sampling.seed} {policy}")
    killed = kill_once(crawl, chance)
    crawl.finish()
    crawl.judge(killed, delay_s=0.005)
    assert_same_bytes_again(crawl, tmp_path / "again")


def assert_same_bytes_again(crawl: Struck, out: Path) -> None:
    """Of the last cycle of a block that fetched; its generations are there still."""
    last = committed_cycles(crawl.path)[-1]
    for stage in (names.SCHEDULER, names.VERIFIER):
        done = run(stage, "--crawl", crawl.path, "--cycle", last, "--out", out / stage)
        assert done.returncode == 0, done.stderr
    compared = 0
    for folder, original in (
        (out / names.SCHEDULER, crawl.path / names.cycle(last) / names.SCHEDULER),
        (out / names.VERIFIER, crawl.path),
    ):
        for path in filter(Path.is_file, folder.rglob("*")):
            before = original / path.relative_to(folder)
            if before.exists() or path.name != names.AUX:  # AUX that all blocks have absorbed may be gone
                assert path.read_bytes() == before.read_bytes(), before
                compared += 1
    assert compared > 10


@pytest.mark.long
@pytest.mark.parametrize("policy", GATED)
def test_new_domains_goes_on_in_a_domain_while_its_rule_says_so(make, policy, tmp_path):
    """2^i <= N, from the tables: i pages of a domain so far, N links of the last one to other registered domains.

    A redirect leads to a page and is none: it counts, but does not decide.
    """
    crawl, chance = make(policy), random.Random(f"{sampling.seed} {policy}")
    leave(crawl.path, sorted(crawl.web.truth()))  # so that domains have pages to go on with
    kill_once(crawl, chance)
    crawl.finish()
    checked = crawl.run("check")
    assert checked.returncode == 0, checked.stdout
    links = links_by_domain(crawl.path)
    assert links
    closed = closed_domains(crawl.path)
    for domain, of_pages in links.items():
        goes_on = [found is None or 2**place <= found for place, found in enumerate(of_pages, 1)]
        assert all(goes_on[:-1]), f"{domain}: a page was fetched although its domain was closed: {of_pages}"
        assert goes_on[-1] == (domain not in closed), f"{domain}: {of_pages}"
    assert closed and any(len(of_pages) > 1 for of_pages in links.values())
    before = {domain: len(of_pages) for domain, of_pages in links.items() if domain in closed}
    leave(crawl.path, [f"{seed}mais/uma" for seed in crawl.web.seeds()])
    crawl.finish()
    after = links_by_domain(crawl.path)
    assert {domain: len(after[domain]) for domain in before} == before, "what is closed stays closed"
    assert_same_bytes_again(crawl, tmp_path / "again")


def links_by_domain(crawl: Path) -> dict[int, list[int | None]]:
    """By domain key, links to other registered domains of each page, in the order of cycles: one page per cycle.

    None for a redirect.
    """
    found = defaultdict(list)
    for cycle in committed_cycles(crawl):
        table = read_table(crawl / names.cycle(cycle) / names.EXTRACTOR / names.METADATA, METADATA)
        rows = table.select(["domain_key", "links_other_domains", "status"]).to_pylist()
        assert len({row["domain_key"] for row in rows}) == len(rows), "a list has one URL per registered domain"
        for row in rows:
            found[row["domain_key"]].append(None if row["status"] in REDIRECTS else row["links_other_domains"])
    return found


def closed_domains(crawl: Path) -> set[int]:
    log = replay(crawl, open_folder(crawl).blocks_first)
    closed: set[int] = set()
    for block, number in log.live.items():
        servers = open_generation(crawl, block, number).servers
        closed |= set(column(servers, "domain_key")[column(servers, "closed")].tolist())
    return closed
