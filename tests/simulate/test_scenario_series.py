"""Everything a scenario file can say happens, on both levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tocsin.errors import InvalidError
from tocsin.simulate.policy import Policy
from tocsin.simulate.record import SimulationRecord
from tocsin.simulate.scenario import read
from tocsin.simulate.simulation import Level, Simulation

FILE: dict[str, Any] = {
    "version": 1,
    "name": "a day",
    "seconds": 120,
    "brokers": [{"name": "west"}, {"name": "east", "x": 1000, "capacity": 1e6}],
    "channels": [{"name": "news", "period": 10}, {"name": "late", "period": 10, "phase": 60}],
    "lines": {"channel": [0, 1], "bytes": [500, 700]},
    "subscribers": {"x": [10, 990], "y": [0, 0]},
    "logins": {"at": [0, 1, 70], "subscriber": [0, 1, 0]},
    "logouts": {"at": [42], "subscriber": [0]},
    "subscribes": {"at": [2, 2, 3], "subscriber": [0, 1, 1], "line": [0, 0, 1]},
    "unsubscribes": {"at": [92], "subscriber": [1], "line": [0]},
    "rates": {"at": [95], "line": [0], "bytes": [2000]},
    "moves": {"at": [60], "subscriber": [0], "x": [900], "y": [0]},
}


def played(tmp_path: Path, level: Level) -> SimulationRecord:
    (tmp_path / "day.json").write_bytes(msgspec.json.encode(FILE))
    scenario = read(tmp_path / "day.json")
    return Simulation(scenario, 1, Policy(balancing=False), level).run()


@pytest.mark.parametrize("level", ["counted", "frames"])
def test_a_scenario_with_rows_in_every_table_is_played(tmp_path: Path, level: Level) -> None:
    record = played(tmp_path, level)
    assert record.brokers == ["west", "east"]
    at = {round(sample.at): sample for sample in record.samples}

    def online(second: int) -> list[int]:
        return next(sample.online for when, sample in sorted(at.items()) if when > second)

    def delivered(first: int, last: int) -> list[float]:
        """Bytes per broker of the samples between two seconds, which are 5 s apart."""
        samples = [sample.delivered for when, sample in at.items() if first < when <= last]
        return [sum(column) * 5 for column in zip(*samples, strict=True)]

    assert (online(35), online(55), online(80)) == ([1, 1], [0, 1], [1, 1])
    west, east = delivered(6, 40)
    assert 1500 < west < 3000
    assert west == pytest.approx(east, rel=0.01)
    assert delivered(46, 66) == [0.0, pytest.approx(delivered(26, 46)[1], rel=0.05)]
    missed = delivered(66, 76)[0]
    assert missed == pytest.approx(west, rel=0.01)
    west, east = delivered(101, 120)
    assert west > 2 * 2000
    assert 2 * 700 < east < 2 * 800


@pytest.mark.parametrize(
    ("table", "rows", "says"),
    [
        (
            "logins",
            {"at": [0, 1, 2], "subscriber": [0, 1, 1]},
            "row 2 of logins, at 2 s: subscriber 1 is online already",
        ),
        (
            "logins",
            {"at": [0, 5], "subscriber": [0, 1]},
            "row 1 of subscribes, at 2 s: subscriber 1 has not logged in yet",
        ),
        ("logouts", {"at": [0.5], "subscriber": [1]}, "row 0 of logouts, at 0.5 s: subscriber 1 is not online"),
        (
            "subscribes",
            {"at": [2, 9], "subscriber": [1, 1], "line": [0, 0]},
            "row 1 of subscribes, at 9 s: subscriber 1 has subscribed to line 0 already",
        ),
        (
            "unsubscribes",
            {"at": [9], "subscriber": [0], "line": [1]},
            "row 0 of unsubscribes, at 9 s: subscriber 0 holds no subscription to line 1",
        ),
    ],
)
def test_what_cannot_happen_in_that_order_is_named(
    tmp_path: Path, table: str, rows: dict[str, list[float]], says: str
) -> None:
    (tmp_path / "wrong.json").write_bytes(msgspec.json.encode({**FILE, table: rows}))
    with pytest.raises(InvalidError) as caught:
        read(tmp_path / "wrong.json")
    assert says in str(caught.value)


@pytest.mark.parametrize("level", ["counted", "frames"])
def test_whoever_moves_before_the_first_login_logs_in_where_it_is_by_then(tmp_path: Path, level: Level) -> None:
    late = {
        "logins": {"at": [0, 30], "subscriber": [0, 1]},
        "logouts": {"at": [], "subscriber": []},
        "subscribes": {"at": [2, 32], "subscriber": [0, 1], "line": [0, 0]},
        "unsubscribes": {"at": [], "subscriber": [], "line": []},
        "moves": {"at": [20, 10], "subscriber": [1, 1], "x": [20, 500], "y": [0, 0]},
    }
    (tmp_path / "late.json").write_bytes(msgspec.json.encode({**FILE, **late}))
    record = Simulation(read(tmp_path / "late.json"), 1, Policy(balancing=False), level).run()
    assert record.samples[-1].online == [2, 0]
