"""What stands in for a log in Kafka that cannot be opened, until it can: so that it is one feed's trouble only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from tocsin.data.feeds.addresses import LogAddress
from tocsin.data.feeds.logs import OpenableLog, PublicationLog
from tocsin.errors import ConflictError, SupersededError, TocsinError, UnavailableError
from tocsin.log import get_logger
from tocsin.schema.definitions import Feed
from tocsin.schema.records import MAX_RECORD_BYTES

log = get_logger(__name__)

OBSTACLES: Final = (UnavailableError, ConflictError)
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0


class ObstructedLog:
    """A log of which nothing is known but how far it was read. It takes nothing and gives nothing, and says why."""

    def __init__(self, feed: Feed, read: Sequence[int], reason: str) -> None:
        self.reason = reason
        self.records, self.largest_record = 0, MAX_RECORD_BYTES
        self._feed, self._read = feed, list(read)

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> list[int]:  # noqa: ARG002
        """Refused: until it can be opened, or, where others fill it, for good."""
        if self._feed.topic:
            raise ConflictError(f"feed {self._feed.name} is filled from the topic {self._feed.topic}: publish there")
        raise self._unavailable()

    def ends(self) -> list[int]:
        """As far as it was read."""
        return list(self._read)

    def newest_ends(self) -> list[int]:
        """The same where what is there is somebody else's; who has records of ours in it must be asked."""
        if self._feed.topic:
            return self.ends()
        raise self._unavailable()

    def backlog(self, positions: Sequence[int]) -> int:  # noqa: ARG002
        """None that is known of."""
        return 0

    def has_room(self) -> bool:
        """Not now."""
        return False

    def damage(self) -> str:
        """Why it cannot be opened."""
        return f"feed {self._feed.name}: its log cannot be opened ({self.reason}); it is tried again by itself"

    def batch_ends(self, starts: Sequence[int], max_bytes: int, slices: Collection[int]) -> list[int]:  # noqa: ARG002
        """Nothing is read."""
        return list(starts)

    def batch(self, spark: SparkSession, starts: Sequence[int], ends: Sequence[int]) -> DataFrame:  # noqa: ARG002
        """Refused."""
        raise self._unavailable()

    def stream(self, spark: SparkSession, positions: Sequence[int], max_bytes: int) -> DataFrame:  # noqa: ARG002
        """Refused."""
        raise self._unavailable()

    def address(self) -> LogAddress:
        """Refused."""
        raise self._unavailable()

    def wait_for_more(self, positions: Sequence[int], given_up: Callable[[], bool]) -> None:
        """Nobody follows it."""

    def release(self, positions: Sequence[int]) -> None:
        """Nothing is let go of."""

    def wake(self) -> None:
        """Nobody waits."""

    def took(self, row_bytes: int) -> None:
        """Nothing was."""

    def failed(self) -> None:
        """Nothing was asked for."""

    def close(self) -> None:
        """Nothing is held."""

    def remove(self) -> None:
        """Only what is somebody else's is let go of unseen, and that stays."""

    def _unavailable(self) -> UnavailableError:
        return UnavailableError(f"the log of feed {self._feed.name} cannot be opened: {self.reason}")


class LogOpening:
    """Opens a log in a thread of its own, however often that has to be tried, with longer and longer pauses between.

    Args:
        opened: called with the log, once; whoever has stopped this by then closes it.
        obstructed: called with the reason each time that it could not be opened.
    """

    def __init__(
        self, made: OpenableLog, opened: Callable[[PublicationLog], None], obstructed: Callable[[str], None]
    ) -> None:
        self._log, self._opened, self._obstructed = made, opened, obstructed
        self._stopping = threading.Event()
        threading.Thread(target=self._run, name="open-log", daemon=True).start()

    def stop(self) -> None:
        """Tries no more. An attempt that is under way may still come to its end."""
        self._stopping.set()

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping.wait(pause):
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                self._opened(self._log.open())
            except SupersededError:
                return
            except TocsinError as error:
                self._obstructed(str(error))
            except Exception as error:
                log.exception("a log cannot be opened")
                self._obstructed(f"{type(error).__name__}: {error}")
            else:
                return
