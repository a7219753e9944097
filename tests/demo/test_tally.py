from __future__ import annotations

from typing import Any

from tocsin.demo.tally import Found, Tally


def channel(execution: int, seconds: float = 0.0, name: str = "Of") -> dict[str, Any]:
    return {"name": name, "period": 10.0, "execution": execution, "seconds": seconds}


def test_executions_are_counted_from_the_first_look() -> None:
    tally = Tally()
    tally.look([channel(5), channel(2, name="Near")])
    tally.look([channel(6, 1.5), channel(2, name="Near")])
    tally.look([channel(6, 1.5), channel(4, 0.5, name="Near")])
    assert (tally.channels["Of"].executions, tally.channels["Of"].seconds) == (1, [1.5])
    assert (tally.channels["Near"].executions, tally.channels["Near"].seconds) == (2, [0.5])
    assert tally.executions == 3


def test_the_slowest_execution_is_known_by_its_channel() -> None:
    tally = Tally()
    assert tally.slowest == (0.0, "")
    for look in ([channel(0), channel(0, name="Near")], [channel(1, 0.7), channel(1, 0.9, name="Near")]):
        tally.look(look)
    assert tally.slowest == (0.9, "Near")


def test_a_continuous_channel_has_no_period() -> None:
    tally = Tally()
    tally.look([{**channel(0), "period": None}])
    assert tally.channels["Of"].period == 0.0


def test_what_was_found_adds_up_by_subscription_and_in_all() -> None:
    tally = Tally()
    tally.add(1, Found(1, 3, 300))
    tally.add(1, Found(1, 1, 100))
    tally.add(2, Found(1, 2, 50))
    assert tally.total([1]) == Found(2, 4, 400)
    assert tally.total() == Found(3, 6, 450)
    assert tally.total([3]) == Found()
