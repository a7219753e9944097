"""What people received of their subscriptions, against what the data cluster has found for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from tocsin.crowd.messages import Compared, MissedNotes

_MOST_NAMED: Final = 5


class Order(Enum):
    """How a note came."""

    NEW = auto()
    AGAIN = auto()  # after a logout, whose acknowledgement had not arrived
    TWICE = auto()
    LATE = auto()  # after a newer one


@dataclass
class Receipt:
    """What came of one person's subscription: executions after ``after``, up to ``until`` if it was given up.

    A program that comes back starts from what was acknowledged, so that notes of the visit before may come again, in
    their order; within a visit none may.
    """

    after: int
    until: int | None = None
    executions: set[int] = field(default_factory=set)
    _last: int = 0

    def __post_init__(self) -> None:
        self.come_back()

    def come_back(self) -> None:
        """A new visit begins."""
        self._last = self.after

    def add(self, execution: int) -> Order:
        """Enters a note, and says how it came."""
        known, late = execution in self.executions, execution <= self._last
        self.executions.add(execution)
        self._last = max(self._last, execution)
        if late:
            return Order.TWICE if known else Order.LATE
        return Order.AGAIN if known else Order.NEW

    def give_up(self) -> None:
        """Nothing is owed of it from here on: what was on its way is dropped, as it should be."""
        self.until = max(self.executions, default=self.after)

    def select_owed(self, found: Sequence[int]) -> set[int]:
        """Of the executions that found something for it, those that had to come."""
        return {one for one in found if one > self.after and (self.until is None or one <= self.until)}


class Receipts:
    """Everybody's, by person and the number of the BE subscription."""

    def __init__(self) -> None:
        self._receipts: dict[tuple[str, int], Receipt] = {}

    def hold(self, who: str, subscription: int, after: int) -> bool:
        """Somebody has a subscription, from this execution on; whether it is new."""
        receipt = self._receipts.get((who, subscription))
        if receipt is None or receipt.until is not None:
            self._receipts[who, subscription] = Receipt(after)
            return True
        receipt.come_back()
        return False

    def give_up(self, who: str, subscription: int) -> None:
        """Somebody has unsubscribed."""
        self._receipts[who, subscription].give_up()

    def add(self, who: str, subscription: int, execution: int) -> Order:
        """Somebody has a note. A subscription may have got another number."""
        if (who, subscription) not in self._receipts:
            self._receipts[who, subscription] = Receipt(execution - 1)
        return self._receipts[who, subscription].add(execution)

    def compare(self, found: Mapping[int, Sequence[int]], there: Mapping[str, Collection[int]]) -> Compared:
        """What is missing of what was found, per BE subscription, to those who are ``there`` and read these of theirs.

        Whoever is away, or on the way back, gets the rest when they come.
        """
        expected, missed = 0, []
        for (who, subscription), receipt in self._receipts.items():
            if receipt.until is None and subscription not in there.get(who, ()):
                continue
            owed = receipt.select_owed(found.get(subscription, ()))
            expected += len(owed)
            if lacking := owed - receipt.executions:
                missed.append(MissedNotes(who, subscription, sorted(lacking)))
        lost = sum(len(one.executions) for one in missed)
        numbers, absent = (
            {number for _, number in self._receipts},
            {who for who, _ in self._receipts if who not in there},
        )
        return Compared(expected, lost, missed[:_MOST_NAMED], sorted(numbers), len(absent))
