"""Records that nobody has checked on their way into a log, checked where they are read.

Whatever a message has in it, it costs its feed a bounded amount of work and at most one dead letter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa

from tocsin.data.feeds.metering import bounded
from tocsin.data.feeds.source import ARROW
from tocsin.errors import InvalidError
from tocsin.model.messages import Refusal
from tocsin.schema.definitions import Dataset
from tocsin.schema.records import RecordDecoder, count_records

MESSAGE_BYTES: Final = 4 << 20
MESSAGE_RECORDS: Final = 10_000
LETTER_BYTES: Final = 64 << 10
"""Of a line that becomes a dead letter, so much is kept."""
SEVERAL: Final = "send its records in several messages"
_LISTED: Final = 3
_LONGEST_REASON: Final = 300
# What is taken in hand at a time, and given on at a time.
_TAKEN_ROWS: Final = 16
_PIECE_ROWS: Final = 1000
_PIECE_BYTES: Final = 4 << 20

Batches = Iterator[pa.RecordBatch]
Row = tuple[int, int, str | None, str | None]


def check_lines(dataset: Dataset, sliced_by: str, most: int | None = None) -> Callable[[Batches], Batches]:
    """What Spark's workers do with the lines of a log: good records in their canonical form, others as damage.

    A line is an object, or a list of them, or several lines of objects. What is wrong with it is one row of damage.
    With ``most``, a task that has lines of more bytes gives up (:func:`tocsin.data.feeds.metering.is_surplus`).
    """

    def check(batches: Batches) -> Batches:
        decoder = RecordDecoder(dataset, sliced_by)
        for batch in batches if most is None else bounded(batches, most):
            yield from _pieces(row for line in _lines(batch) for row in _check(decoder, *line))

    return check


def _lines(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch, of which only a few are there twice at a time."""
    for first in range(0, batch.num_rows, _TAKEN_ROWS):
        taken = batch.slice(first, _TAKEN_ROWS)
        yield from zip(*(taken.column(name).to_pylist() for name in ARROW.names), strict=True)


def _pieces(rows: Iterable[Row]) -> Batches:
    """The rows in batches of no more than so many rows, and about so many bytes."""
    piece, size = list[Row](), 0
    for row in rows:
        piece.append(row)
        size += len(row[2] or "")
        if len(piece) >= _PIECE_ROWS or size >= _PIECE_BYTES:
            yield _batch(piece)
            piece, size = [], 0
    if piece:
        yield _batch(piece)


def _batch(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def _check(decoder: RecordDecoder, slice: int, position: int, line: str | None, damage: str | None) -> Iterator[Row]:
    if line is None or damage:
        yield slice, position, line, damage
        return
    try:
        good, reason = _decode(decoder, line.encode())
    except InvalidError as error:
        good, reason = [], _cut(str(error))
    except Exception as error:
        # Whatever it is, it would be again, and nothing behind it would ever be stored.
        good, reason = [], _cut(f"cannot be checked ({type(error).__name__}: {error})")
    for record in good:
        yield slice, position, record.decode(), None
    if reason:
        yield (slice, position, *_letter(line, reason))


def _decode(decoder: RecordDecoder, body: bytes) -> tuple[list[bytes], str]:
    """The good records of a message, and what is wrong with the others; empty if nothing is."""
    if len(body) > MESSAGE_BYTES:
        return [], f"has {len(body):,} bytes, and {MESSAGE_BYTES:,} are taken: {SEVERAL}"
    records = count_records(body, MESSAGE_RECORDS)
    if records > MESSAGE_RECORDS:
        return [], f"has {records:,} records, and {MESSAGE_RECORDS:,} are taken: {SEVERAL}"
    batch = decoder.decode(body, "application/json")
    if not batch.refusals:
        return batch.lines, ""
    return batch.lines, _reason(batch.refusals, len(batch.refusals) + batch.unlisted, len(batch.lines))


def _reason(refusals: list[Refusal], refused: int, taken: int) -> str:
    if refused + taken == 1:
        return _cut(refusals[0].reason)
    listed = "; ".join(f"record {refusal.index + 1}: {_cut(refusal.reason)}" for refusal in refusals[:_LISTED])
    more = f"; and {refused - _LISTED:,} more" if refused > _LISTED else ""
    return f"{refused:,} of its {refused + taken:,} records are refused: {listed}{more}"


def _letter(line: str, reason: str) -> tuple[str, str]:
    """A line as it is kept, and why."""
    kept = line[:LETTER_BYTES].encode()[:LETTER_BYTES].decode(errors="ignore")
    if len(kept) == len(line):
        return line, reason
    return kept, f"{reason} (the first {LETTER_BYTES:,} of its {len(line.encode()):,} bytes are kept)"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"
