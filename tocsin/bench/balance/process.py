"""The measuring process: kept to one core, and its peak of memory counted anew for each measurement."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_PEAK = "5"


@contextmanager
def one_core() -> Iterator[None]:
    """Keeps the process to one of the cores it may use."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def forget_peak() -> None:
    """Counts the peak from now on, where the system allows it; else it stays that of the whole process."""
    try:
        _CLEAR.write_text(_PEAK, encoding="ascii")
    except OSError:
        return


def peak_mib() -> float:
    """The most memory that the process had since the peak was forgotten."""
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return (peaks[0] if peaks else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024
