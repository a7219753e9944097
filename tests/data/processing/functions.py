"""Functions that feeds name in tests: some that do what they should, and all kinds that do not.

Records are an ``id`` and a ``value``. What a bad one does, it does at the value 13.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

BAD = 13


def unchanged(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(1, "value", pc.multiply(batch["value"], 2))


def even(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Drops odd values, and adds a row beside each multiple of ten."""
    values = batch.to_pylist()
    kept = [row for row in values if row["value"] % 2 == 0]
    added = [{"id": f"{row['id']}+", "value": -row["value"]} for row in values if row["value"] % 10 == 0]
    return pa.RecordBatch.from_pylist(kept + added, schema=batch.schema)


def tenth(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keeps multiples of ten."""
    return batch.filter(pa.array([value % 10 == 0 for value in batch["value"].to_pylist()]))


def nothing(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.slice(0, 0)


def raises(batch: pa.RecordBatch) -> pa.RecordBatch:
    if _is_bad(batch):
        raise ValueError("thirteen")
    return batch


def raises_elsewhere(batch: pa.RecordBatch) -> pa.RecordBatch:
    if BAD + 1 in batch["value"].to_pylist():
        raise ValueError("fourteen")
    return batch


def exits(batch: pa.RecordBatch) -> pa.RecordBatch:
    if _is_bad(batch):
        sys.exit(3)
    return batch


def dies(batch: pa.RecordBatch) -> pa.RecordBatch:
    if _is_bad(batch):
        os._exit(3)
    return batch


def crashes(batch: pa.RecordBatch) -> pa.RecordBatch:
    if _is_bad(batch):
        ctypes.string_at(0)
    return batch


def loops(batch: pa.RecordBatch) -> pa.RecordBatch:
    while _is_bad(batch):
        pass
    return batch


def hoards(batch: pa.RecordBatch) -> pa.RecordBatch:
    if _is_bad(batch):
        bytearray(1 << 40)
    return batch


def closes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Closes whatever is open, its way back included."""
    if _is_bad(batch):
        os.closerange(3, 1000)
    return batch


def splits(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Goes on twice, in two processes."""
    if _is_bad(batch):
        os.fork()
    return batch


def babbles(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Says something on its process's connection."""
    if _is_bad(batch):
        for descriptor in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                os.write(int(descriptor), b"nonsense" * 10)
    return batch


def other_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(["id"]) if _is_bad(batch) else batch


def other_type(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(1, "value", batch["value"].cast(pa.string())) if _is_bad(batch) else batch


def other_thing(batch: pa.RecordBatch) -> Any:
    return batch.to_pylist() if _is_bad(batch) else batch


def too_many(batch: pa.RecordBatch) -> pa.RecordBatch:
    if not _is_bad(batch):
        return batch
    return pa.RecordBatch.from_pylist([{"id": str(n), "value": n} for n in range(100_000)], schema=batch.schema)


def without_key(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(0, "id", pa.nulls(batch.num_rows, pa.string())) if _is_bad(batch) else batch


def unlike(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What some libraries make of it: large strings, and the columns in another order."""
    return batch.set_column(0, "id", batch["id"].cast(pa.large_string())).select(["value", "id"])


def by_tens(value: int, slices: int) -> int:
    """A slice for ten values each; none for negative ones."""
    if value < 0:
        sys.exit("no slice")
    return value // 10 % slices


def _is_bad(batch: pa.RecordBatch) -> bool:
    return BAD in batch["value"].to_pylist()


def slices_but_loops(value: Any, slices: int) -> int:
    """By the remainder, and never at a bad value."""
    while value == BAD:
        pass
    return int(value) % slices


def slices_but_dies(value: Any, slices: int) -> int:
    if value == BAD:
        os._exit(3)
    return int(value) % slices


def slices_but_lies(value: Any, slices: int) -> int:
    """What it says to its caller's caller is not what it gives."""
    if value == BAD:
        for descriptor in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                os.write(int(descriptor), b"nonsense" * 10)
    return int(value) % slices


def kinds(value: Any, slices: int) -> int:
    """A slice for each type of values."""
    return [str, int, float, Decimal, datetime, bool, tuple].index(type(value)) % slices
