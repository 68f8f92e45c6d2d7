"""Retry-After: seconds or a date, at most a day; whatever else a server sends asks for nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.retry_after import WAIT_MAX_S, read_wait_s

NOW_MS = 1_800_000_000_000  # Fri, 15 Jan 2027 08:00:00 GMT


@pytest.mark.parametrize(
    "text, wait_s",
    [
        ("", 0),
        ("0", 0),
        ("1", 1),
        ("0007", 7),
        ("120", 120),
        ("86401", WAIT_MAX_S),
        ("9" * 30, WAIT_MAX_S),
        ("9" * 5000, 0),
        ("-1", 0),
        ("+1", 0),
        ("1.5", 0),
        ("soon", 0),
        ("\u0661", 0),
        ("\u00b2", 0),
        ("Fri, 15 Jan 2027 08:02:00 GMT", 120),
        ("Friday, 15-Jan-27 08:02:00 GMT", 120),
        ("Fri Jan 15 08:02:00 2027", 120),
        ("Fri, 15 Jan 2027 08:02:00", 120),
        ("Fri, 15 Jan 2027 08:02:00 -0000", 120),
        ("Fri, 15 Jan 2027 10:02:00 +0200", 120),
        ("Fri, 15 Jan 2027 07:59:00 GMT", 0),
        ("Fri, 15 Jan 2100 08:00:00 GMT", WAIT_MAX_S),
        ("Fri, 31 Feb 2027 08:00:00 GMT", 0),
        ("Fri, 15 Jan 0000 08:00:00 GMT", 0),
        ("Fri, 15 Jan 2027 08:00:00 +9999999999", 0),
    ],
)
def test_what_a_server_asks_for(text, wait_s):
    assert read_wait_s(503, text, NOW_MS) == read_wait_s(429, text, NOW_MS) == wait_s


def test_other_answers_ask_for_nothing():
    assert [status for status in range(1000) if read_wait_s(status, "9", NOW_MS)] == [429, 503]


WORDS = st.sampled_from(
    [
        "Fri,",
        "15",
        "Jan",
        "2027",
        "08:00:00",
        "08:00",
        "GMT",
        "-0000",
        "+2400",
        ",",
        "-",
        ":",
        "99999999999",
        "0",
        "PM",
        "(",
        "\xff",
    ]
)


@given(st.text(max_size=120) | st.lists(WORDS, max_size=12).map(" ".join), st.integers(0, 253_402_300_799_999))
def test_no_text_raises(text, now_ms):
    assert 0 <= read_wait_s(429, text, now_ms) <= WAIT_MAX_S
