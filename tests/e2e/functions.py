"""A function that feeds of tests name: it takes most records as they are."""

from __future__ import annotations

import os

import pyarrow as pa


def picky(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Raises at what is broken, ends its process at what is deadly, and drops what is dull."""
    kinds = batch["kind"].to_pylist()
    if "broken" in kinds:
        raise ValueError("broken")
    if "deadly" in kinds:
        os._exit(3)
    return batch.filter(pa.array([kind != "dull" for kind in kinds]))
