"""Traps that a URL shows, each beside the good URLs that look like it."""

from time import process_time

import pytest

from contract.scope.traps import (
    find_mark,
    goes_deeper,
    has_endless_labels,
    has_far_date,
    has_host,
    has_repeats,
    has_session_segment,
    may_hide_session,
)

TODAY = 2026
HEX = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "path, most, found",
    [
        ("a/b/c/d", 1, False),
        ("a/b/a", 1, True),
        ("a/b/a", 2, False),
        ("a/a/a", 2, True),
        ("a/a/a", 3, False),
        ("a/b/a/b/a/b", 3, True),
        ("x/a/b/a/b/a/b/y", 3, True),
        ("a/b/a/b", 3, False),
        ("a/b/c/a/b/c/a/b", 3, False),
        ("a/b/c/a/b/c/a/b/c", 3, True),
        ("a/b/a/b/x/a/b", 3, False),
        ("a/b/a/b/a/b", 4, False),
        ("a/b/a/b/a/b/a/b", 4, True),
        ("a/b/a/b", 2, False),
        ("a/b/c/d/e/f/g/h/" * 2 + "a/b/c/d/e/f/g/h", 3, True),
    ],
)
def test_repeated_segments_and_runs(path, most, found):
    assert has_repeats(path.split("/"), most) is found


@pytest.mark.parametrize(
    "target, found",
    [
        ("/2087/05/", True),
        ("/x/2087-05-14", True),
        ("/2087/05/titulo.html", True),
        ("/x/2032/01", True),
        ("/agenda/2087/5", True),
        ("/2031/12/", False),
        ("/2026/11/", False),
        ("/thread/2087/5", False),
        ("/item/2087/13/", False),
        ("/item/2087/051", False),
        ("/item/2087", False),
        ("/1911/", False),
        ("/1911/05/12/jornal.html", False),
        ("/1911/05/", False),
        ("/2009/03/post-de-blog", False),
        ("/agenda/2015/03/", True),
        ("/eventos/2015-03-04", True),
        ("/events/2015/03/04/congresso", False),
        ("/agenda/2022/03/", False),
        ("/events/2015", False),
        ("/en/calendar.php/1911/05", True),
        ("/prevents/2015/03/", False),
        ("/agenda/2026/11/2087/05/", False),
        ("/x/12087/05/", False),
        ("/?year=2190&month=4", True),
        ("/?ano=2190", True),
        ("/?ano=1911", False),
        ("/?ano=1911&mes=4", True),
        ("/?ano=2009&mes=4", False),
        ("/calendario?ano=2009&mes=04", True),
        ("/?date=1911-01-01", True),
        ("/?date=2009-01-01", False),
        ("/?data=14/05/2087", True),
        ("/?data=14%2F05%2F2087", True),
        ("/?date=20870514", True),
        ("/?mes=05/2087", True),
        ("/?date=2024-01", False),
        ("/?cal=2015-03", True),
        ("/?tribe-bar-date=2087-05-01", True),
        ("/?d%5Byear%5D=2190&x", True),
        ("/?start_date=2087-1", True),
        ("/?date=190512", False),
        ("/?id=2190", False),
        ("/?plano=2190", False),
        ("/?update=2087-05-01", False),
        ("/?year=21900", False),
        ("/?year=2190a", False),
        ("/?q=year&id=2190", False),
        ("/?year=", False),
        ("/?date=0000-00-00", False),
        ("/?model=1911-01", False),
        ("/?year=2024&year=2190", True),
    ],
)
def test_far_dates(target, found):
    path, _, query = target.partition("?")
    assert has_far_date(path, query, TODAY, 5) is found
    assert not found or query or find_mark(path)


def test_the_distance_of_dates_is_configured():
    assert not has_far_date("/2087/05/", "", TODAY, 61) and has_far_date("/2087/05/", "", TODAY, 60)
    assert not has_far_date("/", "date=1911-01-01", TODAY, 115) and has_far_date("/", "date=1911-01-01", TODAY, 114)


@pytest.mark.parametrize(
    "path, found",
    [
        (f"/x;jsessionid={HEX}", True),
        ("/x;jsessionid=1", True),
        ("/a;PHPSESSID=x/b", True),
        ("/(S(lit3py55t21z5v55vlm25s55))/x.aspx", True),
        ("/(s(x)f(y))", True),
        (f"/sid={HEX}/x", True),
        (f"/x/session-{HEX}", True),
        (f"/PHPSESSID_{HEX}.html", True),
        (f"/sess_{HEX}/", True),
        (f"/sessao={HEX}", True),
        (f"/{HEX}", False),
        (f"/session/{HEX}", False),
        ("/session/123e4567-e89b-12d3-a456-426614174000", False),
        ("/session-notes-of-the-general-assembly", False),
        ("/session-" + "a" * 30, False),
        ("/session-" + "1" * 30, False),
        (f"/session-{HEX[:23]}", False),
        (f"/obsession-{HEX}", False),
        (f"/side-{HEX}", False),
        ("/universidade/presidente-da-republica", False),
        ("/x;v=1/y", False),
        ("/Lisp_(S(x))", False),
        (f"/assets/app-{HEX}.css", False),
    ],
)
def test_session_segments(path, found):
    assert has_session_segment(path) is found
    assert not found or find_mark(path) or may_hide_session(path)


@pytest.mark.parametrize(
    "path, found",
    [
        ("/http:/b.org/x", True),
        ("/x/https:/b.org", True),
        ("/http//b.org", True),
        ("/http:", True),
        ("/HTTP:/b.org", True),
        ("/www.b.org", True),
        ("/x/www.b.org/y", True),
        ("/www2.b.org:80/", True),
        ("//www.b.org/", True),
        ("/x/a.test/y", True),
        ("/a.test", True),
        ("/a.test:80/", True),
        ("/web/2020/http://www.b.org/", False),
        ("/web/2020/https://b.org/x", False),
        ("/proxy/http%3A%2F%2Fb.org%2F", False),
        ("/web/2020/http://a.test/", True),
        ("/wiki/HTTP:_The_Guide", False),
        ("/http/intro", False),
        ("/https.html", False),
        ("/www/x", False),
        ("/www.html", False),
        ("/www.b.html", False),
        ("/www.b.org.html", False),
        ("/x/a.test.html", False),
        ("/xa.test", False),
        ("/b.org/x", False),
        ("/www.b.html/www.b.org", True),
        ("/a.testing/a.test", True),
    ],
)
def test_hosts_in_paths(path, found):
    assert has_host(path, "a.test") is found
    assert not found or find_mark(path) or "a.test" in path


def test_a_host_without_a_dot_is_a_word():
    assert not has_host("/intranet/intranet", "intranet")


@pytest.mark.parametrize(
    "host, most, found",
    [
        ("a.b.c.com.br", 5, False),
        ("a.b.c.com.br", 4, True),
        ("www.www.a.br", 8, False),
        ("www.www.www.a.br", 8, True),
        ("a.b.a.b.a.br", 8, True),
        ("br", 1, False),
    ],
)
def test_endless_sub_domains(host, most, found):
    assert has_endless_labels(host, most) is found


@pytest.mark.parametrize(
    "page, target, most, found",
    [
        ("/y/y/", "/y/y/y/", 2, True),
        ("/y/", "/y/y/", 2, False),
        ("/y/", "/y/y/", 1, True),
        ("/a/b/a/b/", "/a/b/a/b/a/b/", 2, True),
        ("/a/b/a/b/", "/a/b/a/b/a/c/", 2, False),
        ("/a/b/a/", "/a/b/a/b/", 2, False),
        ("/y/y/", "/y/y/", 2, False),
        ("/y/y/x/", "/y/y/y/", 2, False),
        ("/y/y/", "/y/y//", 2, False),
        ("/a.test/", "/a.test/a.test/", 2, False),
    ],
)
def test_ever_deeper(page, target, most, found):
    assert goes_deeper("http://a.test" + page, "http://a.test" + target, most) is found
    assert not goes_deeper("http://a.test" + page, "http://b.test" + target, most)


HOSTILE = [
    "/" + "a/" * 4000,
    "/" + "a/b/" * 2000,
    "/2087/5" * 1100,
    "/www.a" * 1300,
    "/" + "www." * 2000,
    "/http:" * 1300,
    "/(S(" * 2000,
    "/(" + "S(x)" * 2000,
    ";sid" * 2000,
    "sid-" * 2000,
    "/session" * 1000,
    "/sid=" + "1" * 8000,
    "/aspsessionid" * 600,
    "/" + "calend" * 1300,
]
HOSTILE_QUERIES = [
    "ano=1900&" * 880,
    "mes" * 2600,
    "ano=1900=" * 880,
    "date=1-1-" * 880,
    "=1900-01" * 1000,
    "%5Bmes" * 1300 + "&ano=1900" * 20,
]


STEPS_MAX_S = (
    2.0  # of 128 KB, sixteen times the longest URL; a search that starts over at every place would take minutes
)


@pytest.mark.parametrize("path", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_paths_take_linear_time(path):
    text = path * 16
    began = process_time()
    (
        find_mark(text),
        may_hide_session(text),
        has_session_segment(text),
        has_host(text, "a.test"),
        has_far_date(text, "", TODAY, 5),
    )
    has_repeats(text.split("/"), 1 << 30), has_repeats(text.split("/"), 1)
    assert process_time() - began < STEPS_MAX_S


@pytest.mark.parametrize("query", HOSTILE_QUERIES, ids=range(len(HOSTILE_QUERIES)))
def test_hostile_queries_take_linear_time(query):
    began = process_time()
    has_far_date("/", query * 16, TODAY, 5)
    assert process_time() - began < STEPS_MAX_S
