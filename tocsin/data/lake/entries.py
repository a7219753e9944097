"""The entries of a Delta log: one JSON file per commit, a line per action.

We write them ourselves, after everything they name is on disk, and read them before the Delta library does, to find out
whether they are whole. They are plain Delta entries that any reader of Delta tables understands.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tocsin.data.lake.folder import Folder

VERSION: Final = "_v"
VERSION_MARKER: Final = "version"
TERM_MARKER: Final = "head-term"
LOG: Final = "_delta_log"
FENCE: Final = "FENCE"
"""The operation of a commit that does nothing but keep earlier writers from committing."""
_WRITER: Final = "tocsin.node"
_NAME: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")


class File(NamedTuple):
    """A file of a table, by its path as Spark has it, with the oldest and the newest version of a row in it.

    One that is not ``stamped`` has no versions in its rows, as whoever wrote it did not know which commit would take
    it: all of them are of that commit's version.
    """

    path: str
    oldest: int
    newest: int
    size: int = 0
    rows: int = 0
    stamped: bool = True

    @property
    def name(self) -> str:
        """The name of the file in the table's folder."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class TableChange:
    """What a commit does: which files come and which go, and how far it got. ``news`` unless the rows stay the same.

    ``writers`` are the nodes that wrote files, by the files' names.
    """

    operation: str
    added: tuple[File, ...] = ()
    removed: tuple[File, ...] = ()
    markers: Mapping[str, int] = field(default_factory=dict)
    news: bool = True
    writers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CommitNews:
    """What an entry says to who follows the log: names of files that came and went, and how far the markers got."""

    added: tuple[File, ...]
    removed: frozenset[str]
    markers: Mapping[str, int]


@dataclass(frozen=True)
class CommitEntry:
    """What an entry that is whole says: the files that came and their sizes, and how far the markers got.

    ``synced`` if whoever wrote it knew that all before it was on disk.
    """

    added: Mapping[str, int]
    markers: Mapping[str, int]
    synced: bool
    operation: str = ""


def entry_name(number: int) -> str:
    """The name of the entry with this number."""
    return f"{number:020d}.json"


def find_entries(log: Iterable[str]) -> dict[int, str]:
    """The entries among the files of a log."""
    return _matching(log, _NAME)


def checkpoints(log: Iterable[str]) -> dict[int, str]:
    """The checkpoints among them, each of which has all that the entries up to its number say."""
    return _matching(log, _CHECKPOINT)


def is_kept(log: Folder, number: int) -> bool:
    """Whether a log still has an entry, or what it said as its newest checkpoint.

    If not, others have gone on since: an entry goes before those after it do.
    """
    return log.find(entry_name(number)) is not None or max(checkpoints(log.files()), default=-1) == number


def encode_entry(change: TableChange, synced: bool, term: int = 0) -> bytes:
    """An entry for a change, made under a term, if there is one; unlike any other entry.

    It says how many actions it has, so that one cut short is known as such.
    """
    now = int(time.time() * 1000)
    actions = [{"add": _add(file, now, change.news, change.writers.get(file.name))} for file in change.added]
    actions += [{"remove": _remove(file, now, change.news)} for file in change.removed]
    actions += [{"txn": {"appId": name, "version": value}} for name, value in change.markers.items()]
    if term:
        actions.append({"txn": {"appId": TERM_MARKER, "version": term}})
    ours = {"engineInfo": "tocsin", "txnId": str(uuid.uuid4()), "actions": len(actions), "synced": synced}
    commit = {"timestamp": now, "operation": change.operation, **ours}
    return b"\n".join(json.dumps(action).encode() for action in [{"commitInfo": commit}, *actions])


def read_entry(log: Folder, name: str) -> CommitEntry | None:
    """What an entry says; None if it is not there as it was written."""
    try:
        actions = [json.loads(line) for line in log.read(name).splitlines()]
        commit: dict[str, Any] = next(action["commitInfo"] for action in actions if "commitInfo" in action)
        if len(actions) - 1 != commit.get("actions", len(actions) - 1):
            return None
        if name == entry_name(0) and not {"protocol", "metaData"} <= {key for action in actions for key in action}:
            return None
        added = {action["add"]["path"]: int(action["add"]["size"]) for action in actions if "add" in action}
        markers = {action["txn"]["appId"]: int(action["txn"]["version"]) for action in actions if "txn" in action}
        return CommitEntry(added, markers, bool(commit.get("synced", False)), str(commit.get("operation", "")))
    except (FileNotFoundError, ValueError, KeyError, TypeError, StopIteration):
        return None


def read_news(log: Folder, name: str) -> CommitNews:
    """What an entry that counts says; the paths of its files are names. Raises OSError or ValueError if it cannot."""
    actions = [json.loads(line) for line in log.read(name).splitlines()]
    return CommitNews(
        tuple(_added_file(action["add"]) for action in actions if "add" in action),
        frozenset(action["remove"]["path"] for action in actions if "remove" in action),
        {action["txn"]["appId"]: int(action["txn"]["version"]) for action in actions if "txn" in action},
    )


def find_writer(log: Folder, entries: Iterable[str], file: str) -> str:
    """The node that wrote a file, if one of these entries says so; else empty. Raises OSError if it cannot be read."""
    for name in entries:
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            for line in log.read(name).splitlines():
                if file.encode() in line and (add := json.loads(line).get("add")) and add["path"] == file:
                    return str(add["tags"][_WRITER])
    return ""


def _added_file(add: dict[str, Any]) -> File:
    stats = json.loads(add["stats"])
    oldest, newest, empty = (int(stats[name][VERSION]) for name in ("minValues", "maxValues", "nullCount"))
    return File(add["path"], oldest, newest, int(add["size"]), int(stats["numRecords"]), not empty)


def _matching(log: Iterable[str], pattern: re.Pattern[str]) -> dict[int, str]:
    return {int(match[1]): match[0] for name in sorted(log) if (match := pattern.fullmatch(name))}


def _add(file: File, now: int, news: bool, writer: str | None) -> dict[str, object]:
    empty = 0 if file.stamped else file.rows
    bounds = {"minValues": {VERSION: file.oldest}, "maxValues": {VERSION: file.newest}, "nullCount": {VERSION: empty}}
    return {
        "path": file.name,
        "partitionValues": {},
        "size": file.size,
        "modificationTime": now,
        "dataChange": news,
        "stats": json.dumps({"numRecords": file.rows, **bounds}),
        **({"tags": {_WRITER: writer}} if writer else {}),
    }


def _remove(file: File, now: int, news: bool) -> dict[str, object]:
    return {"path": file.name, "deletionTimestamp": now, "dataChange": news, "extendedFileMetadata": False}
