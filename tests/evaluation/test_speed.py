import numpy as np
import pytest

from mkdesc.evaluation import speed
from mkdesc.evaluation.speed import measure_speeds, run_speed


class Clock:
    """A clock that only moves when somebody works."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        self.order = []
        monkeypatch.setattr(speed.time, "perf_counter", lambda: self.now)

    def work(self, name, *seconds):
        def run():
            self.order.append(name)
            self.now += seconds[min(self.order.count(name), len(seconds)) - 1]

        return run


def test_turns_are_taken_and_the_first_round_does_not_count(monkeypatch):
    clock = Clock(monkeypatch)
    told = []
    found = measure_speeds(
        {"a": (clock.work("a", 100, 1, 2, 4), 8), "b": (clock.work("b", 0.5), 8)},
        rounds=3,
        progress=lambda *what: told.append(what),
    )
    assert [sorted(clock.order[i : i + 2]) for i in range(0, 8, 2)] == [["a", "b"]] * 4
    assert found["a"].median == 4  # of 8, 4 and 2 patches per second
    assert found["a"].low == 2
    assert found["a"].high == 8
    assert found["b"].median == 16
    assert told[-1] == ("measuring", 3, 3)


def test_the_table_has_sizes_and_ratios(monkeypatch):
    clock = Clock(monkeypatch)
    most = {}

    def describe(name, pace, columns, dtype):
        def run(patches):
            clock.work(name, pace * len(patches))()
            most[name] = max(most.get(name, 0), len(patches))
            return np.zeros((len(patches), columns), dtype)

        run.__name__ = name
        return run

    results = run_speed(
        [describe("slow", 1e-2, 128, np.float32), describe("quick", 1e-3, 32, np.uint8)],
        count=500,
        rounds=2,
    )
    rows = {row.name: row.values for row in results.tables[0].rows}
    assert rows["slow"][:3] == (128, 512, "100")
    assert rows["quick"][:3] == (32, 32, "1,000")
    assert rows["quick"][-1] == pytest.approx(10)
    assert most["slow"] == 64
    assert 249 <= most["quick"] <= 250  # a quarter of a second


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(ValueError, match="rounds: expected at least 2, got 1"):
        run_speed(["mkd-raw"], rounds=1)
    with pytest.raises(ValueError, match="count, size: expected at least 64 and 8, got 5 and 64"):
        run_speed(["mkd-raw"], count=5)
    with pytest.raises(ValueError, match="mkd-raw\\+lw: expected a descriptor that describes"):
        run_speed(["mkd-raw+lw"])
