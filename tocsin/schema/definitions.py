"""What an application consists of: datasets, the feeds that fill them, and the channels over them.

These are the parsed, checked forms of the statements in an application file. Two definitions that compare equal
mean the same thing, which is how re-applying a file is recognised as no change.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

import msgspec

from tocsin.model.terms import Terms
from tocsin.schema.types import ColumnType


class Column(msgspec.Struct, frozen=True):
    """A named, typed column of a dataset, or a parameter of a channel."""

    name: str
    type: ColumnType


class DatasetKind(StrEnum):
    """How a dataset changes: *append* grows, *keyed* keeps the newest record per key, *reference* is loaded."""

    APPEND = "append"
    KEYED = "keyed"
    REFERENCE = "reference"


class Dataset(msgspec.Struct, frozen=True):
    """A table of records. ``primary_key`` is optional for append datasets, where it makes records unique."""

    name: str
    kind: DatasetKind
    columns: tuple[Column, ...]
    primary_key: str | None = None

    def column(self, name: str) -> Column | None:
        """The column of that name, case-insensitively as in SQL, or None."""
        folded = name.casefold()
        return next((c for c in self.columns if c.name.casefold() == folded), None)


class Feed(msgspec.Struct, frozen=True):
    """The durable, sliced log through which publishers fill ``dataset``. Unless its terms say so, no subscriber may.

    With a ``topic`` it is filled by those who produce to that topic of Kafka, and by nobody else. ``sliced_by`` has the
    columns, with commas between them, that say which slice a record goes to, and ``using`` the assignment by which they
    do (:mod:`tocsin.slices.assignment`). What it brings goes through the function ``processed_by``, if there is one.
    """

    name: str
    dataset: str
    sliced_by: str
    slices: int = 16
    terms: Terms = Terms(groups=())
    topic: str = ""
    using: str = "hash"
    processed_by: str = ""

    @property
    def slicing(self) -> tuple[str, ...]:
        """The columns that it is sliced by; none where chance decides."""
        return slicing_columns(self.sliced_by)

    def same_log(self, other: Self) -> bool:
        """Whether what was published to the one lies as the other would have it."""
        ours, theirs = ((feed.sliced_by, feed.using, feed.slices, feed.topic) for feed in (self, other))
        return ours == theirs


def slicing_columns(sliced_by: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(sliced_by.split(", ")) if sliced_by else ()


class ChannelKind(StrEnum):
    """When a channel runs: every period, or as soon as publications are in."""

    REPETITIVE = "repetitive"
    CONTINUOUS = "continuous"


class Channel(msgspec.Struct, frozen=True):
    """A named, parameterised query; ``body`` is Spark SQL exactly as its author wrote it."""

    name: str
    kind: ChannelKind
    parameters: tuple[Column, ...]
    body: str
    period: float | None = None
    terms: Terms = Terms()

    def same_subscriptions(self, other: Self) -> bool:
        """Whether what was subscribed to the one is a subscription to the other."""
        return (self.parameters, self.terms.bound) == (other.parameters, other.terms.bound)

    def same_as(self, other: Self) -> bool:
        """Equal but for white space at the ends of the body."""
        return msgspec.structs.replace(self, body=self.body.strip()) == msgspec.structs.replace(
            other, body=other.body.strip()
        )


Definition = Dataset | Feed | Channel
