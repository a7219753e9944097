"""Opening a table after whatever happened to it: the last commit that is whole is where it goes on.

An entry of ours comes into the log after everything it names is on disk, so a power cut leaves it there as a whole or
not at all. What is found otherwise was written by somebody who did not wait for the disk, or the disk did not keep its
word. Such a tail of the log is set aside for a person to look at, with the files that only it names.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from tocsin.data.disk import Disk, make_directory
from tocsin.data.lake.checkpoints import POINTER, STAGING, readable
from tocsin.data.lake.entries import LOG, CommitEntry, checkpoints, entry_name, numbered, read_entry
from tocsin.errors import StorageError
from tocsin.log import get_logger

log = get_logger(__name__)

QUARANTINE: Final = "_quarantine"
_CREATION: Final = "_creation"
_CONFIGURATION: Final = {
    # Files are deleted by us, who know which are still being read; the log need not remember them.
    "delta.deletedFileRetentionDuration": "interval 1 seconds",
    "delta.dataSkippingStatsColumns": "_v",
}


def open_table(path: Path, schema: pa.Schema, disk: Disk) -> DeltaTable:
    """The table at ``path`` as of its last whole commit; made if there is none."""
    for leftover in (STAGING, _CREATION):
        shutil.rmtree(path / leftover, ignore_errors=True)
    doomed = _unreadable(path)
    if doomed:
        _quarantine(path, doomed, disk)
    if not numbered(path / LOG) and not checkpoints(path / LOG):
        _create(path, schema, disk)
    delta = DeltaTable(str(path))
    _keep(path, delta, disk)
    return delta


def set_aside(path: Path) -> list[Path]:
    """What was set aside of a table, and nobody has taken away since."""
    return sorted((path / QUARANTINE).glob("[!.]*"))


def _create(path: Path, schema: pa.Schema, disk: Disk) -> None:
    staging = path / _CREATION
    make_directory(path / LOG)
    DeltaTable.create(str(staging), schema=schema, configuration=_CONFIGURATION)
    first = staging / LOG / entry_name(0)
    disk.keep(first)
    first.replace(path / LOG / first.name)
    disk.keep(path / LOG)
    shutil.rmtree(staging)


def _keep(path: Path, delta: DeltaTable, disk: Disk) -> None:
    """What is found counts from now on, even if whoever wrote it died before the disk had it."""
    newest = read_entry(path / LOG / entry_name(delta.version()))
    if newest is None or not newest.synced:
        names = pa.table(delta.get_add_actions())["path"].to_pylist()
        disk.keep(*(file for file in (path / LOG).iterdir() if file.is_file()), *(path / name for name in names))
    disk.keep(path / LOG, path)


def _unreadable(path: Path) -> list[Path]:
    """The checkpoints that cannot be read, and the entries at the end of the log that are not whole."""
    damaged = []
    start = -1
    for number, checkpoint in sorted(checkpoints(path / LOG).items(), reverse=True):
        if readable(checkpoint):
            start = number
            break
        damaged.append(checkpoint)
    _check_pointer(path / LOG / POINTER, start)
    return [*damaged, *_tail(path, {n: file for n, file in numbered(path / LOG).items() if n > start}, start + 1)]


def _tail(path: Path, found: dict[int, Path], first: int) -> list[Path]:
    """Of the entries from ``first`` on those at the end that are not whole."""
    entries = {number: read_entry(file) for number, file in found.items()}
    end = first
    while entries.get(end) is not None:
        end += 1
    # Whoever wrote one of these knew that those before it were on disk: this is no power cut, and much would be lost.
    if any(entry is not None and entry.synced for number, entry in entries.items() if number > end):
        raise StorageError(
            f"the table at {path} is damaged: entry {entry_name(end)} of its log cannot be read, but later ones can; "
            "restore the table from a backup, or move it away to begin with none"
        )
    while end > first and _lacks_files(path, entries[end - 1]):
        end -= 1
    return [file for number, file in found.items() if number >= end]


def _lacks_files(path: Path, entry: CommitEntry | None) -> bool:
    return entry is None or not all(_is_there(path / name, size) for name, size in entry.added.items())


def _is_there(file: Path, size: int) -> bool:
    return file.is_file() and file.stat().st_size == size


def _check_pointer(pointer: Path, checkpoint: int) -> None:
    """Removes a pointer to another than the newest checkpoint; it only saves the search."""
    try:
        if json.loads(pointer.read_bytes())["version"] == checkpoint:
            return
    except (OSError, ValueError, KeyError, TypeError):
        pass
    pointer.unlink(missing_ok=True)


def _quarantine(path: Path, doomed: Iterable[Path], disk: Disk) -> None:
    """Moves files out of the way, newest entries first: at any point what is left is a table and a tail."""
    place = path / QUARANTINE
    make_directory(place)
    entries = sorted(doomed, key=lambda file: file.name, reverse=True)
    files = {path / name for file in entries if (entry := read_entry(file)) for name in entry.added}
    for file in (*entries, *sorted(files)):
        if file.exists():
            file.replace(_free_name(place, file.name))
    disk.keep(path / LOG, path, place)
    log.error(
        "the end of a table could not be read and was set aside; it goes on from its last whole commit",
        table=path.name,
        files=len(entries),
        first=entries[-1].name,
        kept_in=str(place),
    )


def _free_name(place: Path, name: str) -> Path:
    taken = {file.name for file in place.iterdir()}
    names = (name, *(f"{name}.{number}" for number in range(1, len(taken) + 2)))
    return place / next(free for free in names if free not in taken)
