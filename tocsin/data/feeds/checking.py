"""Records that nobody has checked on their way into a log, checked where they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from tocsin.data.feeds.source import ARROW
from tocsin.errors import InvalidError
from tocsin.schema.definitions import Dataset
from tocsin.schema.records import RecordDecoder

Batches = Iterator[pa.RecordBatch]
_Row = tuple[int, int, str | None, str | None]


def check_lines(dataset: Dataset, sliced_by: str) -> Callable[[Batches], Batches]:
    """What Spark's workers do with the lines of a log: good records in their canonical form, others as damage.

    A line is an object, or a list of them.
    """

    def check(batches: Batches) -> Batches:
        decoder = RecordDecoder(dataset, sliced_by)
        for batch in batches:
            lines = zip(*(batch.column(name).to_pylist() for name in ARROW.names), strict=True)
            rows = [dict(zip(ARROW.names, row, strict=True)) for line in lines for row in _check(decoder, *line)]
            yield pa.RecordBatch.from_pylist(rows, schema=ARROW)

    return check


def _check(decoder: RecordDecoder, slice: int, position: int, line: str | None, damage: str | None) -> Iterator[_Row]:
    if line is None or damage:
        yield slice, position, line, damage
        return
    try:
        batch = decoder.decode(line.encode(), "application/json")
    except InvalidError as error:
        yield slice, position, line, str(error)
        return
    for good in batch.lines:
        yield slice, position, good.decode(), None
    for refusal in batch.refusals:
        yield slice, position, line, refusal.reason
