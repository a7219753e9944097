"""How busy a process is, with all that it has started, such as Spark's: from ``/proc``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
# The system counts in hundredths of a second: over less than this, chance would be measured.
_SOON_SECONDS: Final = 0.5
# Where the fields of /proc/PID/stat are that follow the name: times of the process and of children that have ended.
_TIMES: Final = slice(11, 15)
_RESIDENT: Final = 21


class Usage(NamedTuple):
    """The parts of this machine's processors and memory that are in use, from 0 to 1."""

    cpu: float
    memory: float


class ProcessGauge:
    """Measures a process and its descendants, from one look to the next; who looks sooner is told the same again."""

    def __init__(self, pid: int | None = None) -> None:
        self._pid = pid or os.getpid()
        self._processors = len(os.sched_getaffinity(0))
        self._memory = os.sysconf("SC_PHYS_PAGES") * _PAGE
        self._looked, (self._used, _) = time.monotonic(), self._sums()
        self._usage = Usage(0.0, 0.0)

    @property
    def processors(self) -> int:
        """How many it may use."""
        return self._processors

    def look(self) -> Usage:
        """How busy it was since the last look, and how much memory it has."""
        now = time.monotonic()
        seconds = now - self._looked
        if seconds < _SOON_SECONDS:
            return self._usage
        used, resident = self._sums()
        # Who has ended without being waited for takes its time along.
        cpu = max(used - self._used, 0.0) / (seconds * self._processors)
        self._looked, self._used = now, used
        self._usage = Usage(min(cpu, 1.0), min(resident / self._memory, 1.0))
        return self._usage

    def _sums(self) -> tuple[float, int]:
        found = [_stat(pid) for pid in _family(self._pid)]
        return sum(seconds for seconds, _ in found), sum(resident for _, resident in found)


def _family(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    with suppress(OSError):
        for children in (_PROC / str(pid) / "task").glob("*/children"):
            with suppress(OSError):
                for child in children.read_text().split():
                    yield from _family(int(child))


def _stat(pid: int) -> tuple[float, int]:
    """Seconds of processor time, and bytes in memory; of one that is gone, nothing."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return 0.0, 0
    fields = text.rpartition(")")[2].split()
    return sum(map(int, fields[_TIMES])) / _TICKS, int(fields[_RESIDENT]) * _PAGE
