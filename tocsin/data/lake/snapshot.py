"""What a table consists of at one version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from tocsin.data.lake.entries import VERSION, File
from tocsin.data.lake.folder import Folder


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The files of a table at ``version``. They stay while it is held."""

    version: int
    files: tuple[File, ...]

    def after(self, since: int) -> list[File]:
        """The files that may hold rows newer than ``since``."""
        return [file for file in self.files if file.newest > since]

    def paths(self, since: int = -1) -> list[str]:
        """The paths of the files that may hold rows newer than ``since``."""
        return [file.path for file in self.after(since)]


def committed_files(folder: Folder, delta: DeltaTable, version: int) -> Iterator[File]:
    """The files of the table in a folder, whose newest version is this one."""
    actions = pa.table(delta.get_add_actions(flatten=True))
    paths = [folder.path(name) for name in actions["path"].to_pylist()]
    sizes, rows = (actions[name].to_pylist() for name in ("size_bytes", "num_records"))
    # A file without statistics counts as old and new, so that it is never passed over and always filtered.
    bounds = _bounds(actions, "min", 0), _bounds(actions, "max", version)
    stamped = [not empty for empty in _bounds(actions, "null_count", 0)]
    return map(File, paths, *bounds, sizes, rows, stamped)


def _bounds(actions: pa.Table, end: str, unknown: int) -> list[int]:
    """The least or the greatest version in each file, or how many rows have none, as its statistics say."""
    name = f"{end}.{VERSION}"
    if name not in actions.column_names:
        return [unknown] * actions.num_rows
    return [unknown if version is None else version for version in actions[name].to_pylist()]
