"""Which signals stop a run in order."""

import signal

import pytest

from supervise.session import stop_signals


@pytest.mark.parametrize("inherited, stops", [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_a_hangup_stops_a_run_unless_nohup_made_it_ignored(inherited, stops):
    before = signal.signal(signal.SIGHUP, inherited)
    try:
        assert {signal.SIGINT, signal.SIGTERM} <= set(stop_signals())
        assert (signal.SIGHUP in stop_signals()) is stops
    finally:
        signal.signal(signal.SIGHUP, before)
