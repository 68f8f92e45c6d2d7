"""The dictionary of a crawl: trained once on its pages, carried by every file, and damage of either is told."""

import os
import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from contract import names, warc
from contract.config import Config
from contract.crawl_folder import create
from contract.dictionary import encode_dictionary, read_dictionary
from contract.log import CRAWL
from contract.plan import Plan, write_plan
from contract.warc import PageReader
from stages.extractor.__main__ import extract_pages
from stages.fetcher import dictionary
from stages.fetcher.dictionary import find, find_or_train, look_at_pages, read_samples, take_in_turn
from stages.fetcher.resume import read_history, read_page_file
from storage.errors import Damaged, UnknownFormat
from storage.frames import DICTIONARY_FRAME_MAGIC, dictionary_id, skippable
from storage.publish import publishing
from tests.extractor_lab import Tables
from tests.fetcher_lab import NO_ROBOTS, RawServer, ok
from tests.stages.test_fetcher_cycle import SmallCycle
from tests.unit.test_fetcher_repository import NOW_MS, exchanged, open_repository

ROOT = Path(__file__).resolve().parents[2]
WORDS = [f"word{number}" for number in range(3000)]


def some_page(dice: random.Random) -> bytes:
    items = "".join(
        f"<li class='item'><a href='/{dice.choice(WORDS)}'>{dice.choice(WORDS)}</a></li>\n" for _ in range(20)
    )
    return (
        f"<!doctype html><html><head><title>{dice.choice(WORDS)}</title></head><body><ul>\n{items}</ul></body></html>"
    ).encode()


def add_cycle(crawl: Path, cycle: int, servers: int, pages: int, **options) -> Path:
    """A fetched cycle: so many pages of the first server, and one of each other server."""
    dice = random.Random(cycle)
    folder = crawl / names.cycle(cycle) / names.FETCHER
    with publishing(folder) as manifest:
        repository = open_repository(folder, **options)
        for number in range(pages + servers - 1):
            server = f"http://s{max(0, number - pages + 1)}.test"
            if number % 10 == 0:
                repository.write_exchange(exchanged(f"{server}/robots.txt", robots_for=server))
            repository.write_exchange(exchanged(f"{server}/{number}", some_page(dice), 200, "Server: test"))
        repository.write_outcome("http://nowhere.test/", "failed", "dns", NOW_MS, is_final=True)
        repository.close()
        manifest["counts"] = {}
    return folder / names.PAGES / "00000.warc.zst"


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A crawl folder with a dictionary."""
    crawl = create(tmp_path_factory.mktemp("trained") / "crawl", 1).path
    write_plan(crawl, Plan(1, CRAWL, 0, 1, None, NOW_MS, Config()))
    add_cycle(crawl, 1, 30, 500)
    assert find_or_train(crawl) is not None
    return crawl


def test_too_few_pages_train_nothing(tmp_path):
    crawl = create(tmp_path / "crawl", 1).path
    assert find_or_train(crawl) is None
    add_cycle(crawl, 1, 30, 300)
    assert find_or_train(crawl) is None and not (crawl / names.DICTIONARY).exists()
    add_cycle(crawl, 2, 30, 300)
    assert find_or_train(crawl) is not None


def test_it_is_trained_once_and_pages_get_smaller(tmp_path, trained):
    found = find_or_train(trained)
    assert (
        found == find(trained) == read_dictionary(trained / names.DICTIONARY)
        and len(found) <= dictionary.DICTIONARY_BYTES
    )
    plain = add_cycle(tmp_path / "plain", 2, 10, 200)
    small = add_cycle(tmp_path / "small", 2, 10, 200, dictionary=found)
    sizes = [plain.stat().st_size, small.stat().st_size - PageReader(small).first_offset]
    assert sizes[1] < 0.8 * sizes[0]
    for one, other in zip(PageReader(plain).records(), PageReader(small).records(), strict=True):
        assert (one.type, one.url) == (other.type, other.url) and (one.block == other.block or one.type == "warcinfo")
        assert PageReader(small).record_at(other.offset) == other


def test_samples_are_spread_over_servers(trained):
    pages = list(look_at_pages(trained))
    assert len(pages) == 529
    first = [page.server for page in list(take_in_turn(pages))[:30]]
    assert len(set(first)) == 30
    samples = list(read_samples(take_in_turn(pages)))
    kinds = Counter(warc.decode_record(sample, 0, 0).type for sample in samples)
    assert kinds["response"] == 529 and 0 < kinds["request"] < 100 and set(kinds) == {"response", "request"}


def test_samples_are_bounded(trained, monkeypatch):
    pages = list(look_at_pages(trained))
    monkeypatch.setattr(dictionary, "SAMPLES_MAX_BYTES", 20_000)
    assert sum(map(len, read_samples(take_in_turn(pages)))) <= 20_000
    monkeypatch.setattr(dictionary, "READ_MAX", 100)
    assert len(list(look_at_pages(trained))) < 100


def test_a_damaged_page_file_is_no_hindrance(tmp_path):
    crawl = create(tmp_path / "crawl", 1).path
    path = add_cycle(crawl, 1, 3, 600)
    os.truncate(path, path.stat().st_size - 10)
    add_cycle(crawl, 2, 3, 10).unlink()
    assert find_or_train(crawl) is not None


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def renumber(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"dictionary 1 ", b"dictionary 2 ", 1))


def forge(path: Path) -> None:
    path.write_bytes(encode_dictionary(b"no dictionary"))


@pytest.mark.parametrize("harm", [flip, cut, empty, renumber, forge])
@pytest.mark.sampled(2)
def test_a_damaged_dictionary_is_told_and_not_used(tmp_path, trained, capsys, harm):
    crawl = create(tmp_path / "crawl", 1).path
    path = shutil.copy(trained / names.DICTIONARY, crawl / names.DICTIONARY)
    harm(path)
    before = path.read_bytes()
    with pytest.raises((Damaged, UnknownFormat), match=names.DICTIONARY):
        read_dictionary(path)
    assert find_or_train(crawl) is None and path.read_bytes() == before
    assert f"{names.DICTIONARY}" in (told := capsys.readouterr().err) and "without a dictionary" in told
    checked = subprocess.run([ROOT / "bin" / "check", "--crawl", crawl], capture_output=True, text=True)
    assert (
        checked.returncode == 65
        and "WRONG  the dictionary of pages is whole" in checked.stdout
        and names.DICTIONARY in checked.stdout
    )


def test_show_and_check_know_it(trained):
    shown = subprocess.run([ROOT / "bin" / "show", trained / names.DICTIONARY], capture_output=True, text=True)
    assert shown.returncode == 0 and f"dictionary_id  {dictionary_id(find(trained))}\n" in shown.stdout, shown.stderr
    checked = subprocess.run([ROOT / "bin" / "check", "--crawl", trained], capture_output=True, text=True)
    assert checked.returncode == 0 and "ok     the dictionary of pages is whole" in checked.stdout


def test_a_torn_file_with_a_dictionary_is_cut_like_any_other(tmp_path, trained):
    path = add_cycle(tmp_path, 1, 1, 3, dictionary=find(trained))
    whole, records = path.read_bytes(), list(PageReader(path).records())
    first = PageReader(path).first_offset
    for size in (1, 3, 5, 9, first - 1, first, first + 3, records[1].offset - 1):
        path.write_bytes(whole[:size])
        assert read_page_file(path, 0).whole_bytes == 0
        with pytest.raises(Damaged, match="00000.warc.zst"):
            read_page_file(path, len(whole))
    for size in range(records[-3].offset + 1, records[-1].offset, 7):
        path.write_bytes(whole[:size])
        assert read_page_file(path, 0).whole_bytes == records[-3].offset
    folder = path.parent.parent
    path.write_bytes(whole[: first - 1])
    history = read_history(folder)
    assert history.past == [] and not path.exists()


def test_a_damaged_first_frame_is_damage_with_its_place(tmp_path, trained):
    path = add_cycle(tmp_path, 1, 1, 3, dictionary=find(trained))
    whole, first = path.read_bytes(), PageReader(path).first_offset
    for content, words in [
        (whole[: first // 2] + bytes([whole[first // 2] ^ 1]) + whole[first // 2 + 1 :], "expected a"),
        (whole[: first - 9], "expected a whole dictionary, found the end of the file"),
        (skippable(b"nonsense", DICTIONARY_FRAME_MAGIC) + whole[first:], "expected a dictionary, found bytes"),
    ]:
        path.write_bytes(content)
        with pytest.raises(Damaged, match=rf"00000.warc.zst at byte 0: {words}"):
            PageReader(path)
    path.write_bytes(whole[first:])  # the dictionary is gone
    with pytest.raises(Damaged, match="at byte 0: .*Dictionary mismatch"):
        list(PageReader(path).records())


def test_a_cycle_with_a_dictionary(tmp_path, trained):
    with RawServer(
        lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else ok(b"<a href=/x>", "Content-Type: text/html")
    ) as server:
        urls = [f"http://one.test:{server.port}/{number}" for number in range(3)]
        cycle = SmallCycle(tmp_path, urls, warc_dictionary=True)
        shutil.copy(trained / names.DICTIONARY, cycle.crawl.path / names.DICTIONARY)
        done = cycle.run()
    assert done.returncode == 0, done.stderr
    path = cycle.out / names.PAGES / "00000.warc.zst"
    assert path.read_bytes().startswith(DICTIONARY_FRAME_MAGIC.to_bytes(4, "little"))
    extract_pages(cycle.out, tmp_path / "tables", Config())
    tables = Tables(tmp_path / "tables")
    assert set(tables.by_url(names.COLLECTED)) == set(urls) and tables.counts["pages_parsed"] == 3
    row = tables.by_url(names.METADATA)[urls[1]]
    shown = subprocess.run([ROOT / "bin" / "show", path, "--at", str(row["offset"])], capture_output=True, text=True)
    assert shown.returncode == 0 and "<a href=/x>" in shown.stdout, shown.stderr
