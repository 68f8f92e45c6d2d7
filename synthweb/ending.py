"""Until when a command serves: SIGTERM, SIGINT or, where asked, the end of standard input."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = {signal.SIGTERM, signal.SIGINT}


@contextmanager
def held_signals() -> Iterator[None]:
    """Around all that starts threads: they inherit the mask, so a signal waits for `wait_for_end` and no other."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait_for_end(until_eof: bool) -> None:
    if until_eof:
        threading.Thread(target=_signal_at_eof, daemon=True).start()
    signal.sigwait(SIGNALS)


def _signal_at_eof() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
