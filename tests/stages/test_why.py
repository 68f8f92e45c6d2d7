"""bin/why: every state that a URL can be in is told with its cause, from the files alone."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from contract import names
from contract.accumulators import ACCUMULATORS
from contract.config import LINK_KINDS, Config
from contract.errors import EX_CONFIG, EX_DATAERR
from contract.log import CRAWL
from contract.plan import Plan
from contract.tables import EXTRACTED, FAILED, LINKS, REASON_ROBOTS, REFUSED
from contract.trouble import MEANINGS
from contract.units import moment
from examine import url_history
from examine.url_history import find_row
from examine.why import describe as describe_facts
from examine.why import gather, judge_known
from storage.publish import describe, encode_json, read_json
from storage.tables import write_table
from supervise.seed import leave
from tests.golden import GOLDEN, LAST
from tests.small_crawl import NOW_MS, Page, SmallCrawl

ROOT = Path(__file__).resolve().parent.parent.parent
SEEDS = [f"http://s{number}.test/" for number in range(10)]
CONFIG = replace(
    Config(),
    scope=replace(Config().scope, accept_suffixes=("test",)),
    verifier=replace(Config().verifier, attempts_max=1, server_backoffs_max=0, prescheduled_max=100),
)


def why(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "bin/why", *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


@pytest.fixture(scope="module")
def crawl(tmp_path_factory) -> SmallCrawl:
    """Two cycles on block 0 with every outcome; what they found for block 1 waits in AUX."""
    crawl = SmallCrawl(tmp_path_factory.mktemp("why") / "crawl", 2, CONFIG)
    crawl.seed(SEEDS)
    crawl.absorb_all()
    plan = crawl.plan(CRAWL, 0)
    listed = crawl.schedule(plan)
    assert len(listed) >= 3
    first = listed[0]
    other = next(url for url in SEEDS if url not in listed)
    crawl.harvest(
        plan,
        {
            url: Page(
                links=[f"{first}{name}" for name in ("ok", "fails", "robots", "type", "later", "missed")]
                + [f"{other}new"]
            )
            for url in listed
        },
    )
    crawl.verify(plan)
    plan = crawl.plan(CRAWL, 0)
    crawl.schedule(plan)
    robots = {first.rstrip("/"): {"robots": b"User-agent: *\nDisallow: /robots\n"}}
    crawl.harvest(
        plan,
        {
            f"{first}ok": Page(links=[f"{first}deep"], trouble="broken nesting"),
            f"{first}fails": Page(FAILED, "timeout_total"),
            f"{first}robots": Page(REFUSED, REASON_ROBOTS),
            f"{first}type": Page(REFUSED, "excluded_type"),
            f"{first}later": Page(FAILED, "http_5xx"),
        },
        servers=robots,
    )
    crawl.verify(plan)
    crawl.first, crawl.other, crawl.cycles = first, other, [plan.cycle - 1, plan.cycle]
    return crawl


def account(crawl: SmallCrawl, url: str, now_ms: int = NOW_MS) -> dict:
    return gather(crawl.crawl, url, now_ms)


def test_a_collected_url(crawl):
    told = account(crawl, f"{crawl.first}ok?utm_source=x#part")
    assert (
        told["verdict"] == "collected"
        and f"in cycle {crawl.cycles[1]}" in told["because"]
        and told["url"] == f"{crawl.first}ok"
    )
    assert [(event["event"], event["cycle"]) for event in told["events"]] == [
        ("found", crawl.cycles[0]),
        ("asked", crawl.cycles[1]),
    ]
    lines = describe_facts(told, crawl.crawl.path)
    words = f"trouble   {MEANINGS['broken']}; {MEANINGS['nesting']} (broken nesting)"
    assert [line for line in lines if line.startswith("trouble")] == [words]
    seed = account(crawl, crawl.first)
    assert not any(line.startswith("trouble") for line in describe_facts(seed, crawl.crawl.path))
    assert seed["events"][0]["event"] == "seeded" and seed["verdict"] == "collected"


@pytest.mark.parametrize("policy", ["none", "uniform", "proportional", "optimal"])
def test_a_collected_page_is_due_again_by_the_policy(tmp_path, policy):
    config = replace(CONFIG, revisit=replace(CONFIG.revisit, policy=policy))
    small = SmallCrawl(tmp_path / "crawl", 1, config)
    collect_one(small)
    told = account(small, SEEDS[0])
    (line,) = [line for line in describe_facts(told, small.crawl.path) if line.startswith("next")]
    if policy == "none":
        assert told["known"]["next"] is None and '[revisit] policy is "none"' in line
        return
    due_ms, interval_s = told["known"]["next"]["due_at_ms"], told["known"]["next"]["interval_s"]
    assert due_ms == NOW_MS + int(interval_s * 1000) and f"due not before {moment(due_ms)}: revisits {policy}" in line
    assert "due since" in account(small, SEEDS[0], due_ms)["next_visit"]
    (asked,) = [event for event in told["events"] if event["event"] == "asked"]
    assert asked["found"] == "first visit" and asked["listed"]["revisit"] is False
    lines = describe_facts(told, small.crawl.path)
    assert any(line.startswith("          listed for a first visit, by policy shortest-path: score") for line in lines)
    assert any(line.startswith("visits    1 visit, 0 found a change") for line in lines)


def test_a_url_that_is_refused_without_being_asked_has_its_cause_named(crawl):
    told = account(crawl, f"{crawl.first}later")
    known = told["known"] | {"state": "refused_by_rule"}
    facts = told | {"known": known, "events": [], "judged": {"rule": "reject_terms", "is_trap": False}}
    assert judge_known(facts, CONFIG)[1].startswith("the scope has changed since it was found, and rejects it")
    known["server"] = known["server"] | {"closed": True}
    assert "new-domains has closed its registered domain" in judge_known(facts, CONFIG)[1]


def test_each_reason_why_it_was_not_collected(crawl):
    given_up = account(crawl, f"{crawl.first}fails")
    assert (
        given_up["verdict"] == "given up"
        and "1 failed attempt," in given_up["because"]
        and "timeout_total" in given_up["because"]
    )
    robots = account(crawl, f"{crawl.first}robots")
    assert (
        robots["verdict"] == "refused by robots"
        and "Disallow: /robots (line 2" in robots["because"]
        and not robots["robots"]["allows"]
    )
    rule = account(crawl, f"{crawl.first}type")
    assert rule["verdict"] == "refused by rule" and "excluded_type" in rule["because"]
    missed = account(crawl, f"{crawl.first}missed")
    assert (
        missed["verdict"] == "not yet"
        and f"in the list of cycle {crawl.cycles[1]} and was not reached" in missed["because"]
    )
    waits = account(crawl, f"{crawl.first}deep")
    assert waits["verdict"] == "not yet" and "may be in the next list" in waits["because"] and waits["robots"]["allows"]
    pending = account(crawl, f"{crawl.other}new")
    assert (
        pending["verdict"] == "not yet"
        and f"cycle {crawl.cycles[0]} brought it; it waits in AUX for the next turn of block 1" in pending["because"]
    )


def test_what_was_never_taken_in(crawl):
    assert account(crawl, f"{crawl.first}never")["verdict"] == "never seen"
    outside = account(crawl, "http://else.example/")
    assert outside["verdict"] == "rejected" and "out of scope: accept" in outside["because"]
    trap = account(crawl, f"{crawl.first}" + "a/" * 12)
    assert trap["verdict"] == "rejected" and "a trap: segment_repeats_max" in trap["because"]
    leave(crawl.crawl.path, [f"{crawl.first}seeded-later"])
    assert "a seed in inbox/" in account(crawl, f"{crawl.first}seeded-later")["because"]
    for path in (crawl.crawl.path / names.INBOX).iterdir():
        path.unlink()
    for text in ("ftp://s1.test/", "http://", ""):
        assert account(crawl, text)["verdict"] == "no URL for this crawl"


def test_an_open_list_and_a_server_that_is_not_due(tmp_path):
    crawl = SmallCrawl(
        tmp_path / "crawl", 1, replace(CONFIG, verifier=replace(CONFIG.verifier, attempts_max=3, server_backoffs_max=3))
    )
    crawl.seed(SEEDS[:2])
    crawl.absorb_all()
    plan = crawl.plan(CRAWL, 0)
    crawl.schedule(plan)
    assert f"in the list of cycle {plan.cycle}, which is open" in account(crawl, SEEDS[0])["because"]
    crawl.harvest(
        plan,
        {SEEDS[0]: Page(FAILED, "connection_refused")},
        servers={SEEDS[0].rstrip("/"): {"failures": 5, "last_request_at_ms": NOW_MS}},
    )
    crawl.verify(plan)
    told = account(crawl, SEEDS[0])
    assert (
        told["verdict"] == "not yet"
        and "not due before" in told["because"]
        and "5 failures in a row" in told["because"]
        and "connection_refused" in told["because"]
    )
    given_up = replace(plan.config, verifier=replace(plan.config.verifier, server_backoffs_max=0))
    crawl.config = given_up
    plan = crawl.plan(CRAWL, 0, NOW_MS + 10**9)
    crawl.schedule(plan)
    crawl.harvest(plan, {}, servers={SEEDS[0].rstrip("/"): {"failures": 10}})
    crawl.verify(plan)
    assert "was given up with its URLs" in account(crawl, SEEDS[0])["because"]


def collect_one(crawl: SmallCrawl) -> Plan:
    """A cycle whose only page is the first seed; its plan."""
    crawl.seed(SEEDS[:1])
    crawl.absorb_all()
    plan = crawl.plan(CRAWL, 0)
    crawl.schedule(plan)
    crawl.harvest(plan, {SEEDS[0]: Page()})
    crawl.verify(plan)
    return plan


def write_links(crawl: SmallCrawl, cycle: int, rows: list[dict]) -> None:
    folder = crawl.crawl.path / names.cycle(cycle) / names.EXTRACTOR
    write_table(folder / names.LINKS, pa.Table.from_pylist(rows, schema=LINKS))
    manifest = read_json(folder / names.MANIFEST)
    manifest["files"][names.LINKS] = describe(folder / names.LINKS)
    (folder / names.MANIFEST).write_bytes(encode_json(manifest))


def test_links_that_were_not_followed(crawl):
    page = crawl.keys.of(crawl.first)
    cases = [
        ("image", 1 << 6, False, "links of kind image are not followed"),
        ("hidden", 1, True, "its links are nofollow"),
    ]
    rows = [
        {
            "from_key": page,
            "to_key": crawl.keys.of(f"{crawl.first}{name}"),
            "kinds": kinds,
            "nofollow": nofollow,
            "followed": False,
            "anchor": "words",
        }
        for name, kinds, nofollow, _ in cases
    ]
    write_links(crawl, crawl.cycles[0], rows)
    for name, _, _, words in cases:
        told = account(crawl, f"{crawl.first}{name}")
        assert (
            told["verdict"] == "not followed" and words in told["because"] and told["links"][0]["page"] == crawl.first
        )


def test_a_requisite_of_another_host_is_judged_as_one(tmp_path):
    config = replace(CONFIG, extractor=replace(CONFIG.extractor, requisites=("image",)))
    crawl = SmallCrawl(tmp_path / "crawl", 1, config)
    plan = collect_one(crawl)
    image, page = "http://other.org/image", "http://other.org/page"
    seed = crawl.keys.of(SEEDS[0])
    write_links(
        crawl,
        plan.cycle,
        [
            {
                "from_key": seed,
                "to_key": crawl.keys.of(url),
                "kinds": 1 << LINK_KINDS.index(kind),
                "nofollow": True,
                "followed": False,
                "anchor": "",
            }
            for url, kind in ((image, "image"), (page, "a"))
        ],
    )
    assert "its links are nofollow" in account(crawl, image)["because"]
    assert "out of scope: accept" in account(crawl, page)["because"]


def test_few_row_groups_are_read(tmp_path, crawl, monkeypatch):
    """A table of several row groups: only those that may hold the domain are read, and the row is found."""
    rows = sorted(
        (
            {
                **crawl.keyed(f"http://d{number % 40}.test/{number}"),
                "depth": 1,
                **{one.name: 0 for one in ACCUMULATORS},
                "links_in": number,
            }
            for number in range(30_000)
        ),
        key=lambda row: (row["domain_key"], row["url_key"]),
    )
    write_table(tmp_path / "table.parquet", pa.Table.from_pylist(rows, schema=EXTRACTED))
    read, read_table = [], url_history.read_table
    monkeypatch.setattr(
        url_history,
        "read_table",
        lambda path, schema, columns, groups: read.append(groups) or read_table(path, schema, columns, groups),
    )
    for number in (0, 17, 29_999):
        subject = url_history.identify(crawl.crawl, crawl.crawl_state.log, f"http://d{number % 40}.test/{number}")
        assert find_row(tmp_path / "table.parquet", EXTRACTED, subject)["links_in"] == number
    assert all(len(groups) <= 2 for groups in read) and len(read) == 3
    assert (
        find_row(
            tmp_path / "table.parquet",
            EXTRACTED,
            url_history.identify(crawl.crawl, crawl.crawl_state.log, "http://d3.test/no"),
        )
        is None
    )


def test_the_command_tells_people_and_programs():
    table = url_history.read_table(GOLDEN / names.cycle(LAST) / names.EXTRACTOR / names.METADATA, url_history.METADATA)
    page = next(row for row in table.to_pylist() if not row["revisit"])  # the last full answer of its page
    told = why("--crawl", GOLDEN, page["url"])
    assert (
        told.returncode == 0 and f"collected: in cycle {LAST}" in told.stdout and "linked    by http" in told.stdout
    ), told.stderr
    command = told.stdout.split("bin/show ")[1].split()
    record = subprocess.run([ROOT / "bin/show", *command], capture_output=True)
    assert record.returncode == 0 and f"WARC-Target-URI: {page['url']}".lower().encode() in record.stdout.lower()
    facts = json.loads(why("--crawl", GOLDEN, "--json", page["url"]).stdout)
    assert facts["page"]["offset"] == page["offset"] and facts["known"]["state"] == "collected"


def test_missing_tables_are_noted_and_damaged_ones_named(tmp_path):
    crawl = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    assert "no cycle yet" in account(crawl, SEEDS[0])["because"]
    plan = collect_one(crawl)
    folder = crawl.crawl.path / names.cycle(plan.cycle) / names.EXTRACTOR
    write_table(folder / names.METADATA, url_history.METADATA.empty_table())
    shorter = why("--crawl", crawl.crawl.path, SEEDS[0])
    assert (
        shorter.returncode == EX_DATAERR
        and "expected a row 0, found 0 rows" in shorter.stderr
        and "Traceback" not in shorter.stderr
    )
    for name in (names.COLLECTED, names.METADATA):
        (folder / name).unlink()
    told = why("--crawl", crawl.crawl.path, SEEDS[0])
    assert told.returncode == 0 and "metadata was not kept" in told.stdout and "1 table not kept" in told.stdout, (
        told.stderr
    )
    (folder / names.EXTRACTED).write_bytes(b"PAR1")
    damaged = why("--crawl", crawl.crawl.path, SEEDS[0])
    assert damaged.returncode == EX_DATAERR and names.EXTRACTED in damaged.stderr and "Traceback" not in damaged.stderr
    assert why("--crawl", tmp_path / "nothing", SEEDS[0]).returncode == EX_CONFIG


def test_what_was_refused_without_a_request_is_not_called_asked(crawl):
    facts = account(crawl, f"{crawl.first}robots")
    for event in facts["events"]:
        if event["event"] == "asked":
            event["attempts"] = 0
    lines = describe_facts(facts, crawl.crawl.path)
    (line,) = [line for line in lines if line.startswith("listed")]
    assert line.endswith(f": refused {REASON_ROBOTS}, without a request")
    assert not any(line.startswith("asked") for line in lines)
