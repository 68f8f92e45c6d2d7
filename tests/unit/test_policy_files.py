"""Files that a policy reads: the crawl's own copies under their checksum, which outlive the file and a move."""

from dataclasses import replace

import numpy as np
import pytest

from contract import names
from contract.config import Config, Scheduler
from contract.crawl_config import read_crawl_config, write_crawl_config
from contract.crawl_folder import create
from contract.errors import BadConfiguration, BadInput
from contract.policies import describe
from contract.policies.pagerank import FILE_KEY
from contract.policy_files import adopt, files_of, is_copy, verify_files
from contract.rank_files import read_ranks
from storage.errors import Damaged


@pytest.fixture
def crawl(tmp_path):
    return create(tmp_path / "crawl", 2, hash_seed=17)


def ranked(path) -> Config:
    return replace(Config(), scheduler=Scheduler(policy="pagerank", ranks_file=str(path)))


def write(path, text="http://a.br/ 1\nhttp://b.br 2\n"):
    path.write_text(text)
    return path


def copies(crawl):
    return sorted((crawl.path / names.FILES).iterdir())


def test_a_file_is_copied_under_its_checksum_and_named_by_the_configuration(crawl, tmp_path):
    adopted = adopt(crawl, ranked(write(tmp_path / "ranks.txt")))
    (copy,) = copies(crawl)
    assert adopted.scheduler.ranks_file == str(copy) and is_copy(crawl.path, copy, ".npy")
    assert files_of(crawl.path, adopted) == verify_files(crawl.path, adopted) == {FILE_KEY: copy}
    keys = crawl.keys()
    assert read_ranks(copy).tolist() == sorted([(keys.of("http://a.br/"), 1.0), (keys.of("http://b.br"), 2.0)])


def test_adopting_twice_gives_the_same_copy(crawl, tmp_path):
    given = ranked(write(tmp_path / "ranks.txt"))
    adopted = adopt(crawl, given)
    before = copies(crawl)[0].stat()
    assert adopt(crawl, given) == adopt(crawl, adopted) == adopted
    assert len(copies(crawl)) == 1 and copies(crawl)[0].stat().st_mtime_ns == before.st_mtime_ns


def test_the_order_of_lines_and_comments_make_no_other_copy(crawl, tmp_path):
    first = adopt(crawl, ranked(write(tmp_path / "one")))
    second = adopt(crawl, ranked(write(tmp_path / "two", "# ranks\r\nhttp://b.br 2.0\r\nhttp://a.br/ 1e0\r\n")))
    assert first == second


def test_a_changed_source_changes_nothing_until_it_is_given_again(crawl, tmp_path):
    source = write(tmp_path / "ranks.txt")
    first = adopt(crawl, ranked(source))
    content = copies(crawl)[0].read_bytes()
    write(source, "http://a.br/ 5\n")
    assert adopt(crawl, first) == first and copies(crawl)[0].read_bytes() == content
    second = adopt(crawl, ranked(source))
    assert second != first and len(copies(crawl)) == 2
    assert verify_files(crawl.path, first) != verify_files(crawl.path, second)
    assert describe(first, files_of(crawl.path, first)) != describe(second, files_of(crawl.path, second))
    source.unlink()
    assert verify_files(crawl.path, second)


def test_other_policies_need_no_file(crawl, tmp_path):
    for config in (Config(), replace(Config(), scheduler=Scheduler(policy="fifo", ranks_file="/nothing/there"))):
        assert adopt(crawl, config) == config and files_of(crawl.path, config) == verify_files(crawl.path, config) == {}
    assert not (crawl.path / names.FILES).exists()


@pytest.mark.parametrize("kind", ["missing", "folder", "device", "NUL"])
def test_a_file_that_cannot_be_read(crawl, tmp_path, kind):
    path = tmp_path / ("\0" if kind == "NUL" else "") / "ranks.txt"
    if kind == "folder":
        path.mkdir()
    elif kind == "device":  # it has an end, others have none
        path.symlink_to("/dev/null")
    with pytest.raises(BadConfiguration, match="scheduler.ranks_file: expected a file, found .*ranks.txt") as caught:
        adopt(crawl, ranked(path))
    assert caught.value.exit_code == 78 and not (crawl.path / names.FILES).exists()


def test_a_file_of_something_else_leaves_nothing(crawl, tmp_path):
    with pytest.raises(BadInput, match="ranks.txt: line 2: expected a URL or server"):
        adopt(crawl, ranked(write(tmp_path / "ranks.txt", "http://a.br/ 1\nhttp://b.br/ nan\n")))
    assert not (crawl.path / names.FILES).exists()


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "other ranks"])
def test_a_copy_that_is_not_as_its_name_says_is_damaged(crawl, tmp_path, damage):
    adopted = adopt(crawl, ranked(write(tmp_path / "ranks.txt")))
    (copy,) = copies(crawl)
    content = copy.read_bytes()
    if damage == "gone":
        copy.unlink()
    elif damage == "other ranks":
        np.save(copy, read_ranks(copy)[:1])
    else:
        copy.write_bytes(content[:-1] if damage == "cut" else content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(Damaged, match=copy.name):
        verify_files(crawl.path, adopted)
    copy.write_bytes(content)
    assert verify_files(crawl.path, adopted)


def test_a_crawl_folder_that_was_moved_has_its_copy(crawl, tmp_path):
    adopted = adopt(crawl, ranked(write(tmp_path / "ranks.txt")))
    write_crawl_config(crawl.path, adopted)
    assert str(tmp_path) not in (crawl.path / names.CONFIGURATION).read_text()
    moved = crawl.path.rename(tmp_path / "moved")
    assert list(verify_files(moved, adopted).values()) == [
        moved / names.FILES / files_of(moved, adopted)[FILE_KEY].name
    ]
    again = adopt(replace(crawl, path=moved), read_crawl_config(moved))
    assert verify_files(moved, again) == verify_files(moved, adopted)
    assert again.scheduler.ranks_file.startswith(str(moved))


def test_a_key_that_names_the_copy_of_another_is_refused(crawl, tmp_path):
    """The copy is whole: a stage that could not read it would take it for damaged, and set it aside."""
    terms = Scheduler(policy="focused", terms_file=str(write(tmp_path / "terms.txt", "water\n")))
    centralities = Scheduler(policy="common-crawl", centralities_file=str(write(tmp_path / "c.txt", "example.br 1\n")))
    for settings in (terms, centralities):
        adopted = adopt(crawl, replace(Config(), scheduler=settings))
        (copy,) = files_of(crawl.path, adopted).values()
        with pytest.raises(BadInput, match=f"{copy.name}: .*expected a (URL|text)"):
            adopt(crawl, ranked(copy))
        assert adopt(crawl, adopted) == adopted
    weighted = adopt(crawl, replace(Config(), scheduler=Scheduler(policy="neural")))
    with pytest.raises(BadInput, match="expected weights of QRank"):
        adopt(crawl, replace(Config(), scheduler=replace(weighted.scheduler, weights_file=terms.terms_file)))


def test_keys_of_another_crawl_are_another_copy(crawl, tmp_path):
    other = create(tmp_path / "other", 2, hash_seed=18)
    given = ranked(write(tmp_path / "ranks.txt"))
    first, second = (adopt(of, given).scheduler.ranks_file for of in (crawl, other))
    assert first.rpartition("/")[2] != second.rpartition("/")[2]


def test_a_folder_of_the_operator_that_is_called_files_is_no_copy(crawl, tmp_path):
    (tmp_path / names.FILES).mkdir()
    source = write(tmp_path / names.FILES / "ranks.npy")
    assert not is_copy(crawl.path, source, ".npy")
    adopted = adopt(crawl, ranked(source))
    assert adopted.scheduler.ranks_file == str(copies(crawl)[0])
