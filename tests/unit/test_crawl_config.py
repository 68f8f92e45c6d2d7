"""configuration.toml.

Written whole, read again as it was, and refused when it was cut, changed or replaced by something else.
"""

import os
import re
import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import config_file as configuration
from contract import names
from contract.config import SECTIONS, Budget, Config, Fetcher, Priority, Revisit, Scheduler, Scope
from contract.crawl_config import encode_config, find_differences, read_crawl_config, write_crawl_config
from contract.errors import BadConfiguration

TEXTS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20)


def test_every_key_is_written_and_read_again(tmp_path):
    config = replace(
        Config(),
        fetcher=Fetcher(delay_s=0.1, hosts_file='/etc/h\x7f"\\\x00ost\N{GRINNING FACE}'),
        scope=Scope(accept_suffixes=("br",), reject_domains=tuple(f"d{number}.test" for number in range(500))),
        priority=(Priority(surt="br,ufmg,", weight=2.5), Priority(pattern="/feed")),
        budget=(Budget(pattern=r"\?", urls=7),),
    )
    write_crawl_config(tmp_path, config)
    assert read_crawl_config(tmp_path) == config
    text = (tmp_path / names.CONFIGURATION).read_text()
    tables = tomllib.loads(text)
    assert {section: set(tables[section]) for section in SECTIONS} == {
        section: set(asdict(config)[section]) for section in SECTIONS
    }
    assert [set(rule) for rule in tables["priority"]] == [set(asdict(rule)) for rule in config.priority]
    assert max(map(len, text.splitlines())) <= 120 and not list(tmp_path.glob(".aside*"))


@given(st.lists(TEXTS.filter(str.strip), max_size=5), TEXTS)
def test_any_text_is_read_again(terms, name):
    config = replace(
        Config(), fetcher=Fetcher(hosts_file=f"/a{name}".rstrip("/.")), scope=Scope(reject_terms=tuple(terms))
    )
    read = configuration.parse(encode_config(config, Path("/crawl")), Path("/crawl/configuration.toml"))
    assert read.scope.reject_terms == config.scope.reject_terms
    assert read.fetcher.hosts_file == os.path.abspath(config.fetcher.hosts_file)


PATTERNS = st.lists(TEXTS.filter(bool).map(re.escape), min_size=1, max_size=3)


@given(PATTERNS, st.floats(0.001, 1000), st.floats(0, 1e9), st.integers(0, 1 << 53))
def test_any_rule_is_read_again(patterns, weight, interval_s, urls):
    """Patterns of any text, and numbers to their last bit."""
    config = Config(
        revisit=Revisit(policy="uniform"),
        scheduler=Scheduler(bonus_patterns=tuple(patterns)),
        priority=(Priority(surt="br,ufmg,www)/", weight=weight), *(Priority(pattern=text) for text in patterns)),
        budget=(*(Budget(pattern=text, urls=urls) for text in patterns), Budget(surt="br,")),
    )
    config = replace(config, priority=(*config.priority, Priority(surt="br,", interval_s=interval_s)))
    assert configuration.parse(encode_config(config, Path("/crawl")), Path("/crawl/configuration.toml")) == config


def test_rules_are_written_and_read_again_from_a_folder(tmp_path):
    rules = (Priority(pattern='"\\n\n[[priority]]\nsurt = "br,"', weight=3.0), Priority(pattern="# check x\n''\x7f"))
    config = replace(Config(), priority=rules, budget=(Budget(pattern="[[scope]]", urls=1),))
    write_crawl_config(tmp_path, config)
    assert read_crawl_config(tmp_path) == config and read_crawl_config(tmp_path).digest() == config.digest()


def test_a_file_that_was_cut_or_changed_is_refused(tmp_path):
    """Cut after a section it would still be TOML, with the defaults of all that is gone."""
    write_crawl_config(tmp_path, replace(Config(), scope=Scope(accept_suffixes=("br",))))
    path = tmp_path / names.CONFIGURATION
    whole = path.read_bytes()
    broken = [whole[:length] for length in range(0, len(whole) - 1, 97)] + [
        whole.replace(b'["br"]', b'["cr"]'),
        whole.replace(b"check", b"chuck"),
        b"\xff" * 100,
        b"[" * 100_000,
        b"# check \n",
        b"\0",
    ]
    for content in broken:
        path.write_bytes(content)
        with pytest.raises(BadConfiguration) as caught:
            read_crawl_config(tmp_path)
        assert str(path) in str(caught.value) and f"bin/run-cycle --crawl {tmp_path} --config" in str(caught.value)


def test_a_path_is_relative_to_its_file_and_one_of_set_to_the_working_folder(tmp_path, monkeypatch):
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "mine.toml").write_text('[fetcher]\nhosts_file = "hosts"\n')
    monkeypatch.chdir(tmp_path)
    assert configuration.load(Path("settings/mine.toml")).fetcher.hosts_file == str(settings / "hosts")
    assert configuration.load(Path("settings/mine.toml"), ["fetcher.hosts_file=more"]).fetcher.hosts_file == str(
        tmp_path / "more"
    )
    assert configuration.load(Path("settings/mine.toml"), ["fetcher.hosts_file="]).fetcher.hosts_file == ""


def test_a_path_inside_the_crawl_folder_moves_with_it(tmp_path):
    crawl, other = tmp_path / "crawl", tmp_path / "moved"
    crawl.mkdir()
    inside = replace(Config(), fetcher=Fetcher(hosts_file=str(crawl / "hosts")))
    write_crawl_config(crawl, inside)
    assert str(crawl) not in (crawl / names.CONFIGURATION).read_text() and read_crawl_config(crawl) == inside
    crawl.rename(other)
    assert read_crawl_config(other).fetcher.hosts_file == str(other / "hosts")


def test_differences_are_named_one_line_each():
    before, after = (
        Config(),
        replace(
            Config(),
            fetcher=Fetcher(delay_s=2.0, contact="a@b"),
            scope=Scope(accept_suffixes=("br",), reject_extensions=(*Config().scope.reject_extensions[1:], "new")),
        ),
    )
    assert list(map(str, find_differences(before, after))) == [
        'fetcher.contact: "" -> "a@b"',
        "fetcher.delay_s: 5.0 -> 2.0",
        'scope.accept_suffixes: [] -> ["br"]',
        'scope.reject_extensions: added ["new"], removed ["7z"]',
    ]
    assert find_differences(after, after) == []
    ruled = replace(before, priority=(Priority(surt="br,", weight=2.0),))
    assert list(map(str, find_differences(before, ruled))) == [
        'priority: [] -> [{surt = "br,", pattern = "", weight = 2.0, interval_s = 0.0}]'
    ]
    many = tuple(Priority(surt=f"br,s{number},") for number in range(20))
    (difference,) = map(str, find_differences(replace(before, priority=many[1:]), replace(before, priority=many[:-1])))
    assert difference.startswith('priority: added [{surt = "br,s0,"') and 'removed [{surt = "br,s19,"' in difference
