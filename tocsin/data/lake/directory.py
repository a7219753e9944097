"""A folder of the lake as a directory, on a disk of this machine or shared by several.

A process may die at any moment; what is written counts once the disk has been asked to keep it, first the content of a
file and then its name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from tocsin.data import removal
from tocsin.data.disk import Disk, make_directory
from tocsin.data.lake.address import LakeAddress
from tocsin.data.lake.entries import LOG, entry_name, is_kept
from tocsin.data.lake.folder import DRAFT, Folder, FoundFile

if TYPE_CHECKING:
    from tocsin.data.fence import Fence


class DirectoryFolder:
    """A directory.

    Args:
        disk: what keeps it.
    """

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self.directory = path
        self._disk = disk or Disk()

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def url(self) -> str:
        return str(self.directory)

    @property
    def address(self) -> LakeAddress:
        return LakeAddress(str(self.directory))

    @property
    def delta(self) -> dict[str, Any]:
        return {"table_uri": str(self.directory)}

    @property
    def spark(self) -> Mapping[str, str]:
        return {}

    @property
    def syncs(self) -> bool:
        return self._disk.syncs

    @property
    def arrow(self) -> tuple[fs.FileSystem, str]:
        return fs.LocalFileSystem(), str(self.directory)

    @property
    def fence(self) -> Fence | None:
        return self._disk.fence

    @property
    def aside(self) -> Folder:
        return self._at(removal.aside(self.directory))

    def below(self, name: str) -> Folder:
        return self._at(self.directory / name)

    def make(self) -> None:
        make_directory(self.directory)

    def files(self) -> dict[str, FoundFile]:
        if not self.directory.is_dir():
            return {}
        with os.scandir(self.directory) as found:
            stats = {entry.name: entry.stat() for entry in found if entry.is_file()}
        return {name: _found_file(status) for name, status in stats.items()}

    def find(self, name: str) -> FoundFile | None:
        try:
            # A link is none of ours: what it leads to may be anybody's.
            status = (self.directory / name).lstat()
        except FileNotFoundError:
            return None
        return _found_file(status) if stat.S_ISREG(status.st_mode) else None

    def folders(self) -> list[str]:
        found = self.directory.glob("[!.]*") if self.directory.is_dir() else ()
        return [path.name for path in found if path.is_dir()]

    def read(self, name: str) -> bytes:
        return (self.directory / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        draft = self._draft(self.directory)
        try:
            draft.write_bytes(content)
            self._disk.keep(draft)
            draft.replace(self.directory / name)
        except OSError:
            # On a full disk it would be in the way of what others want to write.
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        self._disk.keep(self.directory)

    def create(self, name: str, content: bytes) -> None:
        with (self.directory / name).open("xb") as file:
            file.write(content)
        self.keep(name)

    def delete(self, name: str) -> None:
        (self.directory / name).unlink(missing_ok=True)

    def move(self, name: str, to: Folder, new_name: str) -> None:
        (self.directory / name).replace(to.path(new_name))

    def link(self, name: str, new_name: str) -> None:
        (self.directory / new_name).hardlink_to(self.directory / name)

    def keep(self, *names: str) -> None:
        self._disk.keep(*(self.directory / name for name in names), self.directory)

    def commit(self, number: int, content: bytes, files: Iterable[str] = ()) -> None:
        log = self.directory / LOG
        draft, entry = self._draft(log), log / entry_name(number)
        named = [self.directory / name for name in files]
        try:
            draft.write_bytes(content)
            self._disk.keep(*named, draft, *([self.directory] if named else []))
            self._name(draft, entry, number)
        finally:
            draft.unlink(missing_ok=True)
        try:
            self._disk.keep(log)
        except OSError:
            # It does not count, so it must not be found later either; unless another writer has gone on from it.
            if not (log / entry_name(number + 1)).exists():
                with suppress(OSError):
                    entry.unlink()
            raise

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def open_output(self, name: str) -> pa.NativeFile:
        return fs.LocalFileSystem().open_output_stream(self.path(name))

    def is_there(self) -> bool:
        return self.directory.exists()

    def take_away(self) -> bool:
        return removal.take_away(self.directory)

    def put_back(self) -> None:
        removal.put_back(self.directory)

    def finish_removal(self) -> None:
        removal.finish(self.directory)

    def unfinished_removals(self) -> list[Folder]:
        return [self._at(path) for path in removal.find_unfinished(self.directory)]

    def close(self) -> None:
        pass

    def _name(self, draft: Path, entry: Path, number: int) -> None:
        """Gives a draft of an entry its number, unless that is taken or was taken once."""
        try:
            entry.hardlink_to(draft)
        except FileExistsError:
            # A server of files may have done what it was asked, and the answer was lost.
            if not draft.samefile(entry):
                raise FileExistsError(f"commit {number} is another's") from None
        if number and not is_kept(self.below(LOG), number - 1):
            # Long superseded: later commits have come, were put into a checkpoint, and the number was free again.
            entry.unlink(missing_ok=True)
            raise FileExistsError(f"commit {number - 1} is no longer the last")

    def _draft(self, directory: Path) -> Path:
        """A name of its own, as another writer may be at work on a draft."""
        return directory / f"{DRAFT}-{token_hex(4)}"

    def _at(self, path: Path) -> Folder:
        return DirectoryFolder(path, self._disk)


def _found_file(status: os.stat_result) -> FoundFile:
    return FoundFile(status.st_size, status.st_mtime, f"{status.st_ino}-{status.st_mtime_ns}")


def as_folder(place: Folder | Path, disk: Disk | None = None) -> Folder:
    """A folder, or the one that a directory is."""
    return DirectoryFolder(place, disk) if isinstance(place, Path) else place
