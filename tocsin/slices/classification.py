"""Overloaded, normal, underloaded: what a node's report says of it, with some patience at the borders."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from tocsin.slices.messages import NodeReport

_CPU_HIGH: Final = 0.8
_MEMORY_HIGH: Final = 0.9
_LAG_HIGH: Final = 5.0
_CPU_LOW: Final = 0.3
_MEMORY_LOW: Final = 0.6
_LAG_LOW: Final = 1.0
_BAND: Final = 0.85


class NodeClass(StrEnum):
    """What a node could do with less, or with more."""

    OVERLOADED = "overloaded"
    NORMAL = "normal"
    UNDERLOADED = "underloaded"


def classify(before: NodeClass, report: NodeReport) -> NodeClass:
    """The class of a node that was in another ``before``.

    Overloaded is who has more than 80 % of its processor or 90 % of its memory in use, or is 5 seconds behind what
    comes; underloaded who has less than 30 % and 60 % in use, and is not behind. A class is left only when a figure is
    beyond its border by 15 % of it, so that nobody goes to and fro.
    """
    over = _BAND if before is NodeClass.OVERLOADED else 1.0
    under = 1 / _BAND if before is NodeClass.UNDERLOADED else 1.0
    lag = seconds_behind(report)
    if report.cpu > _CPU_HIGH * over or report.memory > _MEMORY_HIGH * over or lag > _LAG_HIGH * over:
        return NodeClass.OVERLOADED
    if report.cpu < _CPU_LOW * under and report.memory < _MEMORY_LOW * under and lag < _LAG_LOW * under:
        return NodeClass.UNDERLOADED
    return NodeClass.NORMAL


def seconds_behind(report: NodeReport) -> float:
    """For how long what waits in the log has been coming, at the rate at which it comes now."""
    rate = sum(load.rate for load in report.slices)
    backlog = sum(load.backlog for load in report.slices)
    return backlog / rate if rate else 0.0
