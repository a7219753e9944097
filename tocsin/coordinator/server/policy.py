"""The settings as the core takes them: limits, planners and the placement."""

from __future__ import annotations

from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.placement.placement import Placement
from tocsin.balance.policies import placement
from tocsin.coordinator.balancing import Planners
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.settings.coordinator import DAY, CoordinatorSettings


def limits(settings: CoordinatorSettings) -> CoordinatorLimits:
    """How long the core waits, and how fast it moves subscribers."""
    return CoordinatorLimits(
        grace=settings.grace_seconds,
        silence=settings.silence_seconds,
        returning=settings.returning_seconds,
        preparing=settings.preparing_seconds,
        arriving=settings.arriving_seconds,
        retry=settings.retry_seconds,
        presence=settings.presence_seconds,
        expiry=settings.expire_days * DAY,
        interval=settings.interval_seconds,
        in_flight=settings.moves_in_flight,
        per_second=settings.moves_per_second,
        token_life=settings.token_seconds,
        unstored=settings.max_unstored,
    )


def planners(settings: CoordinatorSettings) -> Planners:
    """What keeps the loads even; a planner that does not exist is an InvalidError."""
    return Planners.by_name(settings.migration, settings.shuffle, thresholds(settings))


def thresholds(settings: CoordinatorSettings) -> Thresholds:
    """When plans are made, and which are let through. Where the settings have 0 for "never" or "any", it is None."""
    return Thresholds(
        alpha=settings.alpha,
        beta=settings.beta,
        gamma=settings.gamma,
        theta=settings.theta,
        shuffle_gain=settings.shuffle_gain,
        max_over_mean=settings.max_over_mean or None,
        chance=settings.chance,
        target=settings.target or None,
        stale_after=settings.stale_after_seconds,
        max_stale=settings.max_stale,
        cool_down=settings.cool_down_seconds,
        settle=settings.settle_seconds,
        max_moves=settings.max_moves or None,
        min_gain=settings.min_gain,
        min_improvement=settings.min_improvement,
    )


def newcomers(settings: CoordinatorSettings) -> Placement:
    """Where newcomers go; a placement that does not exist is an InvalidError."""
    return placement(settings.placement)
