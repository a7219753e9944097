"""Scenarios: who and what there is, and what happens when. A file of JSON with tables, or made by a generator.

``docs/simulator.md`` describes the format. Everything is known by its number, its place in its table; times are seconds
from the beginning.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import msgspec

from tocsin.errors import InvalidError
from tocsin.simulate.scenarios.order import check_order

VERSION: Final = 1


class ScenarioChannel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A channel that is executed every ``period`` seconds, for the first time after ``phase``."""

    name: str
    period: float
    phase: float = 0.0


class ScenarioBroker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker. ``capacity`` is what it can send, bytes per second; without it, it never queues."""

    name: str
    x: float = 0.0
    y: float = 0.0
    capacity: float | None = None


class BackendSubscriptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The BE subscriptions: a channel's number, and the bytes an execution finds for it at first."""

    channel: list[int]
    bytes: list[float]


class InitialLocations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where subscribers are at first."""

    x: list[float]
    y: list[float]


class Visits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At these times these subscribers log in, or out."""

    at: list[float] = []
    subscriber: list[int] = []


class SubscriptionChanges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At these times these subscribers subscribe to these lines, or unsubscribe."""

    at: list[float] = []
    subscriber: list[int] = []
    line: list[int] = []


class ScenarioRates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From these times on, executions find so many bytes for these lines."""

    at: list[float] = []
    line: list[int] = []
    bytes: list[float] = []


class Relocations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At these times these subscribers are at these locations."""

    at: list[float] = []
    subscriber: list[int] = []
    x: list[float] = []
    y: list[float] = []


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it. Tables of what happens may be in any order; at the same time, the earlier row comes first."""

    name: str
    seconds: float
    brokers: list[ScenarioBroker]
    channels: list[ScenarioChannel]
    lines: BackendSubscriptions
    subscribers: InitialLocations
    version: int = VERSION
    logins: Visits = Visits()
    logouts: Visits = Visits()
    subscribes: SubscriptionChanges = SubscriptionChanges()
    unsubscribes: SubscriptionChanges = SubscriptionChanges()
    rates: ScenarioRates = ScenarioRates()
    moves: Relocations = Relocations()


def read(path: Path) -> Scenario:
    """A scenario from its file; one that makes no sense is an InvalidError that says why."""
    try:
        scenario = msgspec.json.decode(path.read_bytes(), type=Scenario)
    except OSError as error:
        raise InvalidError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise InvalidError(f"{path}: is no scenario: {error}; docs/simulator.md describes the format") from None
    check(scenario)
    return scenario


def write(path: Path, scenario: Scenario) -> None:
    """Keeps a scenario in a file."""
    path.write_bytes(msgspec.json.encode(scenario))


def check(scenario: Scenario) -> None:
    """Refuses what cannot be, and says which row of which table is wrong."""
    if scenario.version != VERSION:
        raise InvalidError(f"the scenario is of version {scenario.version}; this program reads version {VERSION}")
    if not scenario.brokers or not scenario.channels:
        raise InvalidError("the scenario has no brokers or no channels; it needs at least one of each")
    for channel in scenario.channels:
        if not channel.period > 0:
            raise InvalidError(f"channel {channel.name} has a period of {channel.period}; it must be above 0")
    for broker in scenario.brokers:
        if broker.capacity is not None and not broker.capacity > 0:
            raise InvalidError(f"broker {broker.name} has a capacity of {broker.capacity}; it must be above 0, or none")
    _check_names("broker", [broker.name for broker in scenario.brokers])
    _check_names("channel", [channel.name for channel in scenario.channels])
    numbers = {
        "channel": len(scenario.channels),
        "line": len(scenario.lines.channel),
        "subscriber": len(scenario.subscribers.x),
    }
    for name in ("lines", "subscribers", "logins", "logouts", "subscribes", "unsubscribes", "rates", "moves"):
        _check_table(name, msgspec.structs.asdict(getattr(scenario, name)), numbers, scenario.seconds)
    check_order(scenario)


def _check_names(kind: str, names: list[str]) -> None:
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InvalidError(f"two {kind}s are called {twice}; give each a name of its own")


def _check_table(name: str, table: dict[str, list[Any]], numbers: dict[str, int], seconds: float) -> None:
    lengths = {column: len(values) for column, values in table.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidError(f"the columns of {name} differ in length: {lengths}")
    for column, values in table.items():
        if column in numbers:
            wrong = next((row for row, value in enumerate(values) if not 0 <= value < numbers[column]), None)
            limit = f"the {column}s are 0 to {numbers[column] - 1}"
        elif column == "at":
            wrong = next((row for row, value in enumerate(values) if not 0 <= value <= seconds), None)
            limit = f"times are from 0 to {seconds:g}"
        elif column == "bytes":
            wrong = next((row for row, value in enumerate(values) if not value >= 0), None)
            limit = "there cannot be fewer than none"
        else:
            continue
        if wrong is not None:
            raise InvalidError(f"row {wrong} of {name} has {column} {values[wrong]}; {limit}")
