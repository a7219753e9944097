"""What brings a feed's batches, one after the other, as its log grows: a thread of ours, or a streaming query.

Both begin at the positions they are given, and end for good when a batch fails; whoever started them begins anew from
the markers. The thread reads as soon as something is appended. The query polls, and keeps a checkpoint that nobody
relies on.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession

from tocsin.data.feeds.logs import PublicationLog
from tocsin.data.feeds.metering import FEWER, is_surplus
from tocsin.data.reasons import reason_of
from tocsin.log import get_logger
from tocsin.slices.failures import FailingSlices

log = get_logger(__name__)

# How long a slice that is left out for a while keeps what comes for others waiting, at most.
_LOOK_SECONDS: Final = 0.1

Take = Callable[[DataFrame], None]


class Following(Protocol):
    """What brings batches until it is stopped."""

    def ended(self, seconds: float) -> bool:
        """Whether it has ended within so many seconds; raises the reason if that was an error."""

    def cancel(self) -> None:
        """Ends what Spark does for the batch at hand, which fails by that."""

    def stop(self) -> None:
        """Brings no more, after the batch at hand."""


class LogFollowing:
    """A thread that reads a log as soon as something is there.

    Args:
        name: of what it follows, for whoever looks at threads and at Spark's jobs.
        positions: where to begin.
        failing: which slices have made batches fail, whoever followed the log then.
        max_bytes: about the most that a batch has.
        pause: seconds from the beginning of a batch to that of the next, at least.
        take: called with each batch.
    """

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        log: PublicationLog,
        positions: Sequence[int],
        failing: FailingSlices,
        max_bytes: int,
        pause: float,
        take: Take,
    ) -> None:
        self._spark, self._log, self._positions, self._failing = spark, log, list(positions), failing
        self._taking: list[int] = []
        self._max_bytes, self._pause, self._take = max_bytes, pause, take
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self._jobs = f"feed-{name}-{id(self)}"
        self._thread = threading.Thread(target=self._run, name=f"follow-{name}", daemon=True)
        self._thread.start()

    def ended(self, seconds: float) -> bool:
        """Whether it has ended within so many seconds; raises the reason if that was an error."""
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Ends what Spark does for the batch at hand, which fails by that."""
        self._spark.sparkContext.cancelJobGroup(self._jobs)

    def stop(self) -> None:
        """Brings no more, after the batch at hand."""
        self._stopping.set()
        self._log.wake()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._spark.sparkContext.setJobGroup(self._jobs, self._jobs)
            while not self._stopping.is_set():
                self._step()
        except Exception as error:
            self._log.failed()
            self._failing.fail(time.monotonic(), self._taking, reason_of(error))
            self._error = error

    def _step(self) -> None:
        began = time.monotonic()
        ends = self._log.ends()
        waiting = [index for index, position in enumerate(self._positions) if ends[index] > position]
        self._taking = self._failing.choose(began, waiting)
        if not waiting:
            self._log.wait_for_more(self._positions, self._stopping.is_set)
        elif not self._taking:
            self._stopping.wait(_LOOK_SECONDS)
        else:
            self._read(self._log.batch_ends(self._positions, self._max_bytes, self._taking))
            self._stopping.wait(max(began + self._pause - time.monotonic(), 0.0))

    def _read(self, ends: list[int]) -> None:
        try:
            self._take(self._log.batch(self._spark, self._positions, ends))
        except Exception as error:
            if not is_surplus(error):
                raise
            log.info(FEWER, following=self._jobs, reason=reason_of(error))
            self._log.failed()
            return
        self._positions = ends
        self._failing.succeed(self._taking, found=True)


class QueryFollowing:
    """A Structured Streaming query on any log; ``checkpoint`` is a directory that it may do with as it likes."""

    def __init__(self, stream: DataFrame, name: str, checkpoint: Path, pause: float, take: Take) -> None:
        self._context, self._checkpoint = stream.sparkSession.sparkContext, checkpoint
        shutil.rmtree(checkpoint, ignore_errors=True)
        self._query = (
            stream.writeStream.foreachBatch(lambda batch, _: take(batch))
            .queryName(name)
            .option("checkpointLocation", checkpoint.as_uri())
            .trigger(processingTime=f"{int(pause * 1000)} milliseconds")
            .start()
        )

    def ended(self, seconds: float) -> bool:
        """Whether it has ended within so many seconds; raises the reason if that was an error."""
        # Spark takes whole seconds.
        return bool(self._query.awaitTermination(max(int(seconds), 1)))

    def cancel(self) -> None:
        """Ends what Spark does for the batch at hand, which fails by that."""
        self._context.cancelJobGroup(str(self._query.runId))

    def stop(self) -> None:
        """Brings no more, after the batch at hand."""
        self._query.stop()
        shutil.rmtree(self._checkpoint, ignore_errors=True)
