"""The log of a process: it writes to the file itself, and whoever watches reads along."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from tocsin.errors import StorageError

# As tocsin.log writes lines for people. Calls that were refused are known to those who made them.
_LINE: Final = re.compile(r"\S+Z (?P<level>warning|error|critical) +\S+: (?!call answered)(?P<text>.*)")


@dataclass(frozen=True)
class Complaint:
    """A line of a log that someone should see."""

    level: str
    text: str


class Journal:
    """A log file, to which every start of the process appends.

    Reading along never fails: a file that is gone, or bytes that are no text, show as nothing or as replacements.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._began = self._read = _size(path)
        self._rest = b""

    def open(self) -> BinaryIO:
        """The file, to be given to a process that starts now; raises StorageError. It is for nobody else to read."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.parent.chmod(0o700)
            self.path.touch(mode=0o600)
            self.path.chmod(0o600)
            file = self.path.open("ab")
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error.strerror}; choose another directory") from None
        self._began = _size(self.path)
        return file

    def complaints(self) -> list[Complaint]:
        """The warnings and errors that were logged since this was last asked."""
        text = self._rest + self._from(self._read)
        self._read += len(text) - len(self._rest)
        whole, newline, rest = text.rpartition(b"\n")
        self._rest = rest if newline else text
        found = (_LINE.fullmatch(line) for line in whole.decode(errors="replace").splitlines())
        return [Complaint(match["level"], match["text"]) for match in found if match]

    def last(self, lines: int = 10) -> list[str]:
        """The end of what the process wrote since it was last started."""
        return self._from(self._began).decode(errors="replace").splitlines()[-lines:]

    def _from(self, position: int) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(position)
                return file.read()
        except OSError:
            return b""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
