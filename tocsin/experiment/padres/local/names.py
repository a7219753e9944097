"""What the runs of ``padres-local`` are called."""

from __future__ import annotations

from typing import Final

MAIN: Final = "as in the paper"
UNBALANCED: Final = "without balancing"
_TRIGGER: Final = "threshold "
_SAMPLES: Final = "samples "


def trigger_run(trigger: float) -> str:
    """With another local triggering threshold, of ratios and of delays."""
    return f"{_TRIGGER}{trigger:g}"


def samples_run(samples: int) -> str:
    """With another number of publications that are sampled."""
    return f"{_SAMPLES}{samples}"


def trigger_of(run: str) -> float | None:
    """The threshold that a run has in its name; of the main run, the default."""
    return 0.1 if run == MAIN else float(run.removeprefix(_TRIGGER)) if run.startswith(_TRIGGER) else None


def samples_of(run: str) -> int | None:
    """The number of samples that a run has in its name; of the main run, the default."""
    return 50 if run == MAIN else int(run.removeprefix(_SAMPLES)) if run.startswith(_SAMPLES) else None
