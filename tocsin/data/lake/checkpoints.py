"""Checkpoints: what a long log says in one file, so that opening a table does not take ever longer.

The Delta library makes them, beside the log: in place it would name one before the disk has it. What a checkpoint
replaces is removed after it is on disk, and the one before is kept, should the newest turn out to be damaged.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tocsin.data.disk import Disk
from tocsin.data.lake.entries import LOG, checkpoints, numbered, read_entry

POINTER: Final = "_last_checkpoint"
STAGING: Final = "_checkpoint"


def entries_since_checkpoint(path: Path) -> int:
    """How many entries the log of a table has that no checkpoint has."""
    log = path / LOG
    return max(numbered(log), default=0) - max(checkpoints(log), default=0)


def write_checkpoint(path: Path, disk: Disk) -> None:
    """Puts a checkpoint of all that is committed in place; commits may come meanwhile."""
    staging, log = path / STAGING, path / LOG
    shutil.rmtree(staging, ignore_errors=True)
    (staging / LOG).mkdir(parents=True)
    before = checkpoints(log)
    for file in (*before.values(), *numbered(log).values()):
        os.link(file, staging / LOG / file.name)
    DeltaTable(str(staging)).create_checkpoint()
    made = checkpoints(staging / LOG)
    newest = made[max(made)]
    disk.keep(newest, staging / LOG / POINTER)
    newest.replace(log / newest.name)
    # The pointer comes second, so that it never points to what is not there.
    disk.keep(log)
    (staging / LOG / POINTER).replace(log / POINTER)
    disk.keep(log)
    shutil.rmtree(staging)
    _clean_up(log, max(before, default=0))


def readable(checkpoint: Path) -> bool:
    """Whether a checkpoint is there as a whole."""
    try:
        pq.read_table(checkpoint)
    except (OSError, pa.ArrowException):
        return False
    return True


def read_markers(log: Path) -> dict[str, int]:
    """How far all the commits got, each marker as the last one had it that moved it."""
    newest = max(checkpoints(log), default=-1)
    found: dict[str, int] = {}
    if newest >= 0:
        said = pq.read_table(checkpoints(log)[newest], columns=["txn"])["txn"].to_pylist()
        found = {action["appId"]: action["version"] for action in said if action and action["appId"] is not None}
    for number, file in numbered(log).items():
        entry = read_entry(file) if number > newest else None
        found.update(entry.markers if entry else {})
    return found


def _clean_up(log: Path, before: int) -> None:
    """Removes what is older than a checkpoint, which is not needed for it."""
    for found in (numbered(log), checkpoints(log)):
        for number, file in found.items():
            if number < before:
                file.unlink()
