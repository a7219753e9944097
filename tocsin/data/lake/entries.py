"""The entries of a Delta log: one JSON file per commit, a line per action.

We write them ourselves, after everything they name is on disk, and read them before the Delta library does, to find out
whether they are whole. They are plain Delta entries that any reader of Delta tables understands.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

VERSION: Final = "_v"
VERSION_MARKER: Final = "version"
LOG: Final = "_delta_log"
_NAME: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")


class File(NamedTuple):
    """A file of a table, with the oldest and the newest version of a row in it."""

    path: str
    oldest: int
    newest: int
    size: int = 0
    rows: int = 0


@dataclass(frozen=True)
class TableChange:
    """What a commit does: which files come and which go, and how far it got. ``news`` unless the rows stay the same."""

    operation: str
    added: tuple[File, ...] = ()
    removed: tuple[File, ...] = ()
    markers: Mapping[str, int] = field(default_factory=dict)
    news: bool = True


@dataclass(frozen=True)
class CommitEntry:
    """What an entry that is whole says: the files that came and their sizes, and how far the markers got.

    ``synced`` if whoever wrote it knew that all before it was on disk.
    """

    added: Mapping[str, int]
    markers: Mapping[str, int]
    synced: bool


def entry_name(number: int) -> str:
    """The name of the entry with this number."""
    return f"{number:020d}.json"


def numbered(log: Path) -> dict[int, Path]:
    """The entries in a log."""
    return _matching(log, _NAME)


def checkpoints(log: Path) -> dict[int, Path]:
    """The checkpoints in a log, each of which has all that the entries up to its number say."""
    return _matching(log, _CHECKPOINT)


def encoded(change: TableChange, synced: bool) -> bytes:
    """An entry for a change; it says how many actions it has, so that one cut short is known as such."""
    now = int(time.time() * 1000)
    actions = [{"add": _add(file, now, change.news)} for file in change.added]
    actions += [{"remove": _remove(file, now, change.news)} for file in change.removed]
    actions += [{"txn": {"appId": name, "version": value}} for name, value in change.markers.items()]
    ours = {"engineInfo": "tocsin", "actions": len(actions), "synced": synced}
    commit = {"timestamp": now, "operation": change.operation, **ours}
    return b"\n".join(json.dumps(action).encode() for action in [{"commitInfo": commit}, *actions])


def read_entry(path: Path) -> CommitEntry | None:
    """What an entry says; None if it is not there as it was written."""
    try:
        actions = [json.loads(line) for line in path.read_bytes().splitlines()]
        commit: dict[str, Any] = next(action["commitInfo"] for action in actions if "commitInfo" in action)
        if len(actions) - 1 != commit.get("actions", len(actions) - 1):
            return None
        if path.name == entry_name(0) and not {"protocol", "metaData"} <= {key for action in actions for key in action}:
            return None
        added = {action["add"]["path"]: int(action["add"]["size"]) for action in actions if "add" in action}
        markers = {action["txn"]["appId"]: int(action["txn"]["version"]) for action in actions if "txn" in action}
        return CommitEntry(added, markers, bool(commit.get("synced", False)))
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return None


def _matching(log: Path, pattern: re.Pattern[str]) -> dict[int, Path]:
    found: Iterable[Path] = log.iterdir() if log.is_dir() else ()
    matches = [(pattern.fullmatch(path.name), path) for path in found]
    return {int(match[1]): path for match, path in sorted(matches, key=lambda pair: pair[1].name) if match}


def _add(file: File, now: int, news: bool) -> dict[str, object]:
    bounds = {"minValues": {VERSION: file.oldest}, "maxValues": {VERSION: file.newest}, "nullCount": {VERSION: 0}}
    return {
        "path": Path(file.path).name,
        "partitionValues": {},
        "size": file.size,
        "modificationTime": now,
        "dataChange": news,
        "stats": json.dumps({"numRecords": file.rows, **bounds}),
    }


def _remove(file: File, now: int, news: bool) -> dict[str, object]:
    name = Path(file.path).name
    return {"path": name, "deletionTimestamp": now, "dataChange": news, "extendedFileMetadata": False}
