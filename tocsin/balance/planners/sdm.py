"""Similarity-based dynamic migration (SDM), section 5.2 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tocsin.balance.model.plan import Reason
from tocsin.balance.planners.dynamic import DynamicMigration


@dataclass(frozen=True)
class SDM(DynamicMigration):
    """From the most loaded broker the heaviest subscriber that fits goes to the one that shares most with it.

    Only brokers below the mean load receive; of equally similar ones the less loaded, then the lower number. If the
    most similar broker cannot take a subscriber, the next subscriber is tried, not the next broker. A step costs as
    much as the mover has subscriptions, times the brokers.
    """

    name: ClassVar[str] = "sdm"
    similar: ClassVar[bool] = True
    reason: ClassVar[Reason] = Reason.SHARING
