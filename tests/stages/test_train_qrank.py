"""bin/train-qrank on ranks that the text of a URL tells: what it prints, that it learns them, and its errors."""

import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from contract.qrank.weights import parse

ROOT = Path(__file__).resolve().parent.parent.parent
URLS = 1_500


def train(*words) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-P", "-m", "study.train_qrank", *map(str, words)], cwd=ROOT, capture_output=True, text=True
    )


def write_ranks(path: Path, seed: int, count: int = URLS) -> Path:
    """Short paths have large ranks, long ones with digits small ones."""
    chance = random.Random(seed)
    lines = ["# made for a test", "http://site.test 3"]
    for number in range(count):
        pieces = chance.randint(0, 5)
        url = f"http://site.test/{'/'.join(str(chance.randint(0, 99)) for _ in range(pieces))}/p{number}"
        lines.append(f"{url} {1000 * chance.uniform(0.8, 1.2) * 5.0**-pieces:.4f}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess]:
    folder = tmp_path_factory.mktemp("trained")
    ranks = write_ranks(folder / "ranks.txt", 1)
    return folder, train("--ranks", ranks, "--train", 1_000, "--test", 500, "--out", folder / "weights.npz")


@pytest.mark.long
def test_it_learns_what_the_urls_tell_and_prints_the_error_of_guesses_beside_it(trained):
    folder, done = trained
    assert done.returncode == 0, done.stderr
    assert f"{folder}/ranks.txt: 1,500 URLs with ranks; left out are lines that name servers: 1" in done.stdout
    assert "training on 1,000 URLs, testing on 500 others\n" in done.stdout
    rows = {line[:34].strip(): line[34:].split() for line in done.stdout.splitlines() if "%" in line}
    assert list(rows) == [
        "network, as a crawl applies it", "gradient boosted trees", "always the mean", "always the median",
        "the thesis's network, on its pages",
    ]  # fmt: skip
    error, correlation = (float(text.rstrip("%")) for text in rows["network, as a crawl applies it"])
    assert correlation > 0.75 and error < 0.75 * float(rows["always the median"][0].rstrip("%"))
    assert rows["always the mean"][1] == "-" and rows["the thesis's network, on its pages"] == ["14.0%", "-"]


@pytest.mark.long
def test_the_file_is_what_policies_read(trained):
    folder, _ = trained
    weights = parse(folder / "weights.npz", (folder / "weights.npz").read_bytes())
    urls = [b"http://site.test/p7\n", b"http://site.test/12/99/4/p7\n", b"http://site.test/1/22/3/44/5/p7\n"]
    levels = weights.levels(pa.array(urls, pa.large_binary())).tolist()
    assert levels == sorted(levels, reverse=True) and levels[0] > levels[2] + 20


@pytest.mark.long
def test_the_same_input_and_seed_give_the_same_file(trained):
    folder, _ = trained
    again = ["--ranks", folder / "ranks.txt", "--train", 1_000, "--test", 500, "--out", folder / "again.npz"]
    assert train(*again).returncode == 0
    assert (folder / "again.npz").read_bytes() == (folder / "weights.npz").read_bytes()
    assert train(*again, "--seed", 2).returncode == 0
    assert (folder / "again.npz").read_bytes() != (folder / "weights.npz").read_bytes()


@pytest.mark.long
def test_it_tests_on_another_file_and_says_where_there_is_too_little(trained):
    folder, _ = trained
    other = write_ranks(folder / "other.txt", 2, 1_000)
    done = train("--ranks", folder / "ranks.txt", "--test-ranks", other, "--out", folder / "w.npz")
    assert "training on 1,500 URLs, testing on 1,000 others, fewer than the 50,000 and 200,000" in done.stdout
    done = train("--ranks", folder / "ranks.txt", "--out", folder / "w.npz")
    assert "training on 300 URLs, testing on 1,200 others, fewer than the 50,000 and 200,000" in done.stdout


FEW = "".join(f"http://a.test/{number} 1\n" for number in range(999))


@pytest.mark.parametrize(
    "text, code, message",
    [
        (FEW, 65, "expected ranks of at least 1,000 URLs, found 999"),
        (FEW + "http://a.test/1 2\n", 65, "line 1000: expected each URL once, found 'http://a.test/1 2' again"),
        (FEW + "http://a.test/x nan\n", 65, "line 1000: expected a URL or server, a blank and its rank"),
        (None, 78, "--ranks: expected a file of URLs and ranks"),
    ],
)
def test_a_bad_file_is_named_and_writes_nothing(tmp_path, text, code, message):
    if text is not None:
        (tmp_path / "ranks.txt").write_text(text)
    done = train("--ranks", tmp_path / "ranks.txt", "--out", tmp_path / "weights.npz")
    assert done.returncode == code and message in done.stderr and "Traceback" not in done.stderr
    assert f"{tmp_path}/ranks.txt" in done.stderr and not (tmp_path / "weights.npz").exists()


@pytest.mark.parametrize(
    "words, code, message",
    [
        (["--out", "w.npz"], 64, "expected either --ranks FILE or --crawl DIR"),
        (["--crawl", "nowhere", "--out", "w.npz"], 65, "nowhere"),
        (["--ranks", "r", "--test-ranks", "a", "--test-crawl", "b", "--out", "w.npz"], 64, "at most one of"),
        (["--ranks", "r"], 64, "--out"),
        (
            ["--ranks", "r", "--out", "nowhere/w.npz"],
            64,
            "expected a file in a folder that exists, found nowhere/w.npz",
        ),
        (["--ranks", "r", "--out", "."], 64, "expected a file in a folder that exists, found ."),
    ],
)
@pytest.mark.sampled(2)
def test_a_wrong_command_line_is_explained(words, code, message):
    done = train(*words)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False) and message in done.stderr
