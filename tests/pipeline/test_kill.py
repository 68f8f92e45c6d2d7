"""Kills and stops at random moments, of any process of a run with several cycles in flight: nothing lost or doubled."""

import random
import signal

import pytest

from tests.pipeline.struck import (
    RUNS_MAX,
    STAGE,
    SUPERVISOR,
    WARM,
    WEB_SEED,
    WEB_SERVERS,
    WORKER,
    Struck,
    find,
    has_ended,
    strike,
    wait_for,
)
from tests.sampling import sampling

KILLS = 6 if sampling.is_complete else 4
MOMENTS_S = (0.0, 0.6)  # after the victim, and a second cycle in flight, were seen
VICTIMS = {
    "supervisor": [(SUPERVISOR, "")],
    "supervisor, by SIGTERM": [(SUPERVISOR, "")],
    "warm process": [(WARM, "")],
    "stage or extractor worker": [(STAGE, ""), (WORKER, "")],
    "any": [(SUPERVISOR, ""), (WARM, ""), (STAGE, ""), (STAGE, "fetcher"), (WORKER, "")],
}


@pytest.fixture
def crawl(tmp_path, synthetic_web) -> Struck:
    return Struck(tmp_path, *synthetic_web(WEB_SEED, WEB_SERVERS))


@pytest.mark.parametrize("victims", VICTIMS)
@pytest.mark.sampled(1)
def test_killed_at_random_moments_nothing_is_lost_or_doubled(crawl, victims):
    """The fetchers pause between requests, so that kills find pages that have arrived and are not synced."""
    chance = random.Random(f"{sampling.seed} {victims}")
    number = signal.SIGTERM if "SIGTERM" in victims else signal.SIGKILL
    kills, is_over = 0, False
    for _ in range(RUNS_MAX):
        run, before = crawl.start(), kills
        while kills < KILLS and strike_once(run, *chance.choice(VICTIMS[victims]), number, chance):
            kills += 1
            if number == signal.SIGTERM:
                break  # a second one ends a run at once
        code = run.wait()
        assert code in (0, 75, -signal.SIGKILL), crawl.told()  # 75: an orphan holds the lock until it has ended
        if is_over := code == 0 and (number == signal.SIGKILL or kills == before):
            break
    assert is_over, crawl.told()
    assert kills == KILLS, "the crawl ended before it was killed often enough"
    crawl.judge(kills)


def strike_once(run, kind: str, stage: str, number: int, chance: random.Random) -> bool:
    """Kills one process of a kind, a moment after several cycles were in flight; false where the run has ended."""
    while wait_for(run, lambda: (len(find(run, STAGE)) > 1 or kind == WORKER) and find(run, kind, stage)):
        if has_ended(run, chance.uniform(*MOMENTS_S) if kind != WORKER else 0.0):
            break
        victims = find(run, kind, stage)
        if victims and strike(chance.choice(victims), number):
            return True
    return False
