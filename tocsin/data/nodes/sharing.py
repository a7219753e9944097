"""What a processing node must know of a feed to process slices of it, and which feeds can be shared by nodes."""

from __future__ import annotations

import msgspec

from tocsin.data.feeds.addresses import LogAddress
from tocsin.data.feeds.logs import PublicationLog
from tocsin.data.lake.address import LakeAddress
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.location import DATASETS, DEAD_LETTERS, RESULTS
from tocsin.data.nodes.channels import MatchingLimits
from tocsin.data.nodes.files import FileKind, NodeFile
from tocsin.errors import InvalidError
from tocsin.schema.definitions import Dataset, DatasetKind, Feed
from tocsin.settings import FeedsSettings, LakeSettings
from tocsin.slices.assignment import require_of_key


class FunctionLimits(msgspec.Struct, frozen=True):
    """What the function of a feed may have: seconds for a thousand records, and bytes of memory."""

    seconds: float = FeedsSettings().function_seconds
    memory: int = FeedsSettings().function_bytes


class SharedFeed(msgspec.Struct, frozen=True):
    """A feed whose slices nodes share: all that a node is told of it. Goes over the wire as it is.

    Args:
        lake: where datasets, dead letters and results are. A directory is one that all nodes see under its path; into
            a bucket each comes by credentials of its own.
        max_batch_bytes: how much of the log one batch takes, about.
        matching: how much nodes do for channels.
        function: what the feed's function may have, if there is one.
    """

    feed: Feed
    dataset: Dataset
    log: LogAddress
    lake: LakeAddress
    max_batch_bytes: int
    matching: MatchingLimits = MatchingLimits()
    function: FunctionLimits = FunctionLimits()

    @property
    def folder(self) -> Folder:
        """The lake, with connections of its own where it is in S3: to be asked for once."""
        return self.lake.open()

    @property
    def table(self) -> str:
        """The dataset's folder in the lake."""
        return f"{DATASETS}/{self.dataset.name}"

    @property
    def dead_letters(self) -> str:
        """The folder of records that cannot be stored."""
        return f"{DEAD_LETTERS}/{self.feed.name}"

    def folder_of(self, file: NodeFile) -> str:
        """The folder that a file of this kind belongs into."""
        if file.match is not None:
            return f"{RESULTS}/{file.match.channel}"
        return self.table if file.kind is FileKind.RECORDS else self.dead_letters

    def seen_with(self, settings: LakeSettings) -> SharedFeed:
        """The same for a node with settings of its own for where the lake is."""
        return msgspec.structs.replace(self, lake=self.lake.seen_with(settings))


def share(
    feed: Feed,
    dataset: Dataset,
    log: PublicationLog,
    lake: Folder,
    max_batch_bytes: int,
    matching: MatchingLimits = MatchingLimits(),  # noqa: B008
    function: FunctionLimits = FunctionLimits(),  # noqa: B008
) -> SharedFeed:
    """What nodes are to be told of a feed whose log is open here. Raises InvalidError if nodes cannot share it."""
    require_shareable(feed, dataset)
    return SharedFeed(feed, dataset, log.address(), lake.address, max_batch_bytes, matching, function)


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
    require_of_key(feed.using, feed.slicing, dataset.primary_key)
