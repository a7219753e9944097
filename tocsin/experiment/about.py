"""What a run says of itself: what was run, with which settings, on what, and which cells are done."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil

from tocsin import __version__
from tocsin.experiment.study import Study

_CPUS: Final = Path("/proc/cpuinfo")


class About(msgspec.Struct, kw_only=True):
    """What was run. ``seconds`` is how long the cells that are done took."""

    experiment: str
    version: str
    settings: dict[str, Any]
    machine: str
    command: str
    began: str
    done: list[str] = []
    seconds: float = 0.0

    @classmethod
    def of(cls, study: Study, command: str) -> About:
        """A run that begins now."""
        return cls(
            experiment=study.name,
            version=__version__,
            settings=msgspec.json.decode(msgspec.json.encode(dict(study.settings))),
            machine=describe_machine(),
            command=command,
            began=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        )


def describe_machine() -> str:
    """Processor, cores, memory, system and Python in one line: figures of different machines are not comparable."""
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
