"""Retries of a stage: which ends are charged to it, and how deaths of the warm process are counted."""

import signal
from types import SimpleNamespace

import pytest
import trio

from contract.config import Supervisor
from contract.errors import TryLater
from supervise.attempts import WARM_DEATHS_MAX, Attempts
from supervise.flights import Flight
from supervise.launch import Ended
from tests.made_up_flights import make_plan

LOST = Ended(-signal.SIGTERM, is_lost=True)
KILLED, DONE = Ended(-signal.SIGKILL), Ended(0)


class MadeUpStages:
    """Ends each attempt as a script says; before a lost one, a warm process may have died."""

    def __init__(self, *script: tuple[Ended, int]):
        self._script = list(script)
        self.warm_deaths = 0
        self.stopping = trio.Event()

    async def run(self, stage, flight, *, others_pass, shares) -> Ended:
        ended, deaths = self._script.pop(0)
        self.warm_deaths += deaths
        return ended


def run(tmp_path, stages: MadeUpStages, settings: Supervisor) -> int:
    state = SimpleNamespace(path=tmp_path, log=SimpleNamespace(blocks=4))
    journal = SimpleNamespace(stage=lambda *facts: None)
    attempts = Attempts(state, stages, settings, journal, lambda event, **facts: None)
    return trio.run(attempts.run, "extractor", Flight(make_plan(1, 0)), False)


def settings(**keys) -> Supervisor:
    return Supervisor(**{"retry_wait_s": 0.0, **keys})


def test_a_death_of_the_warm_process_counts_once_for_all_the_stages_that_it_took_along(tmp_path):
    lost = [(LOST, 1), *[(LOST, 0)] * 20]
    assert run(tmp_path, MadeUpStages(*lost, (DONE, 0)), settings()) == 0


def test_a_warm_process_that_keeps_dying_ends_the_run(tmp_path):
    with pytest.raises(TryLater, match=f"died {WARM_DEATHS_MAX + 1} times in a row"):
        run(tmp_path, MadeUpStages(*[(LOST, 1)] * (WARM_DEATHS_MAX + 1)), settings())


def test_deaths_of_the_warm_process_are_not_charged_to_the_stage(tmp_path):
    script = [(KILLED, 0), (LOST, 1), (LOST, 1), (KILLED, 0)]
    assert run(tmp_path, MadeUpStages(*script), settings(stage_retries=1)) == -signal.SIGKILL
    assert run(tmp_path, MadeUpStages(*script, (DONE, 0)), settings(stage_retries=2)) == 0
