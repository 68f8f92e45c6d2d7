"""A crawl remembers its configuration: real commands, with --config forgotten, changed, refused and repeated."""

import os
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from contract import names
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import open_folder
from contract.log import replay
from contract.plan import read_plan
from contract.tables import EXTRACTED, REJECTED
from storage.tables import read_table
from supervise.demo import SETTINGS
from synthweb import Web
from tests.at_terminal import run_at_terminal
from tests.pipeline.judge import ROOT, committed_cycles, run

WEB_SEED, WEB_SERVERS = 8, 4
OTHER_SCOPE = 'scope.accept_suffixes: ["test"] -> []'


class Crawl:
    """A crawl whose settings lie in another folder than the one that commands are run in."""

    def __init__(self, folder: Path, state: Path, port: int):
        self.path, self.settings = folder / "crawl", folder / "settings"
        self.settings.mkdir()
        self.seeds = Web(WEB_SEED, WEB_SERVERS, port).seeds()
        self.file("mine.toml", hosts=os.path.relpath(state / "hosts", self.settings))

    def file(self, name: str, *changes: tuple[str, str], hosts: str = "") -> Path:
        text = SETTINGS.format(hosts=hosts) if hosts else (self.settings / "mine.toml").read_text()
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        (self.settings / name).write_text(text)
        return self.settings / name

    def seed(self, *more) -> None:
        seeded = run("seed", "--crawl", self.path, "--config", self.settings / "mine.toml", *more, *self.seeds)
        assert seeded.returncode == 0 and seeded.stdout.endswith(f"next: bin/run-cycle --crawl {self.path}\n"), (
            seeded.stdout + seeded.stderr
        )

    def turn(self, *more) -> subprocess.CompletedProcess:
        return run("run-cycle", "--crawl", self.path, *more)

    def fetch(self) -> None:
        turn = self.turn()
        assert turn.returncode == 0 and committed_cycles(self.path), turn.stderr

    def stored(self) -> bytes:
        return (self.path / names.CONFIGURATION).read_bytes()

    def newest_plan(self):
        return read_plan(self.path, names.numbered(self.path / names.CYCLES)[-1])


@pytest.fixture
def crawl(tmp_path, small_web) -> Crawl:
    return Crawl(tmp_path, *small_web)


def test_a_forgotten_config_does_not_widen_the_scope(crawl):
    host = urlsplit(crawl.seeds[0]).hostname
    crawl.seed("--set", f'scope.accept_domains=["{host}"]', "--set", "scope.accept_suffixes=[]")
    for _ in range(3):
        assert crawl.turn().returncode == 0
    urls = [
        row["url"]
        for cycle in committed_cycles(crawl.path)
        for row in read_table(
            crawl.path / names.cycle(cycle) / names.EXTRACTOR / names.EXTRACTED, EXTRACTED
        ).to_pylist()
    ]
    rejected = [
        row
        for cycle in committed_cycles(crawl.path)
        for row in read_table(crawl.path / names.cycle(cycle) / names.EXTRACTOR / names.REJECTED, REJECTED).to_pylist()
    ]
    assert urls and {urlsplit(url).hostname for url in urls} == {host}
    assert any(row["rule"] == "accept" for row in rejected), "no link leads out of scope: the test tests nothing"


@pytest.mark.long
def test_what_differs_is_printed_and_needs_yes_once_there_are_pages(crawl):
    crawl.seed()
    wider = crawl.file("wider.toml", ('["test"]', "[]"), ("transfers_max = 100", "transfers_max = 50"))
    before = crawl.turn("--config", wider, "--stop-after", "scheduler")
    assert before.returncode == 0 and OTHER_SCOPE in before.stderr, "no pages yet: nobody is asked"
    assert crawl.turn("--config", crawl.settings / "mine.toml").returncode == 0
    stored = crawl.stored()
    same = crawl.turn("--config", crawl.settings / "mine.toml", "--stop-after", "scheduler")
    assert same.returncode == 0 and "->" not in same.stderr and crawl.stored() == stored
    for quiet in ([], ["--quiet"]):
        refused = crawl.turn("--config", wider, *quiet)
        assert (
            refused.returncode == 64
            and "add --yes" in refused.stderr
            and "scope.accept_suffixes" in refused.stderr
            and crawl.stored() == stored
        )
        assert (
            (OTHER_SCOPE in refused.stderr.splitlines())
            == ("fetcher.transfers_max: 100 -> 50" in refused.stderr.splitlines())
            == (not quiet)
        )
    harmless = crawl.turn("--config", crawl.file("more.toml", ("transfers_max = 100", "transfers_max = 60")))
    assert harmless.returncode == 0 and "fetcher.transfers_max: 100 -> 60" in harmless.stderr
    agreed = crawl.turn("--config", wider, "--yes", "--quiet")
    assert agreed.returncode == 0 and not agreed.stderr
    assert (
        read_crawl_config(crawl.path).scope.accept_suffixes == ()
        and crawl.turn("--stop-after", "scheduler").returncode == 0
    )
    assert crawl.newest_plan().config.scope.accept_suffixes == ()


@pytest.mark.parametrize("answer, code", [(b"y\n", 0), (b"\n", 64), (b"no\n", 64), (b"\x04", 64)])
@pytest.mark.sampled(1)
def test_a_terminal_is_asked(crawl, answer, code):
    crawl.seed()
    crawl.fetch()
    stored = crawl.stored()
    slower = crawl.file("slower.toml", ("delay_s = 0.01", "delay_s = 0.02"))
    command = [ROOT / "bin/run-cycle", "--crawl", crawl.path, "--config", slower]
    ended, shown = run_at_terminal(command, answers={"[y/N] ": answer})
    assert ended == code and "fetcher.delay_s: 0.01 -> 0.02\n" in shown, shown
    assert (crawl.stored() == stored) == (code == 64)


def test_set_holds_for_one_run_and_is_printed(crawl):
    crawl.seed()
    stored = crawl.stored()
    turn = crawl.turn("--set", "fetcher.delay_s=0.015", "--set", "fetcher.transfers_max=100")
    assert (
        turn.returncode == 0
        and "this run only: fetcher.delay_s = 0.015" in turn.stderr
        and "transfers_max" not in turn.stderr
    )
    assert crawl.newest_plan().config.fetcher.delay_s == 0.015 and crawl.stored() == stored
    again = crawl.turn("--set", "fetcher.delay_s=0.015", "--quiet")
    assert again.returncode == 0 and "this run only" not in again.stderr
    assert "this run only" not in crawl.turn().stderr and crawl.newest_plan().config.fetcher.delay_s == 0.01


@pytest.mark.long
def test_an_open_cycle_keeps_the_configuration_of_its_plan(crawl):
    crawl.seed()
    assert crawl.turn("--stop-after", "scheduler").returncode == 0
    opened = crawl.newest_plan()
    turn = crawl.turn("--config", crawl.file("slower.toml", ("delay_s = 0.01", "delay_s = 0.02")))
    assert (
        turn.returncode == 0
        and f"cycle {opened.cycle} keeps its plan's fetcher.delay_s = 0.01 (now 0.02)" in turn.stderr
    ), turn.stderr
    assert crawl.newest_plan() == opened and opened.cycle in committed_cycles(crawl.path)
    assert crawl.turn().returncode == 0 and crawl.newest_plan().config.fetcher.delay_s == 0.02


@pytest.mark.long
def test_a_fork_has_it_too(crawl, tmp_path):
    crawl.seed()
    crawl.fetch()
    made = run("fork", "--crawl", crawl.path, tmp_path / "fork")
    assert made.returncode == 0, made.stderr
    assert read_crawl_config(tmp_path / "fork") == read_crawl_config(crawl.path)
    assert (
        run("run-cycle", "--crawl", tmp_path / "fork").returncode == 0
        and run("check", "--crawl", tmp_path / "fork").returncode == 0
    )


@pytest.mark.long
def test_a_damaged_one_stops_every_run_until_it_is_replaced(crawl):
    crawl.seed()
    crawl.fetch()
    good = crawl.stored()
    (crawl.path / names.CONFIGURATION).write_bytes(good.replace(b'["test"]', b"[]"))
    stopped = crawl.turn()
    assert (
        stopped.returncode == 78
        and str(crawl.path / names.CONFIGURATION) in stopped.stderr
        and "--config FILE" in stopped.stderr
    )
    mended = crawl.turn("--config", crawl.settings / "mine.toml")
    assert mended.returncode == 0 and "was missing, damaged or edited" in mended.stderr and crawl.stored() == good
    (crawl.path / names.CONFIGURATION).unlink()
    assert crawl.turn().returncode == 78
    shown, forked = run("status", "--crawl", crawl.path), run("fork", "--crawl", crawl.path, crawl.path.parent / "fork")
    assert shown.returncode == 65 and "configuration.toml is missing" in shown.stdout, shown.stdout
    assert forked.returncode == 78 and not (crawl.path.parent / "fork").exists(), forked.stderr
    assert crawl.turn("--config", crawl.settings / "mine.toml", "--quiet").returncode == 0 and crawl.stored() == good
    assert run("check", "--crawl", crawl.path).returncode == 0


def test_seeds_for_a_crawl_that_is_there_change_nothing(crawl):
    crawl.seed()
    stored = crawl.stored()
    crawl.seed()  # the same command again
    more = run("seed", "--crawl", crawl.path, crawl.seeds[0])
    assert more.returncode == 0, more.stderr
    before = len(names.visible_files(crawl.path / names.INBOX))
    for other in (
        ["--set", "fetcher.delay_s=9"],
        ["--config", crawl.file("slower.toml", ("delay_s = 0.01", "delay_s = 9.0"))],
    ):
        refused = run("seed", "--crawl", crawl.path, *other, crawl.seeds[0])
        assert (
            refused.returncode == 64
            and "fetcher.delay_s: 0.01 -> 9.0" in refused.stderr
            and "bin/run-cycle --config" in refused.stderr
        )
    assert crawl.stored() == stored and len(names.visible_files(crawl.path / names.INBOX)) == before == 3


def test_a_configuration_that_no_run_may_have_is_not_stored(crawl):
    crawl.seed()
    stored = crawl.stored()
    without = crawl.turn("--config", crawl.file("without.toml", ('contact = "mailto:nobody@localhost"', "")))
    assert without.returncode == 78 and "fetcher.contact" in without.stderr and crawl.stored() == stored
    assert not replay(crawl.path, open_folder(crawl.path).blocks_first).length, "no turn was made"
    lost = crawl.file("lost.toml", ("hosts_file = ", "hosts_file = '/nowhere/hosts'  # "))
    refused = crawl.turn("--config", lost)
    assert refused.returncode == 78 and "fetcher.hosts_file: expected a file, found none" in refused.stderr
    assert crawl.stored() == stored and committed_cycles(crawl.path) == [], "no cycle is planned, none abandoned"


def test_a_policy_that_is_none_or_lacks_its_file_changes_nothing(crawl):
    crawl.seed()
    stored = crawl.stored()
    ranks = crawl.settings / "ranks.txt"
    ranks.write_text("http://a.test/ nan\n")
    for code, expected, *overrides in (
        (78, "'in-lnks' is no policy; did you mean in-links?", "scheduler.policy=in-lnks"),
        (78, "scheduler.ranks_file: expected a file of ranks for the policy pagerank", "scheduler.policy=pagerank"),
        (78, "scheduler.ranks_file: expected a file", "scheduler.policy=pagerank", "scheduler.ranks_file=nowhere"),
        (65, "line 1: expected a URL or server", "scheduler.policy=pagerank", f"scheduler.ranks_file={ranks}"),
        (78, "revisit.interval_min_s", "revisit.policy=uniform", "revisit.interval_s=60"),
    ):
        refused = crawl.turn(*(word for override in overrides for word in ("--set", override)))
        assert refused.returncode == code and expected in refused.stderr, refused.stderr
    assert crawl.stored() == stored and not (crawl.path / names.FILES).exists()
    assert names.numbered(crawl.path / names.CYCLES) == [], "no cycle is planned"


@pytest.mark.long
def test_a_run_reads_the_copy_of_the_file_that_its_policy_names(crawl):
    ranks = crawl.settings / "ranks.txt"
    ranks.write_text("".join(f"{seed} {number}\n" for number, seed in enumerate(crawl.seeds)))
    crawl.seed("--set", "scheduler.policy=pagerank", "--set", f"scheduler.ranks_file={ranks}")
    ranks.unlink()
    crawl.fetch()
    (copy,) = names.visible_files(crawl.path / names.FILES)
    assert crawl.newest_plan().config.scheduler.ranks_file == str(copy)
    assert run("check", "--crawl", crawl.path).returncode == 0


def test_work_outside_of_a_crawl_has_its_configuration_where_it_is_named(crawl, tmp_path):
    crawl.seed()
    traced = run("fetcher", "--trace", crawl.seeds[0], "--crawl", crawl.path)
    assert traced.returncode == 0 and "fetcher.hosts_file" in traced.stdout and "answered" in traced.stdout, (
        traced.stderr
    )
    assert run("fetcher", "--trace", crawl.seeds[0]).returncode == 78, "no contact"
    nowhere = run("fetcher", "--trace", crawl.seeds[0], "--crawl", tmp_path / "none")
    assert nowhere.returncode == 78 and "is no crawl folder" in nowhere.stderr
