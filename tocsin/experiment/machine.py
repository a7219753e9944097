"""What an experiment ran on: figures of different machines are not comparable."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil

_CPUS = Path("/proc/cpuinfo")


def machine() -> str:
    """Processor, cores, memory, system and Python in one line."""
    memory = psutil.virtual_memory().total / (1 << 30)
    cores = len(os.sched_getaffinity(0))
    return (
        f"{_processor()}, {cores} core{'s' if cores > 1 else ''}, {memory:.0f} GiB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def _processor() -> str:
    try:
        lines = _CPUS.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()
