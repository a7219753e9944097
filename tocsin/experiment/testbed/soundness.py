"""Which runs can be compared: all have the same reports and subscriptions, so all must deliver about as much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tocsin.experiment.series.course import Course, RunKey
from tocsin.experiment.testbed.rows import RunSummary

_LEAST: Final = 0.5


def stalled_runs(summaries: Sequence[RunSummary]) -> list[RunKey]:
    """Runs in which subscribers were told less than half of what they were in the best: something did not keep up."""
    most = max((one.bytes for one in summaries), default=0)
    return [RunKey(one.placement, one.scheme, one.seed) for one in summaries if one.bytes < _LEAST * most]


def sound_runs(courses: Mapping[RunKey, Course], summaries: Sequence[RunSummary]) -> dict[RunKey, Course]:
    """The runs that can be compared."""
    left_out = stalled_runs(summaries)
    return {key: course for key, course in courses.items() if key not in left_out}
