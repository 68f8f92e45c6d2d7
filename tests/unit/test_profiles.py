"""profiles/: each is a configuration of its own; what the demonstration takes from one, and what it keeps."""

import re
import tomllib
from argparse import Namespace
from pathlib import Path

import pytest

from contract import config_file
from contract.config import NAMES, REJECTED_EXTENSIONS, Config, lookup
from contract.config_file import DEFAULT_FILE
from contract.errors import BadConfiguration, Usage
from supervise import demo
from supervise.demo_profile import choose_folder, combine, read_profile

PROFILES = {path.stem: path for path in (DEFAULT_FILE.parent / "profiles").glob("*.toml")}
CRAWLERS = ("itmo", "padova", "silva", "valle", "veuni")
PADOVA = ("cab", "jpe", "mid", "mp2", "ppt", "ram", "rm", "smil")
SETTINGS = demo.SETTINGS.format(hosts="web/hosts")


def load(name: str) -> Config:
    return config_file.load(PROFILES[name])


def demonstration(file: Path, tmp_path: Path) -> Config:
    """The configuration of the demonstration with a profile."""
    return config_file.parse(combine(SETTINGS, read_profile(file)).encode(), tmp_path / "pipeline.toml")


@pytest.mark.parametrize("name", CRAWLERS)
def test_a_profile_has_only_keys_that_differ(name):
    config, tables = load(name), tomllib.loads(PROFILES[name].read_text())
    keys = [f"{section}.{key}" for section, table in tables.items() for key in table]
    assert keys and [key for key in keys if lookup(config, key) == lookup(Config(), key)] == []


def test_no_two_profiles_are_the_same():
    assert len({load(name).digest() for name in PROFILES} | {Config().digest()}) == len(PROFILES) + 1


def test_profiles_say_what_their_crawlers_did():
    itmo, padova, valle = load("itmo"), load("padova"), load("valle")
    assert (itmo.scheduler.list_max_urls, itmo.scheduler.server_max_urls) == (1_000, 50)
    assert (itmo.verifier.server_max_urls, itmo.verifier.servers_max) == (500, 5_000)
    assert itmo.revisit.policy == "proportional"
    assert padova.scope.reject_extensions == (*REJECTED_EXTENSIONS, *PADOVA)
    assert valle.scheduler.policy == "new-domains"
    assert (valle.fetcher.delay_s, valle.fetcher.delay_scope) == (30.0, ("domain",))
    assert load("silva").scheduler.policy == "spread"
    assert load("veuni").scheduler.policy == "shortest-path" and load("veuni").blocks.first == 10


def test_the_page_on_ordering_names_each_profile_and_its_order():
    page = (DEFAULT_FILE.parent / "docs/ordering.md").read_text()
    rows = dict(re.findall(r"^\| \[(\w+)\.toml\]\(\.\./profiles/\w+\.toml\) \| .*? \| `([^`]+)`", page, re.M))
    assert rows == {name: load(name).scheduler.policy for name in CRAWLERS}


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_the_demonstration_takes_orders_and_caps_and_keeps_manners_and_hosts(name, tmp_path):
    profile = read_profile(PROFILES[name])
    found, plain = demonstration(PROFILES[name], tmp_path), config_file.parse(SETTINGS.encode(), tmp_path / "x.toml")
    taken = {change.name for change in profile.taken}
    assert taken and {key: lookup(found, key) for key in taken} == {key: lookup(load(name), key) for key in taken}
    assert [key for key in NAMES if key not in taken and lookup(found, key) != lookup(plain, key)] == []
    ours = ("fetcher.delay", "fetcher.contact", "fetcher.hosts_file", "scope.accept_", "blocks.servers_max")
    assert not [key for key in taken if key.startswith(ours)]
    assert found.fetcher.hosts_file == str(tmp_path / "web/hosts"), "the folder may have been moved"


def test_rules_of_a_profile_hold_in_the_demonstration(tmp_path):
    file = tmp_path / "feeds.toml"
    file.write_text("[[priority]]\npattern = '/feed$'\nweight = 2.0\n[[budget]]\nsurt = \"test,s1\"\nurls = 5\n")
    found = demonstration(file, tmp_path)
    assert found.priority == config_file.load(file).priority and found.budget[0].urls == 5


def test_a_profile_is_described_by_its_keys_and_values():
    valle, padova = (read_profile(PROFILES[name]).describe() for name in ("valle", "padova"))
    assert '  scheduler.policy = "new-domains"' in valle
    assert valle[-1] == "the demonstration keeps its own fetcher.delay_s, fetcher.delay_scope"
    assert any(line.startswith('  scope.reject_extensions: added ["cab", ') for line in padova)


def test_a_profile_gets_a_folder_of_its_own():
    assert choose_folder(demo.FOLDER, Path("profiles/valle.toml")) == Path("demo/valle")
    for name in ("crawl.toml", "..toml", "...toml"):  # the last two would be demo/ itself, and its parent
        with pytest.raises(Usage, match="another name"):
            choose_folder(demo.FOLDER, Path(name))


def test_a_folder_that_began_with_another_configuration_is_refused(tmp_path, monkeypatch):
    """Before its web is started, and with nothing changed."""
    monkeypatch.chdir(tmp_path)
    file, settings = tmp_path / "mine.toml", Path("demo/mine/pipeline.toml")
    file.write_text('[scheduler]\npolicy = "fifo"\n')
    settings.parent.mkdir(parents=True)
    settings.write_text(before := combine(SETTINGS, read_profile(file)))
    file.write_text('[scheduler]\npolicy = "random"\n')
    with pytest.raises(Usage) as refused:
        demo.run(Namespace(config=file, quiet=True))
    for part in (str(file), 'scheduler.policy: "fifo" -> "random"', "rm -r demo/mine"):
        assert part in str(refused.value)
    assert settings.read_text() == before and not Path("demo/mine/crawl").exists()


@pytest.mark.parametrize("text", ['[scheduler]\npolicy = "spred"\n', "[scheduler\n", "[scheduler]\nsedd = 1\n"])
def test_a_bad_profile_makes_no_folder(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(BadConfiguration, match="bad.toml"):
        demo.run(Namespace(config=file, quiet=True))
    assert not Path("demo").exists()
