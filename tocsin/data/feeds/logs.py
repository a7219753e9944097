"""The log of a feed, wherever the settings have it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession

from tocsin.data.feeds.access import KafkaAccess
from tocsin.data.feeds.addresses import LogAddress
from tocsin.data.feeds.ends import read_ends
from tocsin.data.feeds.log import FeedLog
from tocsin.data.fence import Fence
from tocsin.data.store import Topics
from tocsin.errors import ConflictError, SettingsError
from tocsin.schema.definitions import Dataset, Feed
from tocsin.settings import FeedsSettings

EMBEDDED: Final = "embedded"


class PublicationLog(Protocol):
    """Durable and sliced. A position within a slice only ever grows."""

    @property
    def records(self) -> int:
        """Records appended since the log was opened."""

    @property
    def largest_record(self) -> int:
        """The most bytes that a record may have."""

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> list[int]:
        """Makes the records of each slice durable and returns the new ends."""

    def ends(self) -> list[int]:
        """Up to where each slice is durable."""

    def backlog(self, positions: Sequence[int]) -> int:
        """How many bytes lie between ``positions`` and the ends."""

    def has_room(self) -> bool:
        """Whether it would take something."""

    def release(self, positions: Sequence[int]) -> None:
        """What lies below these positions is no longer needed."""

    def wait_for_more(self, positions: Sequence[int], given_up: Callable[[], bool]) -> None:
        """Returns when the log goes beyond these positions, or nobody wants to know any more; see :meth:`wake`."""

    def wake(self) -> None:
        """Has those who wait for more look again."""

    def batch_ends(self, starts: Sequence[int], max_bytes: int, slices: Collection[int]) -> list[int]:
        """How far a batch of about so many bytes of some slices goes from these positions."""

    def batch(self, spark: SparkSession, starts: Sequence[int], ends: Sequence[int]) -> DataFrame:
        """What lies between these positions: columns slice, position (after the record), line, damage."""

    def took(self, row_bytes: int) -> None:
        """The batch that was asked for last is stored, and was so large as rows."""

    def failed(self) -> None:
        """A batch could not be read, or not be stored."""

    def stream(self, spark: SparkSession, positions: Sequence[int], max_bytes: int) -> DataFrame:
        """The log from these positions on: columns slice, position (after the record), line, damage."""

    def address(self) -> LogAddress:
        """Where others can read it."""

    def newest_ends(self) -> list[int]:
        """Up to where each slice is durable; asked anew where others write, too."""

    def damage(self) -> str:
        """What has been lost, in a sentence for operators; empty if nothing is."""

    def close(self) -> None:
        """Lets go of it."""

    def remove(self) -> None:
        """The feed is no more: what is left of the log outside of the data directory can go."""


class OpenableLog(Protocol):
    """A log as it is before it is open. Where it could not be opened, that may be tried again."""

    def open(self) -> PublicationLog:
        """The log, open. Raises TocsinError if it cannot be."""


def find_log(
    feed: Feed,
    dataset: Dataset,
    path: Path,
    settings: FeedsSettings,
    topics: Topics,
    read: Sequence[int],
    fence: Fence | None = None,
) -> OpenableLog:
    """The log that ``feeds.log`` names; ``read`` is how far the dataset has come.

    Raises SettingsError or ConflictError where the settings are not those that the feed was last used with.

    Args:
        path: for an embedded one, with the ``fence`` around it.
    """
    if settings.log == EMBEDDED:
        if feed.topic:
            raise SettingsError(
                f"feed {feed.name} is filled FROM KAFKA: say where that is, feeds.log = kafka://host:9092"
            )
        if topics.find(feed.name) is not None:
            raise ConflictError(
                f"the log of feed {feed.name} is in Kafka: set feeds.log as it was, or drop the feed then"
            )
        return FeedLog(path, feed.slices, settings.segment_bytes, read, fence)
    try:
        from tocsin.data.feeds.kafka import ForeignLog, KafkaLog
        from tocsin.data.feeds.sliced_topic import read_address
    except ImportError:
        raise SettingsError("feeds.log in Kafka needs its client: pip install 'tocsin[kafka]'") from None
    if any(end > position for end, position in zip(read_ends(path) or (), read, strict=False)):
        raise ConflictError(
            f"feed {feed.name} has records in {path} that its dataset does not have yet: start once with "
            f'feeds.log = "{EMBEDDED}" until they are stored'
        )
    servers, prefix = read_address(settings.log)
    access = KafkaAccess.of(settings)
    if feed.topic:
        return ForeignLog(servers, feed, dataset, topics, read, access)
    return KafkaLog(servers, prefix, feed, topics, read, access)


def require_partitions(feed: Feed, settings: FeedsSettings) -> None:
    """Refuses a feed that would not have a slice for each partition of the topic that it is filled from.

    Raises ConflictError, or UnavailableError if the topic cannot be seen. Without a topic there is nothing to ask.
    """
    if not feed.topic or settings.log == EMBEDDED:
        return
    from tocsin.data.feeds.sliced_topic import SlicedTopic, read_address

    topic = SlicedTopic(read_address(settings.log).servers, feed.topic, KafkaAccess.of(settings))
    found = topic.describe().partitions
    if found != feed.slices:
        raise ConflictError(
            f"the topic {feed.topic} has {found} partitions, and feed {feed.name} has {feed.slices} slices: "
            f"say INTO {found} SLICES"
        )
