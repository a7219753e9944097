"""What a run says of itself: what was run, with which settings, on what, and which cells are done."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from tocsin import __version__
from tocsin.experiment.machine import machine
from tocsin.experiment.study import Study


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
            machine=machine(),
            command=command,
            began=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        )
