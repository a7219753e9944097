"""What a processing node must know of a channel to match the rows of a batch with it."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.data.compiler.check import Compiled
from tocsin.schema.definitions import Dataset

RESULT_BYTES: Final = 4 << 20
"""What a node may find of a channel in one batch; of more, the head makes an ordinary execution."""


class MatchingLimits(msgspec.Struct, frozen=True):
    """How much nodes do for channels before they offer a batch.

    Args:
        rows_bytes: a batch of more is not matched; with 0, none is.
        seconds: how long a batch waits for what channels find in it.
        workers: channels at the same time.
    """

    rows_bytes: int = 0
    seconds: float = 1.0
    workers: int = 2


class DatasetFiles(msgspec.Struct, frozen=True):
    """A dataset that is read as a whole: its files, as Spark reads them."""

    dataset: Dataset
    files: list[str]


class SubscriptionFiles(msgspec.Struct, frozen=True):
    """A channel's subscriptions: the rows of ``base``, without ``removed``, and ``added``; each may be missing.

    Args:
        generation: of these subscriptions, which no others of the channel have.
        base: as Spark reads it.
        added, removed: names of files in the lake's folder for what nodes are told.
    """

    generation: int
    rows: int
    base: str | None = None
    base_rows: int = 0
    added: str = ""
    removed: str = ""


class NodeChannel(msgspec.Struct, frozen=True):
    """A channel as nodes are told it. By its ``tag`` the head knows what a node has matched with."""

    tag: str
    compiled: Compiled
    whole: list[DatasetFiles]
    subscriptions: SubscriptionFiles

    @property
    def name(self) -> str:
        """The channel's."""
        return self.compiled.channel.name
