"""Steps of a turn: each gets what the one before it returned, and its time counts in its part."""

from stages.verifier import timing
from stages.verifier.timing import STEP, Timing


def test_steps_hand_on_values_and_parts_add_up(monkeypatch):
    clock = iter([10.0, 11.0, 13.0, 17.0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    measured = Timing()
    steps = (
        ("sort", lambda value: (value, 1)),
        ("rules", lambda left, right: (left + right,)),
        ("sort", lambda sum: (sum, "end")),
    )
    assert measured.run(steps, 2) == (3, "end")
    found = measured.summary()
    assert list(found) == ["start", "sort", "rules", "step", "total"]
    assert (found["sort"], found["rules"], found["step"]) == (5.0, 2.0, 5.0) and "rules" not in STEP
    assert found["total"] == found["start"] + 7.0
