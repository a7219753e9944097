"""A part of the network: one process, before it runs; and in which order parts are started."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

# A machine may be busy with all the others that start: reaching this means that something is wrong, not slow.
READY_SECONDS: Final = 120.0
STOP_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Part:
    """What runs, where it answers, and where it writes.

    Args:
        name: what it is called on the screen, and its log file.
        command: the command of ``tocsin`` with its options.
        url: where it answers ``GET /health``; or, as ``tcp://host:port``, where it takes connections when it is ready.
        options: options of ``tocsin`` itself, before the command.
        settings: by dotted name; they win over those in ``options``.
        program: what runs; ``tocsin`` of this installation unless given.
        environment: variables, besides those of this process.
        needs_spark: it is ready only when Spark is.
        stands_by: it is ready, too, when it says that it stands by.
    """

    name: str
    command: tuple[str, ...]
    url: str
    log: Path
    options: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    program: tuple[str, ...] = (sys.executable, "-m", "tocsin")
    environment: Mapping[str, str] = field(default_factory=dict)
    needs_spark: bool = False
    stands_by: bool = False
    ready_seconds: float = READY_SECONDS
    stop_seconds: float = STOP_SECONDS

    @property
    def arguments(self) -> list[str]:
        """The program and its arguments."""
        flags = (f"--set={key}={value}" for key, value in self.settings.items())
        return [*self.program, *self.options, *flags, *self.command]


class StartStep(NamedTuple):
    """What is started next and what must be ready before the step after it, with a sentence for who waits."""

    sentence: str
    start: Sequence[str]
    ready: Sequence[str]
