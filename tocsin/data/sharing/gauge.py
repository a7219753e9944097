"""How busy a process is, with all that it has started, such as Spark's: from ``/proc``, in parts of what it may have.

In a container that is less than the machine has, and what it may have is told by its control group (version 2). Limits
count, requests do not: a container without a limit may have the whole machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")
_GROUPS: Final = Path("/sys/fs/cgroup")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
# The system counts in hundredths of a second: over less than this, chance would be measured.
_SOON_SECONDS: Final = 0.5
# Where the fields of /proc/PID/stat are that follow the name: times of the process and of children that have ended.
_TIMES: Final = slice(11, 15)
_RESIDENT: Final = 21


class Usage(NamedTuple):
    """The parts of the processors and the memory it may have that are in use, from 0 to 1."""

    cpu: float
    memory: float


class ProcessShare(NamedTuple):
    """What of the machine a process and its descendants may have: so many processors, and bytes of memory."""

    processors: float
    memory: float


def find_share(groups: Path = _GROUPS, proc: Path = _PROC) -> ProcessShare:
    """The machine's processors and memory, or what a limit of a control group leaves of them."""
    processors, memory = float(len(os.sched_getaffinity(0))), float(os.sysconf("SC_PHYS_PAGES") * _PAGE)
    for group in _own_groups(groups, proc):
        quota, period = _numbers(group / "cpu.max", 2)
        if 0 < quota < inf and 0 < period < inf:
            processors = min(processors, quota / period)
        (limit,) = _numbers(group / "memory.max", 1)
        memory = min(memory, limit) if limit > 0 else memory
    return ProcessShare(processors, memory)


def _own_groups(groups: Path, proc: Path) -> Iterator[Path]:
    """The group that this process is in, and all that this one is part of."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    # A container sees its own group as the root, whatever it is called outside.
    yield groups
    for depth in range(1, len(Path(own).parts) + 1):
        yield groups.joinpath(*Path(own).parts[:depth])


def _numbers(file: Path, count: int) -> list[float]:
    """What a group is limited to; without a limit, or where none can be read, ∞."""
    try:
        found = [inf if word == "max" else float(word) for word in file.read_text().split()]
    except (OSError, ValueError):
        found = []
    return found if len(found) == count else [inf] * count


class ProcessGauge:
    """Measures a process and its descendants, from one look to the next; who looks sooner is told the same again."""

    def __init__(self, pid: int | None = None) -> None:
        self._pid = pid or os.getpid()
        self._processors, self._memory = find_share()
        self._looked, (self._used, _) = time.monotonic(), self._sums()
        self._usage = Usage(0.0, 0.0)

    @property
    def processors(self) -> float:
        """How many it may use; a container may be limited to a part of one."""
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
