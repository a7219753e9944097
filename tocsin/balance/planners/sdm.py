"""Similarity-based dynamic migration (SDM), section 5.2 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tocsin.balance.migration import Migration
from tocsin.balance.plan import Reason


@dataclass(frozen=True)
class SDM(Migration):
    """From the most loaded broker the heaviest subscriber that fits goes to the one that shares most with it.

    Only brokers below the mean load receive; of equally similar ones the less loaded, then the lower number. If the
    most similar broker cannot take a subscriber, the next subscriber is tried, not the next broker. A step costs as
    much as the mover has subscriptions, times the brokers.
    """

    name: ClassVar[str] = "sdm"
    similar: ClassVar[bool] = True
    reason: ClassVar[Reason] = Reason.SHARING
