"""Opening a table after whatever happened to it: the last commit that is whole is where it goes on.

An entry of ours comes into the log after everything it names is on disk, so a power cut leaves it there as a whole or
not at all. What is found otherwise was written by somebody who did not wait for the disk, or the disk did not keep its
word. Such a tail of the log is set aside for a person to look at, with the files that only it names. A table whose
columns are others than its definition says is refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from tocsin.data.lake.checkpoints import POINTER, readable
from tocsin.data.lake.entries import LOG, CommitEntry, checkpoints, entry_name, find_entries, read_entry
from tocsin.data.lake.folder import DRAFT, Folder, FoundFile
from tocsin.errors import StorageError
from tocsin.log import get_logger

log = get_logger(__name__)

QUARANTINE: Final = "_quarantine"
_DRAFT_SECONDS: Final = 600.0
_CONFIGURATION: Final = {
    # Files are deleted by us, who know which are still being read; the log need not remember them.
    "delta.deletedFileRetentionDuration": "interval 1 seconds",
    "delta.dataSkippingStatsColumns": "_v",
}
# Differences between columns that do not matter: views, large variants, the name of a list's items.
_SAME: Final = {"large_": "", "_view": "", "<element: ": "<item: "}


def open_table(folder: Folder, schema: pa.Schema) -> DeltaTable:
    """The table in ``folder`` as of its last whole commit; made if there is none."""
    for place in (folder, folder.below(LOG)):
        _remove_drafts(place)
    doomed = _unreadable(folder)
    if doomed:
        _quarantine(folder, doomed)
    names = folder.below(LOG).files()
    if not find_entries(names) and not checkpoints(names):
        _create(folder, schema)
    delta = DeltaTable(**folder.delta)
    _keep(folder, delta)
    return delta


def check_schema(place: str, found: pa.Schema, declared: pa.Schema) -> None:
    """Refuses a table whose columns are others than those declared, and says which."""
    stored, wanted = _plain(found), _plain(declared)
    differing = [name for name in {**wanted, **stored} if stored.get(name) != wanted.get(name)]
    if differing:
        pairs = (f"{n} is {stored.get(n, 'missing')}, declared {wanted.get(n, 'as no column')}" for n in differing)
        raise StorageError(
            f"the table at {place} does not fit its definition ({'; '.join(pairs)}): "
            "restore the one or the other from a backup, or move the table away to begin with none"
        )


def _plain(schema: pa.Schema) -> Mapping[str, str]:
    columns = {field.name: str(field.type) for field in schema}
    for old, new in _SAME.items():
        columns = {name: text.replace(old, new) for name, text in columns.items()}
    return columns


def _remove_drafts(place: Folder) -> None:
    """Removes drafts that crashes left; a young one may be of somebody who is about to take over."""
    before = time.time() - _DRAFT_SECONDS
    for name, found in place.files().items():
        if name.startswith(DRAFT) and found.changed_at < before:
            place.delete(name)


def set_aside(folder: Folder) -> list[str]:
    """What was set aside of a table, and nobody has taken away since."""
    return sorted(name for name in folder.below(QUARANTINE).files() if not name.startswith("."))


def _create(folder: Folder, schema: pa.Schema) -> None:
    folder.below(LOG).make()
    with TemporaryDirectory(prefix="tocsin-table-") as staging:
        DeltaTable.create(staging, schema=schema, configuration=_CONFIGURATION)
        first = Path(staging, LOG, entry_name(0)).read_bytes()
    # Whoever else has just made it made the same.
    with suppress(FileExistsError):
        folder.commit(0, first)


def _keep(folder: Folder, delta: DeltaTable) -> None:
    """What is found counts from now on, even if whoever wrote it died before the disk had it."""
    log = folder.below(LOG)
    newest = read_entry(log, entry_name(delta.version()))
    whole = newest is not None and newest.synced
    log.keep(*(() if whole else log.files()))
    folder.keep(*(() if whole else pa.table(delta.get_add_actions())["path"].to_pylist()))


def _unreadable(folder: Folder) -> list[str]:
    """The checkpoints that cannot be read, and the entries at the end of the log that are not whole."""
    log = folder.below(LOG)
    names = log.files()
    damaged = []
    start = -1
    for number, checkpoint in sorted(checkpoints(names).items(), reverse=True):
        if readable(log, checkpoint):
            start = number
            break
        damaged.append(checkpoint)
    _check_pointer(log, start)
    return [*damaged, *_tail(folder, {n: name for n, name in find_entries(names).items() if n > start}, start + 1)]


def _tail(folder: Folder, found: dict[int, str], first: int) -> list[str]:
    """Of the entries from ``first`` on those at the end that are not whole."""
    log = folder.below(LOG)
    entries = {number: read_entry(log, name) for number, name in found.items()}
    end = first
    while entries.get(end) is not None:
        end += 1
    # Whoever wrote one of these knew that those before it were on disk: this is no power cut, and much would be lost.
    if any(entry is not None and entry.synced for number, entry in entries.items() if number > end):
        raise StorageError(
            f"the table at {folder.url} is damaged: entry {entry_name(end)} of its log cannot be read, but later ones "
            "can; restore the table from a backup, or move it away to begin with none"
        )
    files = folder.files()
    while end > first and _lacks_files(files, entries[end - 1]):
        end -= 1
    return [name for number, name in found.items() if number >= end]


def _lacks_files(files: dict[str, FoundFile], entry: CommitEntry | None) -> bool:
    if entry is None:
        return True
    return not all(name in files and files[name].size == size for name, size in entry.added.items())


def _check_pointer(log: Folder, checkpoint: int) -> None:
    """Removes a pointer to another than the newest checkpoint; it only saves the search."""
    try:
        if json.loads(log.read(POINTER))["version"] == checkpoint:
            return
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):
        pass
    log.delete(POINTER)


def _quarantine(folder: Folder, doomed: Iterable[str]) -> None:
    """Moves files out of the way, newest entries first: at any point what is left is a table and a tail."""
    log_folder, place = folder.below(LOG), folder.below(QUARANTINE)
    place.make()
    entries = sorted(doomed, reverse=True)
    files = {name for file in entries if (entry := read_entry(log_folder, file)) for name in entry.added}
    for name in entries:
        log_folder.move(name, place, _free_name(place, name))
    for name in sorted(files & folder.files().keys()):
        folder.move(name, place, _free_name(place, name))
    for changed in (log_folder, folder, place):
        changed.keep()
    log.error(
        "the end of a table could not be read and was set aside; it goes on from its last whole commit",
        table=folder.name,
        files=len(entries),
        first=entries[-1],
        kept_in=place.url,
    )


def _free_name(place: Folder, name: str) -> str:
    taken = place.files()
    names = (name, *(f"{name}.{number}" for number in range(1, len(taken) + 2)))
    return next(free for free in names if free not in taken)
