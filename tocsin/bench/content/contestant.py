"""What takes part: a program that holds subscriptions and matches publications, in a process of its own on one core.

It is started with the two files of the :class:`~tocsin.bench.content.workload.ContentWorkload`, how many of the
subscriptions to insert, and a number of seconds after which it gives up inserting, and answers in lines of numbers:

- at first: how many it has inserted, the seconds that took, and the bytes they occupy;
- to ``match I``: the numbers of the subscriptions that publication I matches;
- to ``turn SECONDS``: how many publications it has matched, one after the other, and the seconds that took.

Seconds are of processor time, so that what else the machine does counts as little as possible.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np

from tocsin.bench.balance.process import one_core
from tocsin.bench.content.workload import ContentWorkload
from tocsin.content.table import Int64s
from tocsin.errors import UnavailableError

_END_SECONDS: Final = 20.0


class Entry(NamedTuple):
    """Who takes part, and how the program is started."""

    name: str
    command: Sequence[str]


class Inserted(NamedTuple):
    """How many subscriptions were inserted, the seconds that took, and the bytes they occupy."""

    subscriptions: int
    seconds: float
    bytes: int


class Contestant:
    """A running program.

    What can go wrong: it ends, or answers something else than numbers (:class:`UnavailableError`, with what it said).
    """

    def __init__(self, entry: Entry, workload: ContentWorkload, subscriptions: int, limit: float, log: Path) -> None:
        self.name, self._log = entry.name, log
        files = [str(workload.subscriptions), str(workload.publications)]
        with log.open("wb") as said, one_core():
            self._process = subprocess.Popen(
                [*entry.command, *files, str(subscriptions), str(limit)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(0.0 if error else _END_SECONDS)

    def close(self, seconds: float = _END_SECONDS) -> None:
        """Ends it, with force if it does not by itself."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                continue
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def await_inserted(self) -> Inserted:
        """Waits until it has inserted the subscriptions, or has given up."""
        count, seconds, occupied = self._numbers(3)
        return Inserted(int(count), seconds, int(occupied))

    def match(self, publication: int) -> Int64s:
        """The subscriptions that a publication matches, rising."""
        self._tell(f"match {publication}")
        return np.sort(np.array(self._numbers(), np.int64))

    def turn(self, seconds: float) -> float:
        """Publications per second, matched for so long."""
        self._tell(f"turn {seconds}")
        matched, took = self._numbers(2)
        return matched / took

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise UnavailableError(f"{self.name} ended: {self._last_words()}") from None

    def _numbers(self, count: int | None = None) -> list[float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise UnavailableError(f"{self.name} ended: {self._last_words()}")
        try:
            numbers = [float(word) for word in line.split()]
        except ValueError:
            raise UnavailableError(f"{self.name} answered {line[:200]!r} where numbers were expected") from None
        if count is not None and len(numbers) != count:
            raise UnavailableError(f"{self.name} answered {len(numbers)} numbers instead of {count}")
        return numbers

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"
