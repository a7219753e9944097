"""Which runs can be compared: all have the same reports and subscriptions, so all must deliver about as much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tocsin.experiment.series.course import Course, Key
from tocsin.experiment.testbed.rows import Summary

_LEAST: Final = 0.5


def stalled(summaries: Sequence[Summary]) -> list[Key]:
    """Runs in which subscribers were told less than half of what they were in the best: something did not keep up."""
    most = max((one.bytes for one in summaries), default=0)
    return [Key(one.placement, one.scheme, one.seed) for one in summaries if one.bytes < _LEAST * most]


def sound(courses: Mapping[Key, Course], summaries: Sequence[Summary]) -> dict[Key, Course]:
    """The runs that can be compared."""
    left_out = stalled(summaries)
    return {key: course for key, course in courses.items() if key not in left_out}
