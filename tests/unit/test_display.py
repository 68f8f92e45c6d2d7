"""The live view: what a terminal shows, at several sizes; and what is printed where there is none."""

import io
import os
import pty
import sys

import pytest
from rich.console import Console

from contract.config import Config
from contract.lines import FIT_MIN
from supervise import display as display_module
from supervise.display import Display, describe_left
from supervise.flights import Flights
from tests.made_up_flights import NOW_S, every_kind, make_flight, make_flights


@pytest.fixture
def clock(monkeypatch):
    """The moment that the display sees; a list of one number."""
    now_s = [NOW_S]
    monkeypatch.setattr(display_module, "time", type("Clock", (), {"monotonic": staticmethod(lambda: now_s[0])}))
    return now_s


def make_display(flights: Flights) -> Display:
    display = Display(False, Config(), flights)
    display.memory_of = lambda process_id: 10_000_000
    return display


def render(display: Display, width: int = 80, height: int = 24) -> list[str]:
    console = Console(record=True, width=width, height=height, force_terminal=True, file=io.StringIO())
    display._console = console
    console.print(display.render())
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_a_row_per_cycle_at_80_columns(clock):
    flights = every_kind()
    display = make_display(flights)
    render(display)
    flights.flights[117].figures = {**flights.flights[117].figures, "waiting": 1_000, "pages": 980}
    clock[0] += 2
    lines = render(display)
    assert lines == [
        "cycle  block now                                                            left",
        "  117    2/8 fetching   ━━━━━━━╺━━━━━━ 1,000 of 2,000 URLs, 100/s, 12 fa…   10 s",
        "  118    3/8 extracting ━━━━━━━━━━╸━━━ 750 of 1,000 pages, 0/s",
        "  119    0/8 verifying  ━━━━━╸━━━━━━━━ 2 of 5 pieces",
        "  120    1/8 scheduling ━━━━━━━━━━━━━━",
        "  121    5/8 fetching   waits for politeness: 12 hosts rest, the next in 3 s",
        "  122    6/8 waits for the extractor (10 s so far)",
        "  123    7/8 waits before attempt 3 of the fetcher (10 s so far)",
        "  124    4/8 waits for its first stage",
        "  run  0 cycles, 1,070 pages, 100/s, 10.0 MB, 12 failed, 8 refused, 1 min 2 s,",
        "       50.0 MB of memory",
    ]


@pytest.mark.parametrize("height", [4, 8, 12, 24])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_more_cycles_than_lines_fit_with_the_totals(clock, width, height):
    flights = make_flights(
        *(make_flight(cycle, "fetcher", waits=True, attempt=0) for cycle in range(30)),
        make_flight(30, "fetcher", listed=10, waiting=5),
    )
    lines = render(make_display(flights), width, height)
    assert all(len(line) <= width for line in lines)
    assert "0 pages" in "".join(lines[-3:])
    if height >= 8 and width >= 80:
        assert len(lines) < height
        assert "fetching" in lines[1], "cycles at work come first"
        assert "cycles more:" in lines[-2] + lines[-3] and "waits for the fetcher" in lines[-2] + lines[-3]


def test_a_run_that_sleeps_says_until_when(clock):
    display = make_display(make_flights())
    assert render(display)[0] == "between cycles"
    display.report("sleep", until_ms=None, why="all is collected")
    assert render(display)[0] == "nothing is due until seeds arrive: all is collected"


def test_without_a_terminal_a_line_comes_every_ten_seconds(clock, capfd):
    flights = every_kind()
    display = make_display(flights)
    for _ in range(60):
        clock[0] += 0.5
        display.progress(117)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("0 cycles, 870 pages, 0/s, 10.0 MB, 12 failed, 8 refused, 1 min 10 s, 50.0 MB of memory")
    assert "cycle 117 block 2/8 fetching: 800 of 2,000 URLs" in lines[0]
    assert lines[0].endswith(
        "and 4 cycles more: 1 fetching, 1 waits for the extractor, 1 waits before attempt 3 of the fetcher, "
        "1 waits for its first stage"
    )


def test_hostile_text_reaches_no_terminal(clock):
    flights = make_flights(make_flight(1, "\x1b[2Jevil", waits=True))
    assert "\x1b" not in "\n".join(render(make_display(flights)))


@pytest.mark.parametrize(
    "seconds, text", [(0.2, "1 s"), (59, "59 s"), (61, "1 min"), (7_200, "2.0 h"), (1e9, "999.0 h")]
)
def test_the_time_that_is_left_is_short(seconds, text):
    assert describe_left(seconds) == text and len(text) <= 7


def test_without_standard_error_nothing_is_printed(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    display = make_display(every_kind())
    with display:
        display.line("lost")
        display.report("waits", text="lost too")


@pytest.mark.parametrize("term, has_view", [("xterm", True), ("dumb", False)])
def test_a_dumb_terminal_is_none(clock, monkeypatch, term, has_view):
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", term)
    with open(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with make_display(every_kind()) as display:
            display.line("a line that is longer than the terminal is wide: " + "x" * 80)
    shown = os.read(ours, 1 << 16)
    os.close(ours)
    assert (b"\x1b[" in shown) is has_view
    assert (b"wide: " + b"x" * 80 in shown) is not has_view, "only lines at a terminal are wrapped"


def test_a_terminal_of_no_width_shows_something(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "0")
    assert make_display(every_kind())._console.width == FIT_MIN
