"""Which stage the brokers' loads call for: lines 2 and 5 of Algorithm 1, and what operators need besides."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tocsin.balance.control.observation import Standing
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.model.plan import LoadFigures
from tocsin.balance.model.units import rate


class Stage(StrEnum):
    """What the controller does in a round."""

    IDLE = "idle"
    DRAIN = "drain"  # brokers are emptied; nobody else moves
    JOIN = "join"  # new brokers get their share; nobody moves between old ones
    MIGRATE = "migrate"  # some leave the brokers that are above the others
    SHUFFLE = "shuffle"  # everybody is placed anew


class Due(NamedTuple):
    """The stages to be tried in a round, in this order, each with the reason for it; ``reason`` is for there being
    none."""

    stages: list[tuple[Stage, str]]
    reason: str = ""


def due(thresholds: Thresholds, standing: Standing, since_planned: float) -> Due:
    """What is to be tried, ``since_planned`` seconds after the last plan."""
    if standing.stale_part > thresholds.max_stale:
        return Due(
            [], f"no recent report from {standing.in_words(standing.stale)}; loads that nobody knows are not balanced"
        )
    urgent = draining(standing)
    if since_planned < thresholds.cool_down:
        return Due(urgent, f"the last plan was {since_planned:.0f} s ago, and has {thresholds.cool_down:g} s to settle")
    return Due([*urgent, *balancing(thresholds, standing)], calm(thresholds, standing))


def draining(standing: Standing) -> list[tuple[Stage, str]]:
    """The stage for brokers that are to be emptied, if there are any."""
    if not standing.draining:
        return []
    return [(Stage.DRAIN, f"to be emptied: {standing.in_words(standing.draining)}")]


def balancing(thresholds: Thresholds, standing: Standing) -> list[tuple[Stage, str]]:
    """The stages that the loads call for."""
    if len(standing.open) < 2:
        return []
    figures = standing.figures
    stages = (
        (Stage.JOIN, f"to get their share: {standing.in_words(standing.joining)}" if standing.joining else ""),
        (Stage.SHUFFLE, shuffle(thresholds, figures)),
        (Stage.MIGRATE, migrate(thresholds, figures, standing.each)),
    )
    return [(stage, why) for stage, why in stages if why]


def shuffle(thresholds: Thresholds, figures: LoadFigures) -> str:
    """Why to shuffle, or nothing."""
    if figures.cov > thresholds.gamma and average(figures) > thresholds.theta:
        return f"cov is {figures.cov:.3f}, above γ = {thresholds.gamma:g}"
    return ""


def migrate(thresholds: Thresholds, figures: LoadFigures, each: float) -> str:
    """Why to migrate, or nothing, with so many subscribers on each broker."""
    if average(figures) <= thresholds.beta:
        return ""
    if figures.cov > thresholds.alpha:
        return f"cov is {figures.cov:.3f}, above α = {thresholds.alpha:g}"
    limit = thresholds.limit(each)
    if limit is not None and figures.max > limit * figures.mean:
        return f"the highest load is {figures.max / figures.mean:.2f} times the mean, above {limit:.2f}"
    return ""


def calm(thresholds: Thresholds, standing: Standing) -> str:
    """Why the loads call for nothing."""
    figures = standing.figures
    if len(standing.open) < 2:
        return "fewer than two brokers can be balanced: they report, and are neither pinned nor draining"
    if figures.cov > thresholds.alpha:
        return f"cov is {figures.cov:.3f}, but the mean load of {rate(average(figures))} is not above β"
    return f"balanced: cov is {figures.cov:.3f}, not above α = {thresholds.alpha:g}"


def average(figures: LoadFigures) -> float:
    """μ in bytes per second, also where loads are utilisations: β and θ say how much load is worth the trouble."""
    return figures.total / len(figures.loads) if len(figures.loads) else 0.0
