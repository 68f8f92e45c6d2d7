"""`<lastmod>` of sitemaps: which texts are dates, whose date it is, and that none of the future is taken."""

from datetime import UTC, datetime

import pytest

from stages.extractor.documents import sitemap
from stages.extractor.documents.w3c_date import SECONDS_MAX, read_w3c_date
from stages.extractor.reading import without_future

DAY_S, HOUR_S = 86_400, 3_600
NOW_MS = 1_800_000_000_000
BEGIN_OF_2020 = 1_577_836_800
NOON = BEGIN_OF_2020 + 45 * DAY_S + 12 * HOUR_S  # 2020-02-15


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("2020", BEGIN_OF_2020),
        ("2020-02", BEGIN_OF_2020 + 31 * DAY_S),
        ("2020-02-15", NOON - 12 * HOUR_S),
        ("2020-02-29", BEGIN_OF_2020 + 59 * DAY_S),
        ("2020-02-15T12:00", NOON),
        ("2020-02-15T12:00Z", NOON),
        ("2020-02-15t12:00z", 0),
        ("2020-02-15T12:00:00z", NOON),
        ("2020-02-15 12:00:30", NOON + 30),
        ("2020-02-15 12:00:30 +00:00", NOON + 30),
        ("2020-02-15T12:00:30.5Z", NOON + 30),
        ("2020-02-15T12:00:30.999999999+00:00", NOON + 30),
        ("2020-02-15T12:00:30.1234567890Z", 0),
        ("2020-02-15T12:00:30.Z", 0),
        ("2020-02-15T17:30+05:30", NOON),
        ("2020-02-15T17:30+0530", NOON),
        ("2020-02-15T09:00:00-03:00", NOON),
        ("2020-02-15T12:00-00:00", NOON),
        ("2020-02-15T12:00+05", 0),
        ("1970-01-01T00:00:01Z", 1),
        ("1970-01-01T00:00:00Z", 0),  # it says nothing
        ("1970", 0),
        ("1969-12-31T23:59:59Z", 0),
        ("1969", 0),
        ("0000", 0),
        ("0000-01-01", 0),
        ("0001-01-01T00:00+23:59", 0),
        ("9999-12-31T23:59:59-23:59", 0),
        ("2106-02-07T06:28:15Z", SECONDS_MAX),
        ("2106-02-07T06:28:16Z", 0),
        ("2107", 0),
        ("2020-13", 0),
        ("2020-00-01", 0),
        ("2020-02-30", 0),
        ("2021-02-29", 0),
        ("2020-02-15T24:00", 0),
        ("2020-02-15T12:60", 0),
        ("2020-02-15T12:00:60Z", 0),
        ("2020-02-15T12", 0),
        ("2020-2-15", 0),
        ("20200215", 0),
        ("02/15/2020", 0),
        ("Sat, 15 Feb 2020 12:00:00 GMT", 0),
        ("1581768000", 0),
        ("-2020", 0),
        (" 2020", 0),
        ("2020\n", 0),
        ("yesterday", 0),
        ("", 0),
        ("2020-02-15T12:00:30Z" + "0" * 45, 0),  # 65 characters
        ("2" * 1_000_000, 0),
        ("２０２０", 0),
        ("٢٠٢٠-٠٢-١٥", 0),
        ("2020-02-15T12:00:30Z\x00", 0),
    ],
)
def test_dates(text, seconds):
    assert read_w3c_date(text) == seconds
    if seconds:
        assert datetime.fromtimestamp(seconds, UTC).year in (1970, 2020, 2106)


@pytest.mark.parametrize(
    "entries, lastmods",
    [
        ("<url><loc>http://a/1</loc><lastmod>2020</lastmod></url>", {"http://a/1": BEGIN_OF_2020}),
        ("<url><lastmod>2020</lastmod><loc>http://a/1</loc></url>", {"http://a/1": BEGIN_OF_2020}),
        (
            "<url><loc>\n http://a/1 </loc><lastmod>\n 2020-02-15T12:00Z\n</lastmod></url><url><loc>http://a/2</loc></url>",
            {"http://a/1": NOON},
        ),
        (
            "<url><loc>http://a/1</loc></url><url><lastmod>2020</lastmod></url><url><loc>http://a/3</loc></url>",
            {},  # a date without a page is nobody's
        ),
        (
            "<url><loc>http://a/1</loc><loc>http://a/2</loc><lastmod>2020</lastmod></url>",
            {"http://a/2": BEGIN_OF_2020},  # the last one
        ),
        (
            "<url><loc>http://a/1</loc><lastmod>2019</lastmod><lastmod>2020</lastmod></url>",
            {"http://a/1": BEGIN_OF_2020},
        ),
        ("<url><loc>http://a/1</loc><lastmod>soon</lastmod></url>", {}),
        ("<url><loc>http://a/1</loc><lastmod/></url>", {}),
        ("<url><loc/><lastmod>2020</lastmod></url>", {}),
        ("<url><lastmod>2020</lastmod><image><loc>http://a/i.png</loc></image></url>", {}),
        (
            "<s:url xmlns:s='x'><s:loc>http://a/1</s:loc><s:lastmod>2020-02</s:lastmod></s:url>",
            {"http://a/1": BEGIN_OF_2020 + 31 * DAY_S},
        ),
    ],
)
def test_dates_belong_to_the_page_of_their_entry(entries, lastmods):
    assert sitemap.read(f"<urlset>{entries}</urlset>".encode(), "utf-8").lastmods == lastmods


def test_an_index_dates_its_sitemaps():
    text = "<sitemapindex><sitemap><loc>http://a/1.xml</loc><lastmod>2020</lastmod></sitemap></sitemapindex>"
    assert sitemap.read(text.encode(), "utf-8").lastmods == {"http://a/1.xml": BEGIN_OF_2020}


def test_dates_after_the_visit_are_dropped():
    dates = {"old": NOW_MS // 1000 - DAY_S, "now": NOW_MS // 1000, "late": NOW_MS // 1000 + 1, "ahead": SECONDS_MAX}
    assert set(without_future(dates, NOW_MS)) == {"old", "now"}
