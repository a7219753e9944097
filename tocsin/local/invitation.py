"""What to try on a network that is up: a subscription, and a record to publish, for whatever application it has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tocsin.data.language.forms import CreateChannel, CreateDataset
from tocsin.data.language.parser import parse
from tocsin.schema.definitions import Column
from tocsin.schema.types import INTEGER_BITS, Kind

Item = dict[str, Any]

# The shell's, between the quotes of a JSON text: with the id of an earlier one, a record is taken for that one.
FRESH: Final = "'$RANDOM'"
_NUMBERS: Final = frozenset({*INTEGER_BITS, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL})


@dataclass(frozen=True)
class Example:
    """A subscription, and a record to publish to a feed."""

    channel: str
    parameters: dict[str, Any]
    feed: str
    record: dict[str, Any]

    @property
    def subscription(self) -> str:
        """The arguments of ``tocsin subscribe``."""
        return " ".join([self.channel, *(f"--param {name}={value}" for name, value in self.parameters.items())])

    @property
    def text(self) -> str:
        """The record as JSON, to be written between a shell's single quotes."""
        return json.dumps(self.record)


# Of the emergency application: what is published is found.
FLOOD: Final = Example(
    "EmergenciesOfType",
    {"event": "flood"},
    "reports",
    {"id": f"mine-{FRESH}", "etype": "flood", "severity": 5, "message": "The cellar is full of water"},
)


def example(channels: Sequence[Item], feeds: Sequence[Item], datasets: Sequence[Item]) -> Example | None:
    """One for an application, as the data cluster lists it; None where there is nothing to subscribe or publish to.

    Of an application that is not known here names and types are right, and the values are for its author to fill in.
    """
    if not channels or not feeds:
        return None
    if FLOOD.channel in _names(channels) and FLOOD.feed in _names(feeds):
        return FLOOD
    feed = feeds[0]
    statement = next(item["statement"] for item in datasets if item["name"] == feed["dataset"])
    [dataset], [channel] = parse(statement), parse(channels[0]["statement"])
    assert isinstance(dataset, CreateDataset)
    assert isinstance(channel, CreateChannel)
    record = _values(dataset.definition.columns)
    key = dataset.definition.primary_key
    if key and isinstance(record.get(key), str):
        record[key] = f"{key}-{FRESH}"
    given = [each for each in channel.definition.parameters if each.name not in channel.definition.terms.bound]
    return Example(channel.definition.name, _values(given), feed["name"], record)


def _names(items: Iterable[Item]) -> set[str]:
    return {item["name"] for item in items}


def _values(columns: Iterable[Column]) -> Item:
    """Something of each column's type; what is made of other types is left out, as a record may do."""
    values: Item = {}
    for column in columns:
        kind = column.type.kind
        if kind is Kind.STRING:
            values[column.name] = "text"
        elif kind in _NUMBERS:
            values[column.name] = 1
        elif kind is Kind.BOOLEAN:
            values[column.name] = True
        elif kind is Kind.DATE:
            values[column.name] = "2026-01-01"
        elif kind is Kind.TIMESTAMP:
            values[column.name] = "2026-01-01T00:00:00Z"
    return values
