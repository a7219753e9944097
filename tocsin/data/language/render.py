"""Definitions as the statements that make them: ``parse(render(definition))`` gives the definition back."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from tocsin.data.language.users import rendered
from tocsin.schema.definitions import Channel, ChannelKind, Column, Dataset, DatasetKind, Definition, Feed

_UNITS: Final = ((3_600_000, "HOURS"), (60_000, "MINUTES"), (1_000, "SECONDS"), (1, "MILLISECONDS"))


def render(definition: Definition) -> str:
    """The CREATE statement of ``definition``, with its semicolon."""
    match definition:
        case Dataset():
            return _dataset(definition)
        case Feed():
            return _feed(definition)
        case Channel():
            return _channel(definition)


def _dataset(dataset: Dataset) -> str:
    kind = "" if dataset.kind is DatasetKind.APPEND else f"{dataset.kind.upper()} "
    key = f" PRIMARY KEY {dataset.primary_key}" if dataset.primary_key else ""
    return f"CREATE {kind}DATASET {dataset.name} ({_columns(dataset.columns)}){key};"


def _feed(feed: Feed) -> str:
    bound = ", ".join(f"{name} FROM SUBSCRIBER" for name in feed.terms.bound)
    return (
        f"CREATE FEED {feed.name} INTO {feed.dataset} SLICED BY {feed.sliced_by} INTO {feed.slices} SLICES"
        f"{' WITH ' if bound else ''}{bound}{rendered(feed.terms.groups, ())};"
    )


def _channel(channel: Channel) -> str:
    period = f" PERIOD {_period(channel.period)}" if channel.kind is ChannelKind.REPETITIVE else ""
    parameters, users = _columns(channel.parameters, channel.terms.bound), rendered(channel.terms.groups, None)
    head = f"CREATE {channel.kind.upper()} CHANNEL {channel.name}({parameters}){period}{users} AS"
    return f"{head}\n{channel.body};"


def _columns(columns: Iterable[Column], bound: Collection[str] = ()) -> str:
    return ", ".join(
        f"{column.name} {column.type.ddl}{' FROM SUBSCRIBER' if column.name in bound else ''}" for column in columns
    )


def _period(seconds: float | None) -> str:
    """The period in the largest unit that takes a whole number."""
    milliseconds = round((seconds or 0) * 1000)
    length, unit = next((length, unit) for length, unit in _UNITS if milliseconds % length == 0)
    return f"{milliseconds // length} {unit}"
