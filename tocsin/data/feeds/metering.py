"""How much of a topic a batch reads: counted by Spark on the way, before anything is parsed, checked or dropped; and
that it ends where it is far too much."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

# Spark tells what it has counted a moment after a query; should that be lost, it would never do.
_TOLD_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.01
FEWER: Final = "a batch is far larger than those before; it is read by fewer messages at a time"


class MeasuredRead:
    """A part of a topic that is read: so many ``offsets``, of which some may have no message."""

    def __init__(self, offsets: int) -> None:
        self.offsets = offsets
        self._observation = Observation()

    def watch(self, messages: DataFrame) -> DataFrame:
        """The same messages, which are counted when they are read for the first time."""
        size = F.sum(F.octet_length("value")).alias("size")
        return messages.observe(self._observation, F.count(F.lit(1)).alias("messages"), size)

    def size(self, message_bytes: float) -> int:
        """The bytes of the values, after they were read: as if each offset had a message such as there were.

        Where none was counted, ``message_bytes`` is taken for what one has.
        """
        counted = self._observation.get if self._is_told() else {}
        messages, size = counted.get("messages") or 0, counted.get("size") or 0
        return int(self.offsets * (size / messages if messages else message_bytes))

    def _is_told(self) -> bool:
        # There is no other way to ask for what is there already: its reader waits for ever.
        told, deadline = self._observation._jo.future(), time.monotonic() + _TOLD_SECONDS  # type: ignore[union-attr]
        while not told.isCompleted() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return bool(told.isCompleted())


class SurplusError(Exception):
    """A batch turns out to be far larger than its records were thought to be: nothing is wrong with them, but it is to
    be read by fewer at a time."""


def bounded(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """The lines of a slice, as far as so many bytes; what is more is a SurplusError."""
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > most:
            raise SurplusError(f"a slice has more than {most:,} bytes in this batch")
        yield batch


def is_surplus(error: BaseException) -> bool:
    """Whether that is why Spark could not read a batch."""
    return SurplusError.__name__ in str(error)
