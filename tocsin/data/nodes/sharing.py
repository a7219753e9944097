"""What a processing node must know of a feed to process slices of it, and which feeds can be shared by nodes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tocsin.data.feeds.logs import PublicationLog
from tocsin.data.feeds.places import LogPlace
from tocsin.data.lake.directory import as_folder
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.location import RESULTS
from tocsin.data.nodes.channels import MatchingLimits
from tocsin.errors import InvalidError
from tocsin.schema.definitions import Dataset, DatasetKind, Feed
from tocsin.slices.assignment import assignment, require_of_key


class SharedFeed(msgspec.Struct, frozen=True):
    """A feed whose slices nodes share: all that a node is told of it. Goes over the wire as it is.

    Args:
        lake: the directory of datasets and dead letters, which all nodes see under this path.
        max_batch_bytes: how much of the log one batch takes, about.
        matching: how much nodes do for channels.
    """

    feed: Feed
    dataset: Dataset
    log: LogPlace
    lake: str
    max_batch_bytes: int
    matching: MatchingLimits = MatchingLimits()

    @property
    def folder(self) -> Folder:
        """The lake."""
        return as_folder(Path(self.lake))

    @property
    def table(self) -> Path:
        """Where the dataset is."""
        return Path(self.lake) / "datasets" / self.dataset.name

    @property
    def dead_letters(self) -> Path:
        """Where records go that cannot be stored."""
        return Path(self.lake) / "dead-letters" / self.feed.name

    def results(self, channel: str) -> Path:
        """Where the results of a channel are."""
        return Path(self.lake) / RESULTS / channel


def share(
    feed: Feed,
    dataset: Dataset,
    log: PublicationLog,
    lake: Path,
    max_batch_bytes: int,
    matching: MatchingLimits = MatchingLimits(),  # noqa: B008
) -> SharedFeed:
    """What nodes are to be told of a feed whose log is open here. Raises InvalidError if nodes cannot share it."""
    require_shareable(feed, dataset)
    return SharedFeed(feed, dataset, log.place(), str(lake), max_batch_bytes, matching)


def require_shareable(feed: Feed, dataset: Dataset) -> None:
    """Refuses feeds whose slices cannot be processed apart from each other, and says why."""
    if dataset.kind is not DatasetKind.APPEND:
        raise InvalidError(
            f"the slices of feed {feed.name} stay with the data cluster: {dataset.name} is {dataset.kind}, and nodes "
            "share the slices of append datasets only"
        )
    if feed.topic and dataset.primary_key is not None:
        raise InvalidError(
            f"the slices of feed {feed.name} stay with the data cluster: whoever fills the topic {feed.topic} chooses "
            f"the partition, so records with the same {dataset.primary_key} may be in two slices"
        )
    if feed.processed_by:
        raise InvalidError(
            f"the slices of feed {feed.name} stay with the data cluster: its function {feed.processed_by} runs there"
        )
    require_of_key(assignment(feed.using), feed.slicing, dataset.primary_key)
