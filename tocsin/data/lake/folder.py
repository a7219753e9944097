"""What a table needs of the storage it is in, whatever that is: a few calls on files that are read and written whole.

A folder has files and other folders, by their names. A table has one, in a directory or in an object store, and asks
for nothing that only one of the two can do: no appending, no locking, no renaming of what is in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow as pa
from pyarrow import fs

if TYPE_CHECKING:
    from tocsin.data.fence import Fence
    from tocsin.data.lake.address import LakeAddress


DRAFT: Final = "_draft"
"""How files begin that are not in place yet; old ones were left by crashes."""


class FoundFile(NamedTuple):
    """What a folder knows of a file without reading it; ``changed_at`` in seconds since 1970.

    By ``tag`` it is told from another file of that name.
    """

    size: int
    changed_at: float
    tag: str = ""


class Folder(Protocol):
    """A part of the lake. It may be used from several threads, and pickled, for those that write in other processes.

    What can go wrong: the storage refuses or does not answer (OSError, with nothing changed unless a method says
    otherwise); a file is not there (FileNotFoundError).
    """

    @property
    def name(self) -> str:
        """The last part of its path."""

    @property
    def url(self) -> str:
        """Where it is, for people."""

    @property
    def address(self) -> LakeAddress:
        """Where it is, for other processes."""

    @property
    def delta(self) -> dict[str, Any]:
        """Where the Delta library finds it, as arguments of its tables."""

    @property
    def spark(self) -> Mapping[str, str]:
        """What Spark has to be told to read it."""

    @property
    def syncs(self) -> bool:
        """Whether what is said to be durable is."""

    @property
    def arrow(self) -> tuple[fs.FileSystem, str]:
        """Arrow's file system that has it, and its path there."""

    @property
    def fence(self) -> Fence | None:
        """By which whoever takes over keeps this process from writing; without one, it is the only one to write."""

    def below(self, name: str) -> Folder:
        """A folder in this one, whether or not there is one yet."""

    def make(self) -> None:
        """Makes it, where a folder has to be made before something is written into it."""

    def files(self) -> dict[str, FoundFile]:
        """The files in it, by name; none if it is not there."""

    def find(self, name: str) -> FoundFile | None:
        """One of them, if it is there."""

    def folders(self) -> list[str]:
        """The names of the folders in it."""

    def read(self, name: str) -> bytes:
        """The content of a file."""

    def write(self, name: str, content: bytes) -> None:
        """Puts a file in place as a whole, in the place of one of that name; durable when this returns."""

    def create(self, name: str, content: bytes) -> None:
        """As :meth:`write`, but raises FileExistsError if there is a file of that name with another content."""

    def delete(self, name: str) -> None:
        """Removes a file, if it is there."""

    def move(self, name: str, to: Folder, new_name: str) -> None:
        """Gives a file another place."""

    def link(self, name: str, new_name: str) -> None:
        """Gives a file a second name, by which it stays when the first is removed."""

    def keep(self, *names: str) -> None:
        """Returns when these files, which are written, and all names in the folder are durable."""

    def commit(self, number: int, content: bytes, files: Iterable[str] = ()) -> None:
        """Puts an entry into the log of the table in this folder, after the files that it names; durable on return.

        Raises FileExistsError, and why, if somebody else has committed since the entry before; and OutcomeUnknownError
        if it may or may not be there. After any other error it is not.
        """

    def path(self, name: str) -> str:
        """A file in it, as Spark reads it."""

    def open_output(self, name: str) -> pa.NativeFile:
        """A new file, to be written from the beginning to the end."""

    def is_there(self) -> bool:
        """Whether there is anything in it, and it is not being removed."""

    def take_away(self) -> bool:
        """Begins to remove it with all that is in it; False if it is not there. StorageError if that cannot be."""

    def put_back(self) -> None:
        """Undoes :meth:`take_away`."""

    def finish_removal(self) -> None:
        """Ends what :meth:`take_away` began, if it did not come to its end.

        Raises StorageError if something is left where this folder was.
        """

    def unfinished_removals(self) -> list[Folder]:
        """The folders in it of which a removal did not come to its end."""

    @property
    def aside(self) -> Folder:
        """Where it is while it is being removed."""

    def close(self) -> None:
        """Lets nobody wait any longer for an answer that does not come: the process is to end."""


class OutcomeUnknownError(OSError):
    """Nobody knows whether something was written: it was sent, and no answer came."""
