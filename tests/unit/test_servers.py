"""When a server may be listed again: failures back off, then it is given up; a long pause is not spun through."""

import numpy as np
import pytest

from contract.config import Config, Fetcher, Verifier
from stages.verifier.servers import judge

CONFIG = Config(fetcher=Fetcher(server_failures_max=3, delay_s=5.0), verifier=Verifier(server_backoff_s=60.0, server_backoffs_max=2))
LAST = 1_000_000


@pytest.mark.parametrize("failures, delay_ms, due_at_ms, given_up", [
    (0, 0, 0, False), (2, 0, 0, False), (3, 0, LAST + 60_000, False), (4, 0, LAST + 120_000, False), (5, 0, LAST + 240_000, True),
    (0, 10_000, 0, False), (0, 3_600_000, LAST + 3_600_000, False), (3, 3_600_000, LAST + 3_600_000, False), (4_000_000_000, 0, None, True),
])
def test_when_a_server_is_due(failures, delay_ms, due_at_ms, given_up):
    servers = {"failures": np.array([failures], np.uint32), "delay_ms": np.array([delay_ms], np.uint32), "last_request_at_ms": np.array([LAST])}
    judge(servers, CONFIG)
    assert bool(servers["given_up"][0]) == given_up
    assert due_at_ms is None or int(servers["due_at_ms"][0]) == due_at_ms
