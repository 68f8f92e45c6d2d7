"""bin/report: every section and table, numbers equal to those of bin/status, hostile texts that do nothing."""

import json
import os
import re
import shutil
import subprocess
import threading
from dataclasses import asdict
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from contract import names
from contract.config import Config, Scheduler
from contract.crawl_folder import create, open_folder
from contract.errors import BadInput, Usage
from contract.rank_files import crawl_line, own_ranks
from contract.tables import FAILED
from examine.rates import estimate_end
from examine.report.__main__ import SECTIONS, expect_file, expect_folder, make_sections
from examine.report.charts import bars, draw_svg
from examine.report.collection import show_depth
from examine.report.figures import gather
from examine.report.page import make_page, show_section
from examine.report.progress import tell_commits, tell_estimate
from examine.report.ranks import read_ranks
from examine.report.sections import shorten
from examine.report.sums import BUCKETS_MAX, OTHERS, Bins, Tally, Timeline
from examine.report.words import PORTUGUESE, Words
from tests.golden import GOLDEN
from tests.reported_crawl import BODY_BYTES, EVIL, Structure, make_crawl
from tests.small_crawl import NOW_MS, Page

ROOT = Path(__file__).resolve().parent.parent.parent
ALLOWED = {"html", "head", "meta", "title", "style", "body", "header", "nav", "main", "section", "div", "p", "ul", "li"}
ALLOWED |= {"a", "h1", "h2", "figure", "figcaption", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td"}
ALLOWED |= {"svg", "g", "path", "rect", "line", "text", "circle", "clippath", "defs"}


def report_of(crawl, words=None, now_ms=NOW_MS, **options):
    words = words or Words()
    of = gather(open_folder(crawl), now_ms, **options)
    return of, make_page(of, make_sections(of, words), words)


def numbers_of(structure, part):
    return {row[0]: row[1] for row in structure.rows[part][1:]}


def check_harmless(page):
    structure = Structure(page)
    assert structure.tags <= ALLOWED
    assert structure.handlers == []
    assert all(address.startswith("#") for address in structure.addresses)
    assert "\x1b" not in page and "\u202e" not in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    return structure


def test_numbers_are_those_of_bin_status():
    of = gather(open_folder(GOLDEN), NOW_MS)
    sections = make_sections(of, Words())
    structure = check_harmless("".join(show_section(section, Words(), lambda _: "<svg/>") for section in sections))
    status = json.loads(subprocess.run([ROOT / "bin/status", "--crawl", GOLDEN, "--json"], capture_output=True).stdout)
    told = numbers_of(structure, "summary")
    pages = [int(told[name]) for name in told if name.startswith(("static pages", "dynamic pages"))]
    assert int(told["collected pages"]) == sum(pages) == status["collected"] > 0
    assert [told["known URLs"], told["waiting URLs"]] == [str(status["known"]), str(status["waiting"])]
    assert told["answers, with later visits"] == str(status["fetched"]["answered"])
    in_portuguese = tell_commits({"commits": 1_234, "entries": {"crawl": 1_230, "seed": 4}}, Words(PORTUGUESE))
    assert in_portuguese == "1.234 (1.230 crawl, 4 seed)"
    last = structure.rows["cycles"][-1]
    assert last[-3:] == [str(status[name]) for name in ("known", "collected", "waiting")]
    assert int(structure.rows["pages"][-1][1]) == status["fetched"]["answered"]
    assert sum(int(row[1]) for row in structure.rows["types"][1:]) == status["collected"]
    assert numbers_of(structure, "statuses")["304"] == "1"
    assert numbers_of(structure, "seeds")["200"] == "4"
    assert of.work.since_ms is None and of.left_out == []
    assert structure.pictures > 20 and len(structure.sections) == len(SECTIONS)


def test_an_empty_crawl_has_every_section_and_table(tmp_path):
    create(tmp_path / "crawl", 2)
    words = Words(PORTUGUESE)
    _, page = report_of(tmp_path / "crawl", words)
    structure = check_harmless(page)
    assert len(structure.sections) == len(SECTIONS) and structure.pictures == 0
    assert all(len(rows) >= 2 for rows in structure.rows.values()), "a table says that it has no rows"
    summary = numbers_of(structure, "summary")
    assert summary["páginas coletadas"] == "0" and summary["estimativa"] == "nada espera"
    assert words.missing == set()


def test_one_hostile_page_does_nothing(tmp_path):
    evil = EVIL.format(port=9)
    pages = {
        "http://a.test/?q=%3Cscript%3E": Page(),
        "http://b.test/": Page(FAILED, reason=evil, message=evil, status=0),
        "http://c.test/gone": Page(status=404),
    }
    crawl = make_crawl(tmp_path / "crawl", pages, evil)
    words = Words(PORTUGUESE)
    _, page = report_of(crawl.crawl.path, words)
    structure = check_harmless(page)
    assert words.missing == set()
    assert len(numbers_of(structure, "types")) == 1, "the hostile type is there, as text"
    dead = {row[0] for row in structure.rows["dead-seeds"][1:]}
    assert dead == {"http://b.test/", "http://c.test/gone"}
    assert [row[2] for row in structure.rows["seeds-by-host"][1:]] == ["morta", "morta", ""]


def test_one_page(tmp_path):
    of = gather(open_folder(make_crawl(tmp_path / "crawl", {"http://a.test/": Page()}).crawl.path), NOW_MS)
    sections = make_sections(of, Words())
    assert [row[1] for row in sections[0].parts[0].rows[:2]] == [1, 1], "one page, without a query"
    assert (of.cycles.stored_bytes, of.cycles.decoded_bytes) == (BODY_BYTES, 2 * BODY_BYTES)


def test_how_often_domains_were_followed_deeper(tmp_path):
    config = Config(scheduler=Scheduler(policy="new-domains"))
    pages = {"http://a.test/": Page(links=["http://b.test/", "http://c.test/"]), "http://d.test/": Page()}
    of = gather(open_folder(make_crawl(tmp_path / "crawl", pages, config=config).crawl.path), NOW_MS)
    words = Words(PORTUGUESE)
    parts = {part.name: part.rows for part in show_depth(of, words).parts}
    assert [row[1] for row in parts["new-domains"]] == [1, 1], "a.test leads to two domains, d.test to none"
    assert sum(row[1] for row in parts["own-links"]) == 2 and words.missing == set()


def test_damage_ends_the_report_or_is_named_in_it(tmp_path):
    crawl = Path(shutil.copytree(GOLDEN, tmp_path / "crawl"))
    table = sorted(crawl.glob(f"cycles/*/extractor/{names.METADATA}"))[0]
    table.write_bytes(table.read_bytes()[:-9])
    with pytest.raises(BadInput, match=f"{names.METADATA}.*--allow-partial"):
        gather(open_folder(crawl), NOW_MS)
    of = gather(open_folder(crawl), NOW_MS, allow_partial=True)
    assert len(of.left_out) == 1 and str(table) in of.left_out[0]
    page = make_page(of, make_sections(of, Words())[:1], Words())
    assert "This report is partial" in page and names.METADATA in page


@pytest.mark.parametrize(
    "waiting, due_ms, pages, told",
    [
        (0, None, 0, "nada espera"),
        (1, NOW_MS + 1, 9, "sem estimativa: tudo o que espera tem a vez mais tarde, a primeira URL em "),
        (1, 0, 0, "sem estimativa: nenhuma página chegou no tempo que o diário cobre"),
        (7_200, 0, 3_600, "cerca de 2 h para 7.200 URLs em espera, a 1 páginas/s (a última hora); novas URLs"),
        (90, 0, 5_400, "cerca de 1 min para 90 URLs em espera, a 1,5 páginas/s (a última hora); novas URLs"),
    ],
)
def test_the_estimate_in_portuguese(waiting, due_ms, pages, told):
    rate = {"covers_s": 3_600.0, "pages_per_s": pages / 3_600}
    found = estimate_end(waiting, {"hour": rate, "day": rate}, is_running=True, due_ms=due_ms, now_ms=NOW_MS)
    words = Words(PORTUGUESE)
    assert tell_estimate(asdict(found), words).startswith(told) and words.missing == set()
    assert tell_estimate(asdict(found), Words()) == found.text
    idle = estimate_end(1_234, {}, is_running=False, due_ms=None, now_ms=NOW_MS)
    told = "sem estimativa: nenhuma execução em andamento, 1.234 URLs esperam"
    assert tell_estimate(asdict(idle), words) == told


def test_ranks_are_those_of_this_crawl(tmp_path):
    crawl = make_crawl(tmp_path / "crawl", {"http://a.test/": Page()}).crawl
    ranks = tmp_path / "ranks.txt"
    ranks.write_text("# ranks\nhttp://a.test/x 0.25\nhttp://a.test 0\nhttp://other.test/ 0.5\n")
    found = read_ranks(ranks, crawl)
    assert found.best[0] == ("http://other.test/", 0.5) and found.rows()[0] == ("0", 1)
    ranks.write_text("http://other.test/ 0.5\n")
    with pytest.raises(BadInput, match="expected ranks of this crawl"):
        read_ranks(ranks, crawl)
    ranks.write_bytes(crawl_line(crawl.crawl_id) + b"http://a.test/ 0.5\n")
    assert read_ranks(ranks, crawl).best == [("http://a.test/", 0.5)]
    ranks.write_bytes(b"# PARTIAL: <b>\x1b[2J\n" + ranks.read_bytes())
    words = Words(PORTUGUESE)
    _, page = report_of(crawl.path, words, ranks_file=ranks)
    check_harmless(page)
    assert "Seu cabeçalho diz: PARTIAL: &lt;b&gt;" in page and words.missing == set(), "a partial graph is labelled"
    ranks.write_bytes(crawl_line("0123") + b"http://a.test/ 0.5\n")
    with pytest.raises(BadInput, match=f"expected ranks of crawl {crawl.crawl_id}, found those of crawl 0123; make"):
        read_ranks(ranks, crawl)
    assert len(gather(crawl, NOW_MS, allow_partial=True, ranks_file=ranks).left_out) == 1
    ranks.write_text("http://a.test/ much\n")
    with pytest.raises(BadInput, match="line 1"):
        read_ranks(ranks, crawl)


def test_sums_stay_small_and_lose_nothing():
    timeline = Timeline("pages")
    for begin_s in (0, 10_000_000, 90_000_000):
        timeline.add(np.arange(begin_s, begin_s + 1_000) * 1000, np.ones(1_000))
    rows = timeline.rows()
    assert len(rows) <= BUCKETS_MAX and sum(row["pages"] for row in rows) == 3_000
    assert rows[0] == {"at_ms": 0, "pages": 1_000.0}
    bins = Bins((0, 1, 10))
    bins.add(np.array([0, 0, 5, 500]))
    assert bins.rows() == [("0", 2), ("1 \u2013 9", 1), ("\u2265 10", 1)] and bins.mean == 126.25
    tally = Tally()
    for number in range(20_000):
        tally.count(f"word {number}", 1)
    tally.count("often", 9)
    assert tally.most_common(1) == [("often", 9), (OTHERS, 20_000)] and tally.total() == 20_009


def test_bars_of_labels_that_were_shortened_alike_stay_apart():
    urls = [
        f"http://www.example.br/a/very/long/{way}/to/the/page/of/another/page" for way in ("first", "other", "last")
    ]
    labels = [shorten(url) for url in urls]
    assert len({*labels}) == 1 and labels[0].startswith("http://www") and labels[0].endswith("another/page")
    svg = draw_svg(bars([(label, 5) for label in labels], "pages", Words()), Words())
    assert all(f">{labels[0]}{end}<" in svg for end in ("", "_2", "_3"))


def test_the_command_writes_the_file_whole_and_the_pictures(tmp_path):
    crawl, out = tmp_path / "crawl", tmp_path / "report.html"
    create(crawl, 1)
    command = [ROOT / "bin/report", "--crawl", crawl, "--out", out]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{out}: 0 pages, 0 pictures\n" and out.read_text().endswith("</html>\n")
    assert not list(tmp_path.glob(".*"))
    own_ranks(crawl).parent.mkdir(parents=True)
    own_ranks(crawl).write_bytes(crawl_line("another"))
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 65 and str(own_ranks(crawl)) in done.stderr, "the crawl's own ranks are read"
    command[-1] = tmp_path / "none" / "report.html"
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 64 and str(command[-1]) in done.stderr


def test_a_report_replaces_no_device_and_no_file_of_a_crawl(tmp_path):
    crawl, pipe, link = tmp_path / "crawl", tmp_path / "pipe", tmp_path / "link"
    create(crawl, 1)
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "elsewhere.html")
    before = (crawl / names.CRAWL_FILE).read_bytes()
    for out in (pipe, link, tmp_path, tmp_path / "none" / "report.html", crawl / names.CRAWL_FILE):
        with pytest.raises(Usage, match=str(out)):
            expect_file(out)
    assert (crawl / names.CRAWL_FILE).read_bytes() == before
    expect_file(tmp_path / "report.html")
    for folder in (pipe, crawl / names.CRAWL_FILE, crawl / "pictures"):
        with pytest.raises(Usage, match=str(folder)):
            expect_folder(folder)
    expect_folder(tmp_path / "pictures")


@pytest.mark.long
def test_in_chromium_a_report_asks_for_nothing_and_runs_nothing(needs, tmp_path):
    program = needs("chromium")
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        evil = EVIL.format(port=server.server_port)
        pages = {"http://a.test/": Page(), "http://b.test/": Page(FAILED, reason=evil, message=evil, status=0)}
        crawl = make_crawl(tmp_path / "crawl", pages, evil).crawl.path
        pictures = ["--out", tmp_path / "report.html", "--png", tmp_path / "png"]
        subprocess.run([ROOT / "bin/report", "--crawl", crawl, *pictures], check=True, capture_output=True)
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        command = [program, *flags, "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
        run = subprocess.run(
            [*command, f"http://127.0.0.1:{server.server_port}/report.html"], capture_output=True, text=True
        )
        server.shutdown()
    assert "CONSOLE" not in run.stderr, run.stderr[-2_000:]
    assert set(asked) - {"/favicon.ico"} == {"/report.html"}
    assert "<title>Report of the crawl" in run.stdout and 'id="evil"' not in run.stdout
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (tmp_path / "png").iterdir())
    assert len(list((tmp_path / "png").iterdir())) == run.stdout.count("<figure>") > 10
