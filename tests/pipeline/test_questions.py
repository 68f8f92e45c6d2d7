"""Every question of docs/questions.md and the README runs, and its answer has the columns that the document shows."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from examine.tables import sql
from tests.golden import GOLDEN
from tests.in_process import call
from tests.pipeline.test_demo import run_demo

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = ("docs/questions.md", "README.md")
BLOCK = re.compile(r'^    \$ (bin/sql [^"]*"[^"]*")\n((?:    .+\n)+)', re.M)
# The golden crawl has no failures, refusals, rejected links, duplicates, journal, or links between hosts.
NOT_GOLDEN = ("failures", "refused", "rejected", "journal", "content_digest", "linking_hosts")


class Question(NamedTuple):
    words: list[str]  # of the command
    header: list[str]  # the columns that the document shows
    number: int  # rows that it shows

    @property
    def has_golden_rows(self) -> bool:
        return not any(word in self.words[-1] for word in NOT_GOLDEN)


def read_questions() -> list[Question]:
    found = []
    for document in DOCUMENTS:
        text = (ROOT / document).read_text()
        assert text.count("$ bin/sql") == len(BLOCK.findall(text)), f"a command of {document} that is not recognised"
        for command, shown in BLOCK.findall(text):
            words = shlex.split(command)
            header, *rows = shown.splitlines()
            is_csv = "--csv" in words
            found.append(Question(words, header.strip().split("," if is_csv else None), len(rows) - (not is_csv)))
    return found


QUESTIONS = read_questions()


def ask(question: Question, crawl: Path, capsys) -> list[list[str]]:
    """Rows of the answer, the header first."""
    words = [str(crawl) if word == "demo/crawl" else word for word in question.words[1:]]
    assert call(sql.main, sql.NAME, *words) == 0, capsys.readouterr().err
    lines = capsys.readouterr().out.splitlines()
    if "--csv" in words:
        return [line.split(",") for line in lines]
    return [line.split() for line in [lines[0], *lines[2:]]]


def test_there_are_a_dozen_questions():
    assert len(QUESTIONS) >= 14 and all(question.number for question in QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: " ".join(question.words[-1].split())[:50])
def test_a_question_to_the_golden_crawl(question, capsys):
    header, *rows = ask(question, GOLDEN, capsys)
    assert header == question.header
    assert rows or not question.has_golden_rows


@pytest.mark.long
def test_all_questions_to_the_demonstration(make_once, capsys):
    crawl = make_once("demonstration", run_demo) / "demo" / "crawl"
    for question in QUESTIONS:
        header, *rows = ask(question, crawl, capsys)
        assert header == question.header and rows, question.words
