"""Charsets from page to URL, by the measure of other crawlers."""

import pytest

from tests.extractor_lab import PAGE, judge_answer, read_answer
from tests.unit.test_html_other_measures import SITE, urls

PORTUGUESE, RUSSIAN, JAPANESE = "ação", "мир", "表示"


@pytest.mark.parametrize(
    "word, codec, kind, meta, charset, path, query",
    [
        (PORTUGUESE, "cp1252", "text/html; charset=windows-1252", "", "windows-1252", "a%C3%A7%C3%A3o", "a%E7%E3o"),
        (PORTUGUESE, "latin-1", "text/html; charset=ISO-8859-1", "", "windows-1252", "a%C3%A7%C3%A3o", "a%E7%E3o"),
        (PORTUGUESE, "latin-1", "text/html", "<meta charset=iso-8859-1>", "windows-1252", "a%C3%A7%C3%A3o", "a%E7%E3o"),
        (
            PORTUGUESE,
            "latin-1",
            "text/html",
            "<meta http-equiv=content-type content='text/html; charset=latin1'>",
            "windows-1252",
            "a%C3%A7%C3%A3o",
            "a%E7%E3o",
        ),
        (
            "“€”",
            "cp1252",
            "text/html; charset=iso-8859-1",
            "",
            "windows-1252",
            "%E2%80%9C%E2%82%AC%E2%80%9D",
            "%93%80%94",
        ),
        (RUSSIAN, "cp1251", "text/html; charset=windows-1251", "", "windows-1251", "%D0%BC%D0%B8%D1%80", "%EC%E8%F0"),
        (RUSSIAN, "koi8-r", "text/html", "<meta charset=koi8-r>", "koi8-r", "%D0%BC%D0%B8%D1%80", "%CD%C9%D2"),
        (JAPANESE, "cp932", "text/html; charset=shift_jis", "", "shift_jis", "%E8%A1%A8%E7%A4%BA", "%95\\%8E%A6"),
        (JAPANESE, "euc-jp", "text/html; charset=x-euc-jp", "", "euc-jp", "%E8%A1%A8%E7%A4%BA", "%C9%BD%BC%A8"),
        (PORTUGUESE, "utf-8", "text/html", "", "utf-8", "a%C3%A7%C3%A3o", "a%C3%A7%C3%A3o"),
        (PORTUGUESE, "utf-16", "text/html", "", "utf-16le", "a%C3%A7%C3%A3o", "a%C3%A7%C3%A3o"),
        (
            PORTUGUESE,
            "utf-8",
            "text/html; charset=unheard-of",
            "<meta charset=nor-this>",
            "utf-8",
            "a%C3%A7%C3%A3o",
            "a%C3%A7%C3%A3o",
        ),
        (PORTUGUESE, "latin-1", "text/html; charset=unheard-of", "", "windows-1252", "a%C3%A7%C3%A3o", "a%E7%E3o"),
        (
            PORTUGUESE,
            "latin-1",
            "text/html; charset=unheard-of",
            "<meta charset=iso-8859-1>",
            "windows-1252",
            "a%C3%A7%C3%A3o",
            "a%E7%E3o",
        ),
        (
            PORTUGUESE,
            "utf-8",
            "text/html; charset=utf-8",
            "<meta charset=windows-1251>",
            "utf-8",
            "a%C3%A7%C3%A3o",
            "a%C3%A7%C3%A3o",
        ),
        # Lies are believed.
        (
            PORTUGUESE,
            "utf-8",
            "text/html; charset=iso-8859-1",
            "",
            "windows-1252",
            "a%C3%83%C2%A7%C3%83%C2%A3o",
            "a%C3%A7%C3%A3o",
        ),
        (
            PORTUGUESE,
            "latin-1",
            "text/html; charset=utf-8",
            "",
            "utf-8",
            "a%EF%BF%BD%EF%BF%BDo",
            "a%EF%BF%BD%EF%BF%BDo",
        ),
        (RUSSIAN, "cp1251", "text/html; charset=windows-1252", "", "windows-1252", "%C3%AC%C3%A8%C3%B0", "%EC%E8%F0"),
    ],
)
def test_the_path_of_a_link_is_in_utf_8_and_its_query_in_the_charset_of_the_page(
    word, codec, kind, meta, charset, path, query
):
    html = (
        f"<html><head>{meta}<a href='/{word}/p'><a href='?q={word}#{word}'><form action='/f?{word}&x={word}'>".encode(
            codec
        )
    )
    answer = read_answer(html, kind)
    assert answer.charset == charset
    assert judge_answer(answer).urls == [f"{SITE}{path}/p", f"{PAGE}?q={query}", f"{SITE}f?{query}&x={query}"]


def test_what_the_charset_of_the_page_does_not_hold():
    """As browsers do: a reference to the character, escaped."""
    assert urls("<a href='?q=&#26085;&#233;'>", "text/html; charset=iso-8859-1") == [PAGE + "?q=%26%2326085%3B%E9"]


def test_one_text_in_pages_of_different_charsets_leads_to_different_places():
    html = "<a href='?q=&ccedil;'>"
    found = [urls(html, f"text/html; charset={charset}")[0] for charset in ("utf-8", "latin1", "windows-1251")]
    assert found == [PAGE + "?q=" + query for query in ("%C3%A7", "%E7", "%26%23231%3B")]
