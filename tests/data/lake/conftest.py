"""A table in a directory of its own, and its rows in an order to compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tocsin.data.lake.table import Table

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64())])


@pytest.fixture
def reopen(tmp_path: Path) -> Callable[[], Table]:
    """Opens the table, as another process would find it."""
    return lambda: Table(tmp_path / "table", SCHEMA)


@pytest.fixture
def table(reopen: Callable[[], Table]) -> Table:
    return reopen()


@pytest.fixture
def remembering(tmp_path: Path) -> Table:
    """A table that keeps what it got last in memory."""
    return Table(tmp_path / "remembering", SCHEMA, recent_bytes=10_000)


@pytest.fixture
def rows() -> Callable[..., pa.Table]:
    """Rows given as key=value."""
    return lambda **values: pa.table({"key": list(values), "value": list(values.values())}, schema=SCHEMA)


@pytest.fixture
def content() -> Callable[[Table], dict[str, int]]:
    """The values of a table by their keys, which must differ."""

    def content(table: Table) -> dict[str, int]:
        found = table.read(columns=["key", "value"]).to_pylist()
        assert len({row["key"] for row in found}) == len(found)
        return {row["key"]: row["value"] for row in found}

    return content
