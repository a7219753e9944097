"""A head's replay log in one SQLite file, in WAL mode."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec

from tocsin.errors import SettingsError, StorageError
from tocsin.lock import take_lock
from tocsin.model.histories import Era
from tocsin.overlay.messages import Routed
from tocsin.overlay.replay import KeptLog, excess
from tocsin.private import make_private
from tocsin.sqlite import transaction

FILE: Final = "replay.sqlite"
_SCHEMA: Final = 3
_HISTORY: Final = "CREATE TABLE history (number INTEGER PRIMARY KEY, incarnation TEXT NOT NULL, began INTEGER NOT NULL)"
_TABLES: Final = (
    "CREATE TABLE head (name TEXT NOT NULL, floor INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE publications (number INTEGER PRIMARY KEY, publication BLOB NOT NULL)",
    "CREATE TABLE publishers (name TEXT PRIMARY KEY, sequence INTEGER NOT NULL, seen REAL NOT NULL DEFAULT 0) "
    "WITHOUT ROWID",
    _HISTORY,
)
_PUT_PUBLISHER: Final = (
    "INSERT INTO publishers VALUES (?, ?, ?) "
    "ON CONFLICT (name) DO UPDATE SET sequence = excluded.sequence, seen = excluded.seen"
)
# From each schema to the next.
_UPGRADES: Final = {
    1: (_HISTORY,),
    2: (
        "ALTER TABLE publishers ADD COLUMN seen REAL NOT NULL DEFAULT 0",
        "ALTER TABLE head ADD COLUMN floor INTEGER NOT NULL DEFAULT 0",
    ),
}


class ReplayStore:
    """The log of one head in a directory, created when missing. It may be used from any thread.

    Args:
        directory: where the file is.
        head: whose log it is.
        most: how many publications are kept, and ``most_bytes`` how many bytes of them, if that is more than one.

    What can go wrong: the file cannot be opened or written, or is none of ours (:class:`StorageError`); another head
    writes it (:class:`ConflictError`), or has written it before (:class:`SettingsError`). Of a batch that is refused
    nothing is kept.
    """

    def __init__(self, directory: Path, head: str, most: int, most_bytes: float = inf) -> None:
        self._file, self._turn = directory / FILE, Lock()
        self._most, self._most_bytes = most, most_bytes
        # Of what is kept, the oldest first.
        self._sizes: list[int] = []
        with self._explain():
            make_private(self._file)
            self._lock = take_lock(self._file.with_name(f"{FILE}.lock"), "the head's replay log")
            self._connection = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False)
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
                self._found(head)
                self._drop_old()
                # For so long the head had been running when it stored something last; time goes on from there.
                (self._age,) = self._connection.execute("SELECT coalesce(max(seen), 0.0) FROM publishers").fetchone()
                self._opened = time.monotonic()
            except BaseException:
                self.close()
                raise

    def read(self) -> KeptLog:
        """All that is kept."""
        with self._turn, self._explain():
            rows = self._connection.execute("SELECT publication FROM publications ORDER BY number")
            publications = [msgspec.json.decode(text, type=Routed) for (text,) in rows]
            publishers = self._connection.execute("SELECT name, sequence, seen FROM publishers").fetchall()
            (floor,) = self._connection.execute("SELECT floor FROM head").fetchone()
            eras = self._connection.execute("SELECT incarnation, began FROM history ORDER BY number").fetchall()
        last = publications[-1].offset if publications else 0
        sequences, seen = {name: number for name, number, _ in publishers}, {name: at for name, _, at in publishers}
        return KeptLog(publications, last, sequences, [Era(*era) for era in eras], seen, floor)

    def begin(self, incarnation: str) -> KeptLog:
        """All that is kept, with one more incarnation under which the head goes on from there."""
        kept = self.read()
        kept.begin(incarnation)
        with self._changing():
            self._connection.execute("DELETE FROM history")
            self._connection.executemany("INSERT INTO history VALUES (?, ?, ?)", _number_eras(kept.history))
        return kept

    def append(self, publications: Sequence[Routed], forgotten: Sequence[str] = (), floor: int = 0) -> None:
        """Keeps a batch: all of it, on disk, or nothing. What is too old is dropped, and before all that the publishers
        that are forgotten, whose numbers were no higher than ``floor``."""
        rows = [(each.offset, msgspec.json.encode(each)) for each in publications]
        seen = self._age + time.monotonic() - self._opened
        publishers = {each.publisher: (each.publisher, each.sequence, seen) for each in publications}
        sizes = self._sizes + [len(text) for _, text in rows]
        kept = sizes[excess(sizes, self._most, self._most_bytes) :]
        with self._changing():
            if forgotten:
                names = [(name,) for name in forgotten]
                self._connection.executemany("DELETE FROM publishers WHERE name = ?", names)
                self._connection.execute("UPDATE head SET floor = ?", (floor,))
            if rows:
                self._connection.executemany("INSERT INTO publications VALUES (?, ?)", rows)
                self._connection.executemany(_PUT_PUBLISHER, publishers.values())
                self._connection.execute("DELETE FROM publications WHERE number <= ?", (rows[-1][0] - len(kept),))
        self._sizes = kept

    def close(self) -> None:
        """Lets go of the file."""
        with self._turn:
            self._connection.close()
            os.close(self._lock)

    def _found(self, head: str) -> None:
        """Makes the tables of a new file; refuses one of another head, or of a newer version."""
        (schema,) = self._connection.execute("PRAGMA user_version").fetchone()
        if schema > _SCHEMA:
            raise StorageError(f"{self._file} has schema {schema}, which a newer version of Tocsin wrote: use that")
        if schema < _SCHEMA:
            with self._changing():
                upgrades = [statement for at in range(schema, _SCHEMA) for statement in _UPGRADES.get(at, ())]
                for statement in upgrades if schema else _TABLES:
                    self._connection.execute(statement)
                if schema == 0:
                    self._connection.execute("INSERT INTO head (name) VALUES (?)", (head,))
                self._connection.execute(f"PRAGMA user_version = {_SCHEMA}")
        (owner,) = self._connection.execute("SELECT name FROM head").fetchone()
        if owner != head:
            raise SettingsError(
                f"the replay log in {self._file.parent} is that of the head {owner}, and overlay.name = {head}: "
                f"give this head an overlay.directory of its own"
            )

    def _drop_old(self) -> None:
        """Drops what is too much by the present bounds, which may have been others before."""
        rows = self._connection.execute(
            "SELECT number, length(publication) FROM publications ORDER BY number"
        ).fetchall()
        self._sizes = [size for _, size in rows]
        if count := excess(self._sizes, self._most, self._most_bytes):
            self._connection.execute("DELETE FROM publications WHERE number < ?", (rows[count][0],))
            del self._sizes[:count]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._turn, self._explain(), transaction(self._connection):
            yield

    @contextmanager
    def _explain(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StorageError(f"{self._file}: {error}; nothing was changed; see to the disk and try again") from error
        except OSError as error:
            raise StorageError(
                f"{self._file.parent} cannot be used ({error.strerror or error}): see to the disk, or choose another "
                "with --set overlay.directory=PATH"
            ) from error
        except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
            raise StorageError(f"{self._file} cannot be used ({error}): put a backup in its place") from error


def _number_eras(history: Sequence[Era]) -> list[tuple[int, str, int]]:
    return [(number, era.incarnation, era.began) for number, era in enumerate(history)]
