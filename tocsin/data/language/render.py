"""Definitions as the statements that make them: ``parse(render(definition))`` gives the definition back."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from tocsin.data.language.users import render_users
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
    clauses = [
        f"CREATE FEED {feed.name} INTO {feed.dataset}",
        _render_slicing(feed),
        f"INTO {feed.slices} SLICES",
        f"FROM KAFKA '{feed.topic}'" if feed.topic else "",
        f"PROCESSED BY '{feed.processed_by}'" if feed.processed_by else "",
        f"WITH {bound}" if bound else "",
    ]
    return f"{' '.join(filter(None, clauses))}{render_users(feed.terms.groups, ())};"


def _render_slicing(feed: Feed) -> str:
    name, _, rest = feed.using.partition(":")
    match name:
        case "hash":
            using = ""
        case "modulo" | "random":
            using = f" USING {name}"
        case "grid":
            using = f" USING grid({rest})"
        case _:
            using = f" USING '{feed.using}'"
    return f"SLICED{f' BY {feed.sliced_by}' if feed.sliced_by else ''}{using}"


def _channel(channel: Channel) -> str:
    period = f" PERIOD {_period(channel.period)}" if channel.kind is ChannelKind.REPETITIVE else ""
    parameters, users = _columns(channel.parameters, channel.terms.bound), render_users(channel.terms.groups, None)
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
