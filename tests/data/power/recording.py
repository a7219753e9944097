"""What a process and all that came of it did to the files of one directory, as the kernel saw it.

``strace`` writes down every call that changes a file or asks the disk to keep one. Calls of several threads overlap:
each counts from when it ended, but a sync covers only what had ended before it began.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CALLS: Final = (
    "open,openat,creat,close,lseek,write,pwrite64,writev,pwritev,ftruncate,truncate,rename,renameat,renameat2,unlink,"
    "unlinkat,rmdir,mkdir,mkdirat,link,linkat,fsync,fdatasync,fallocate,copy_file_range,sendfile"
)
_LINE: Final = re.compile(r"(\d+) +(\d+\.\d+) (.*)")
_RESUMED: Final = re.compile(r"<\.\.\. \w+ resumed>(.*)")
_CALL: Final = re.compile(r"(\w+)\((.*)\) += (-?\d+)(?:<(.*?)>)?.*? <(\d+\.\d+)>", re.DOTALL)
_NAMED: Final = re.compile(r'<(?P<place>[^>]*)>|"(?P<name>[^"]*)"')
_DESCRIPTOR: Final = re.compile(r"(\d+)<([^>]*)>")


@dataclass(frozen=True)
class Call:
    """A call that went well: who is about which files, what was written where, and when it began and ended."""

    name: str
    began: float
    ended: float
    paths: tuple[str, ...]
    data: bytes = b""
    offset: int = 0
    flags: str = ""


def command(output: Path) -> tuple[str, ...]:
    """Put before a command, it records what the command does; the process started is the command's."""
    quiet = ("-D", "-f", "-qq", "--seccomp-bpf", "-e", "signal=none")
    return ("strace", *quiet, "-ttt", "-T", "-y", "-xx", "-s", "100000000", "-e", f"trace={_CALLS}", "-o", str(output))


def calls(output: Path, directory: Path, ignored: Path) -> list[Call]:
    """What was done below ``directory``, except below ``ignored``, in the order in which it was complete."""
    reader = _Reader(str(directory), str(ignored))
    found = [call for began, text in _joined(output) if (call := reader.read(began, text))]
    return sorted(found, key=lambda call: call.ended)


def _joined(output: Path) -> Iterator[tuple[float, str]]:
    """Each call in one piece, with when it began."""
    waiting: dict[str, tuple[float, str]] = {}
    for line in output.read_text(encoding="ascii", errors="replace").splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        thread, at, text = match[1], float(match[2]), match[3]
        if text.endswith("<unfinished ...>"):
            waiting[thread] = (at, text.removesuffix("<unfinished ...>").rstrip())
        elif (resumed := _RESUMED.match(text)) and thread in waiting:
            began, first = waiting.pop(thread)
            yield began, first + resumed[1]
        else:
            yield at, text


class _Reader:
    """Makes calls of lines, and knows the positions of open files."""

    def __init__(self, directory: str, ignored: str) -> None:
        self._directory, self._ignored = directory, ignored
        # In a line every character of a path or of data is written as its code.
        self._sign = "".join(f"\\x{byte:02x}" for byte in directory.encode())
        self._positions: dict[tuple[str, str], int] = {}

    def read(self, began: float, text: str) -> Call | None:
        match = _CALL.match(text) if self._sign in text else None
        if match is None or int(match[3]) < 0:
            return None
        name, arguments, result = match[1], match[2], int(match[3])
        times = (began, began + float(match[5]))
        if name in {"open", "openat", "creat"}:
            return self._opened(times, arguments, str(result), _decoded(match[4] or "").decode())
        if name.endswith("at") or not arguments[0].isdigit():
            paths = tuple(_paths(arguments))
            return Call(name, *times, paths, flags=arguments) if all(map(self._inside, paths)) else None
        return self._described(name, times, arguments, result)

    def _opened(self, times: tuple[float, float], arguments: str, number: str, path: str) -> Call | None:
        if not self._inside(path) or not ("O_WRONLY" in arguments or "O_RDWR" in arguments):
            return None
        self._positions[number, path] = 0
        return Call("open", *times, (path,), flags=arguments)

    def _described(self, name: str, times: tuple[float, float], arguments: str, result: int) -> Call | None:
        number, encoded = _DESCRIPTOR.match(arguments).groups()  # type: ignore[union-attr]
        path = _decoded(encoded.removesuffix("(deleted)")).decode()
        if not self._inside(path) or encoded.endswith("(deleted)") or name == "close":
            return None
        match name:
            case "lseek":
                self._positions[number, path] = result
                return None
            case "write":
                offset = self._positions.get((number, path), 0)
                self._positions[number, path] = offset + result
                return Call("write", *times, (path,), _data(arguments)[:result], offset)
            case "pwrite64":
                return Call("write", *times, (path,), _data(arguments)[:result], int(arguments.rsplit(",", 1)[1]))
            case "ftruncate":
                return Call("truncate", *times, (path,), offset=int(arguments.rsplit(",", 1)[1]))
            case "fsync" | "fdatasync":
                return Call("sync", *times, (path,))
        raise AssertionError(f"{name} is not understood: {arguments[:200]}")

    def _inside(self, path: str) -> bool:
        below = path == self._directory or path.startswith(f"{self._directory}/")
        return below and not path.startswith(self._ignored)


def _paths(arguments: str) -> Iterator[str]:
    """The paths that a call names, each beside the directory that it may be relative to."""
    place = ""
    for found in _NAMED.finditer(arguments):
        if found["place"] is not None:
            place = _decoded(found["place"]).decode()
        else:
            yield os.path.join(place, _decoded(found["name"]).decode())


def _data(arguments: str) -> bytes:
    return _decoded(arguments[arguments.index('"') + 1 : arguments.rindex('"')])


def _decoded(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
