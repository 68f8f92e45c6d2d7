"""Metrics for node_exporter: a strict reading of the text format."""

import os
import re
from pathlib import Path

import pytest

from contract.errors import Usage
from contract.tables import STATES
from contract.totals import FETCHED
from examine.link_sources import add_up, leave_out
from examine.problems import find_problems
from examine.prometheus import KINDS, encode_metrics, write_metrics
from tests.unit.test_rates import NOW_MS, STATUS, make_live, rates_of

LINE = re.compile(r'([a-z][a-z0-9_]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\} (-?[0-9][0-9.e+-]*)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')
UNITS = ("_total", "_bytes", "_seconds", "_per_second", "_ratio")
COUNTS = {"running", "urls", "blocks", "servers", "servers_failing", "servers_given_up", "cycles_open", "problems"}
COUNTS |= {"link_source_urls", "cycles_in_flight", "pages_revisitable", "domains_closed", "blocks_unprepared"}


def make_status(**changes):
    status = {
        **STATUS,
        "fetched": {"answered": 5, "bytes": 700, "failed": 1, "refused": 2},
        "reasons": {"dns": 3, 'a"b\\c\n': 1},
        "entries": {"crawl": 4},
        "states": {"waiting": 10},
        "link_sources": add_up(()) | {"fetched": dict.fromkeys(FETCHED, 0)},
        "policy": "in-links",
        "revisit_policy": "uniform",
        "unprepared": 0,
        "visits": 9,
        "changes": 2,
        "revisitable": 6,
        "revisit_due_ms": NOW_MS,
        "domains": 3,
        "domains_closed": None,
        "ranked": None,
        "rates_at_end": None,
        "collected": 7,
        "blocks": 2,
        "servers": 3,
        "servers_given_up": 0,
        "rates": rates_of(),
        "stages": {"fetcher": 0.75},
        "estimate": {"seconds": None, "text": "no"},
        "live": vars(make_live({"stage": "fetcher"}, {"stage": ""}, {"stage": "fetcher"})),
    } | changes
    status["disk"] = {**status["disk"], "used_bytes": 1}
    return {**status, "problems": find_problems(status, [])}


def read_strictly(text):
    """{(name, labels): value}; every rule of the format that matters here is asserted."""
    assert text.endswith("\n") and "\n\n" not in text
    samples, types, helped, current = {}, {}, set(), None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in helped and line.split(" ", 3)[3].endswith(".")
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current in helped and current not in types and kind in ("counter", "gauge")
            assert current.endswith("_total") is (kind == "counter")
            assert current.startswith("coletor_")
            assert current.endswith(UNITS) or current.removeprefix("coletor_") in COUNTS
            types[current] = kind
        else:
            name, labels, value = LINE.fullmatch(line).groups()
            assert name == current, "samples of a metric stand together, below its type"
            key = (name, *sorted(LABEL.findall(labels)))
            assert key not in samples
            samples[key] = float(value)
    return samples


def test_metrics_are_well_formed_and_right():
    samples = read_strictly(encode_metrics(make_status()))
    crawl = ("crawl", "my crawl")
    assert samples["coletor_pages_total", crawl] == 5 and samples["coletor_running", crawl] == 1
    assert samples["coletor_urls", crawl, ("state", "waiting")] == 10
    assert samples["coletor_cycles_in_flight", crawl, ("stage", "fetcher")] == 2
    assert samples["coletor_live_timestamp_seconds", crawl] == NOW_MS / 1000
    assert not any(name == "coletor_estimate_seconds" for name, *_ in samples), "what is not known is left out"
    assert {labels[1] for name, _, labels in filter(lambda key: key[0] == "coletor_problems", samples)} == set(KINDS)


def test_link_sources_have_metrics_of_their_own_where_there_are_any():
    theirs = add_up([leave_out(manifest_with(waiting=4, collected=3))["link_sources"]])
    fetched = {"answered": 3, "failed": 0, "refused": 0, "bytes": 20}
    crawl, status = ("crawl", "my crawl"), make_status(link_sources=theirs | {"fetched": fetched})
    samples = read_strictly(encode_metrics(status))
    assert samples["coletor_link_source_urls", crawl, ("state", "waiting")] == 4
    assert samples["coletor_link_source_pages_total", crawl] == 3
    assert "link_source" not in encode_metrics(make_status())


def manifest_with(**states: int) -> dict:
    """Figures of a generation that has nothing but link sources."""
    states = dict.fromkeys(STATES, 0) | states
    known, waiting = sum(states.values()), states["waiting"] + states["prescheduled"]
    counts = {"known": known, "collected": states["collected"], "waiting": waiting}
    return {**counts, "states": states, "link_sources": states}


def test_hostile_labels_stay_in_their_quotes():
    text = encode_metrics(make_status(crawl='x"} 1\ncoletor_fake 2\n\\\udcff'))
    samples = read_strictly(text)
    assert "\ncoletor_fake" not in text and len(samples) == len(read_strictly(encode_metrics(make_status())))
    assert ("crawl", 'x\\"} 1\\ncoletor_fake 2\\n\\\\\\\\udcff') in next(iter(samples))


def test_without_a_run_and_a_journal():
    read_strictly(encode_metrics(make_status(live=None, rates=rates_of(since_ms=None), reasons={}, states={})))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for the collector, which is the present one."""
    (tmp_path / "collected").mkdir()
    monkeypatch.chdir(tmp_path / "collected")
    return tmp_path / "collected"


def test_the_file_is_readable_by_others_and_no_unfinished_one_has_its_suffix(folder, monkeypatch):
    seen, rename = [], Path.rename
    monkeypatch.setattr(Path, "rename", lambda path, to: (seen.append(path.name), rename(path, to)))
    before = os.umask(0o077)
    try:
        write_metrics(folder / "coletor.prom", make_status())
    finally:
        os.umask(before)
    assert (folder / "coletor.prom").stat().st_mode & 0o777 == 0o644
    assert seen == [".aside-coletor.prom.tmp"]
    assert [path.name for path in folder.iterdir()] == ["coletor.prom"]


def test_a_folder_that_does_not_exist_is_named(folder):
    with pytest.raises(Usage, match="expected a folder that exists, found none at .*missing$"):
        write_metrics(folder / "missing" / "coletor.prom", make_status())


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "dangling", "", ".", "/", ".."])
def test_only_a_regular_file_is_replaced(folder, kind):
    target = folder / "coletor.prom"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "folder":
        target.mkdir()
    elif kind in ("link", "dangling"):
        target.symlink_to("/dev/stdout" if kind == "link" else "nowhere")
    else:
        target = Path(kind)
    mode, before = os.lstat(target).st_mode, sorted(folder.iterdir())
    with pytest.raises(Usage, match="expected a regular file"):
        write_metrics(target, make_status())
    assert os.lstat(target).st_mode == mode and sorted(folder.iterdir()) == before


def test_a_file_that_cannot_be_written_leaves_nothing(folder, monkeypatch):
    def refuse(descriptor, mode):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", refuse)
    with pytest.raises(OSError):
        write_metrics(folder / "coletor.prom", make_status())
    assert list(folder.iterdir()) == []
