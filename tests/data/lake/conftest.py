"""A table in a folder of its own, in a directory or in S3, and its rows in an order to compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.s3 import S3Server
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.table import Table

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64())])
directory_only = pytest.mark.parametrize("folder", ["directory"], indirect=True)


@pytest.fixture(params=["directory", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    """What the table is in."""
    if request.param == "directory":
        return DirectoryFolder(tmp_path / "table")
    server: S3Server = request.getfixturevalue("s3")
    return server.folder()


@pytest.fixture
def reopen(folder: Folder) -> Callable[[], Table]:
    """Opens the table, as another process would find it."""
    return lambda: Table(folder, SCHEMA)


@pytest.fixture
def table(reopen: Callable[[], Table]) -> Table:
    return reopen()


@pytest.fixture
def remembering(folder: Folder) -> Table:
    """A table that keeps what it got last in memory."""
    return Table(folder, SCHEMA, recent_bytes=10_000)


@pytest.fixture
def parquet_files() -> Callable[[Table], set[str]]:
    """The Parquet files that are there, whether the table has them or not."""
    return lambda table: {table.folder.path(name) for name in table.folder.files() if name.endswith(".parquet")}


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
