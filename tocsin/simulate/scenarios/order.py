"""Whether what happens in a scenario can happen in that order: nobody subscribes before a login, or gives up what they
do not hold."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import TYPE_CHECKING

from tocsin.errors import InvalidError

if TYPE_CHECKING:
    from tocsin.simulate.scenario import Scenario, SubscriptionChanges, Visits

Row = tuple[float, int, int, str, int, int]


def check_order(scenario: Scenario) -> None:
    """Refuses the first row that cannot happen when it should, and says why.

    Tables of what happens at the same time follow each other as in a simulation: logins, subscribes, unsubscribes,
    logouts.
    """
    online: dict[int, bool] = {}
    held: set[tuple[int, int]] = set()
    for at, _, number, table, subscriber, line in _rows(scenario):
        if wrong := _wrong(table, online.get(subscriber), (subscriber, line) in held, line):
            raise InvalidError(f"row {number} of {table}, at {at:g} s: subscriber {subscriber} {wrong}")
        match table:
            case "logins" | "logouts":
                online[subscriber] = table == "logins"
            case "subscribes":
                held.add((subscriber, line))
            case _:
                held.remove((subscriber, line))


def _wrong(table: str, online: bool | None, holds: bool, line: int) -> str | None:
    match table, online, holds:
        case "logins", True, _:
            return "is online already; log it out first"
        case "logouts", None | False, _:
            return "is not online; log it in first"
        case "subscribes" | "unsubscribes", None, _:
            return "has not logged in yet; log it in first"
        case "subscribes", _, True:
            return f"has subscribed to line {line} already"
        case "unsubscribes", _, False:
            return f"holds no subscription to line {line}"
    return None


def _rows(scenario: Scenario) -> Iterator[Row]:
    s = scenario
    tables = [
        _visits(0, "logins", s.logins),
        _changes(1, "subscribes", s.subscribes),
        _changes(2, "unsubscribes", s.unsubscribes),
        _visits(3, "logouts", s.logouts),
    ]
    return merge(*tables)


def _visits(rank: int, name: str, table: Visits) -> list[Row]:
    rows = enumerate(zip(table.at, table.subscriber, strict=True))
    return sorted((at, rank, number, name, subscriber, -1) for number, (at, subscriber) in rows)


def _changes(rank: int, name: str, table: SubscriptionChanges) -> list[Row]:
    rows = enumerate(zip(table.at, table.subscriber, table.line, strict=True))
    return sorted((at, rank, number, name, subscriber, line) for number, (at, subscriber, line) in rows)
