"""Checkpoints: what a long log says in one file, so that opening a table does not take ever longer.

The Delta library makes them, of a copy of the log: in place it would name one before the disk has it. What a checkpoint
replaces is removed after it is durable, and the one before is kept, should the newest turn out to be damaged.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tocsin.data.lake.entries import LOG, checkpoints, find_entries, read_entry
from tocsin.data.lake.folder import Folder

POINTER: Final = "_last_checkpoint"


def entries_since_checkpoint(folder: Folder) -> int:
    """How many entries the log of a table has that no checkpoint has."""
    names = folder.below(LOG).files()
    return max(find_entries(names), default=0) - max(checkpoints(names), default=0)


def write_checkpoint(folder: Folder) -> None:
    """Puts a checkpoint of all that is committed in place; commits may come meanwhile."""
    log = folder.below(LOG)
    before = max(checkpoints(log.files()), default=0)
    with TemporaryDirectory(prefix="tocsin-checkpoint-") as staging:
        copy = Path(staging, LOG)
        copy.mkdir()
        for name in _needed_files(log):
            (copy / name).write_bytes(log.read(name))
        DeltaTable(staging).create_checkpoint()
        made = checkpoints(path.name for path in copy.iterdir())
        newest = made[max(made)]
        log.write(newest, (copy / newest).read_bytes())
        # The pointer comes second, so that it never points to what is not there.
        log.write(POINTER, (copy / POINTER).read_bytes())
    _clean_up(log, before)


def readable(log: Folder, checkpoint: str) -> bool:
    """Whether a checkpoint is there as a whole."""
    try:
        _read(log, checkpoint)
    except (FileNotFoundError, pa.ArrowException):
        return False
    return True


def read_markers(log: Folder) -> dict[str, int]:
    """How far all the commits got, each marker as the last one had it that moved it."""
    names = log.files()
    newest = max(checkpoints(names), default=-1)
    found: dict[str, int] = {}
    if newest >= 0:
        said = _read(log, checkpoints(names)[newest], ["txn"])["txn"].to_pylist()
        found = {action["appId"]: action["version"] for action in said if action and action["appId"] is not None}
    for number, name in find_entries(names).items():
        entry = read_entry(log, name) if number > newest else None
        found.update(entry.markers if entry else {})
    return found


def _read(log: Folder, checkpoint: str, columns: list[str] | None = None) -> pa.Table:
    return pq.read_table(pa.BufferReader(log.read(checkpoint)), columns=columns)


def _needed_files(log: Folder) -> list[str]:
    """The newest checkpoint in a log and the entries after it, which say all that there is to say."""
    names = log.files()
    found = checkpoints(names)
    newest = max(found, default=-1)
    after = [name for number, name in find_entries(names).items() if number >= newest]
    return [found[newest], *after] if found else after


def _clean_up(log: Folder, before: int) -> None:
    """Removes what is older than a checkpoint, which is not needed for it."""
    names = log.files()
    for found in (find_entries(names), checkpoints(names)):
        for number, name in found.items():
            if number < before:
                log.delete(name)
