"""A file system as a power cut leaves it: what was synced is there, of everything else any part may be.

The rules are those that one may rely on, not those of a particular file system: syncing a file keeps what was written
to it, and not its name; syncing a directory keeps the names in it. What was not synced may be lost or kept, each name
and each write by itself, a write also in part.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from random import Random

from tests.data.power.recording import Call


@dataclass(eq=False)
class File:
    """What the disk has of a file for sure, and the writes since, of which it may have some."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[float, int, bytes | None]] = field(default_factory=list)

    def sync(self, began: float) -> None:
        """Everything that was complete when the sync began is kept."""
        kept = [change for change in self.pending if change[0] <= began]
        self.pending = [change for change in self.pending if change[0] > began]
        for _, offset, data in kept:
            _write(self.durable, offset, data)

    def after_cut(self, chance: Random, kept: float) -> bytes:
        """What may be found of it."""
        content = bytearray(self.durable)
        for _, offset, data in self.pending:
            luck = chance.random()
            if luck < kept:
                _write(content, offset, data)
            elif data and luck < kept + (1 - kept) / 2:
                _write(content, offset, data[: chance.randrange(len(data) + 1)])
        return bytes(content)


@dataclass(eq=False)
class Directory:
    """The names that the disk has for sure, and the changes since; a change gives a name to something or takes it."""

    durable: dict[str, File | Directory] = field(default_factory=dict)
    now: dict[str, File | Directory] = field(default_factory=dict)
    pending: list[tuple[float, dict[str, File | Directory | None]]] = field(default_factory=list)

    def change(self, ended: float, names: dict[str, File | Directory | None]) -> None:
        """Some names become others, all of them or none."""
        self.pending.append((ended, names))
        _name(self.now, names)

    def sync(self, began: float) -> None:
        """Everything that was complete when the sync began is kept."""
        for ended, names in self.pending:
            if ended <= began:
                _name(self.durable, names)
        self.pending = [change for change in self.pending if change[0] > began]

    def after_cut(self, chance: Random, kept: float) -> dict[str, File | Directory]:
        """The names that may be found in it."""
        names = dict(self.durable)
        for _, changed in self.pending:
            if chance.random() < kept:
                _name(names, changed)
        return names


class FileSystem:
    """The directory ``root`` through a recording."""

    def __init__(self, root: Path) -> None:
        self._root = PurePosixPath(root)
        self._top = Directory()

    def apply(self, call: Call) -> None:
        """One call later."""
        path = call.paths[0]
        match call.name:
            case "open":
                self._open(call, path)
            case "write":
                self._file(path).pending.append((call.ended, call.offset, call.data))
            case "truncate":
                self._file(path).pending.append((call.ended, call.offset, None))
            case "sync":
                self._find(path).sync(call.began)
            case "mkdir" | "mkdirat":
                if path != str(self._root):
                    self._parent(path).change(call.ended, {_last(path): Directory()})
            case "unlink" | "unlinkat" | "rmdir":
                self._parent(path).change(call.ended, {_last(path): None})
            case "link" | "linkat":
                self._parent(call.paths[1]).change(call.ended, {_last(call.paths[1]): self._find(path)})
            case "rename" | "renameat" | "renameat2":
                self._rename(call.ended, path, call.paths[1])
            case _:
                raise AssertionError(f"{call.name} is not understood: {call.flags[:200]}")

    def write_after_cut(self, place: Path, chance: Random) -> None:
        """Writes what may be found after a cut at this point into ``place``."""
        _materialise(self._top, place, _Cut(chance))

    def _open(self, call: Call, path: str) -> None:
        parent, name = self._parent(path), _last(path)
        if name not in parent.now:
            assert "O_CREAT" in call.flags, call
            parent.change(call.ended, {name: File()})
        elif "O_TRUNC" in call.flags:
            self._file(path).pending.append((call.ended, 0, None))

    def _rename(self, ended: float, path: str, target: str) -> None:
        moved = self._find(path)
        source, place = self._parent(path), self._parent(target)
        if source is place:
            source.change(ended, {_last(path): None, _last(target): moved})
        else:
            place.change(ended, {_last(target): moved})
            source.change(ended, {_last(path): None})

    def _find(self, path: str) -> File | Directory:
        found: File | Directory = self._top
        for part in PurePosixPath(path).relative_to(self._root).parts:
            assert isinstance(found, Directory), path
            found = found.now[part]
        return found

    def _file(self, path: str) -> File:
        found = self._find(path)
        assert isinstance(found, File), path
        return found

    def _parent(self, path: str) -> Directory:
        found = self._find(os.path.dirname(path))
        assert isinstance(found, Directory), path
        return found


def _last(path: str) -> str:
    return os.path.basename(path)


def _name(names: dict[str, File | Directory], changed: dict[str, File | Directory | None]) -> None:
    for name, thing in changed.items():
        if thing is None:
            names.pop(name, None)
        else:
            names[name] = thing


def _write(content: bytearray, offset: int, data: bytes | None) -> None:
    """Writes at a place, or cuts or lengthens to it."""
    if data is None:
        del content[offset:]
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    if data is not None:
        content[offset : offset + len(data)] = data


class _Cut:
    """What one cut leaves; a file of two names is one file."""

    def __init__(self, chance: Random) -> None:
        self.chance, self.kept = chance, chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        self._files: dict[File, bytes] = {}

    def content(self, file: File) -> bytes:
        if file not in self._files:
            self._files[file] = file.after_cut(self.chance, self.kept)
        return self._files[file]


def _materialise(directory: Directory, place: Path, cut: _Cut) -> None:
    place.mkdir()
    for name, thing in directory.after_cut(cut.chance, cut.kept).items():
        if isinstance(thing, File):
            (place / name).write_bytes(cut.content(thing))
        else:
            _materialise(thing, place / name, cut)
