"""Load-based dynamic migration (LDM), section 5.2 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tocsin.balance.model.plan import Reason
from tocsin.balance.planners.dynamic import DynamicMigration


@dataclass(frozen=True)
class LDM(DynamicMigration):
    """From the most loaded broker the heaviest subscriber that fits goes to the least loaded one.

    A step costs as much as the mover has subscriptions, and a look at every broker. It knows nothing of what
    subscribers share, so that the total load grows while the highest falls.
    """

    name: ClassVar[str] = "ldm"
    similar: ClassVar[bool] = False
    reason: ClassVar[Reason] = Reason.OVERLOAD
