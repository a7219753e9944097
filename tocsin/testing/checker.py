"""Whether programs are given what was found for them: once, and in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final

from tocsin.client.note import Note
from tocsin.client.subscription import Subscription
from tocsin.crowd.receipts import Order, Receipts

_WRONG: Final = {Order.TWICE: "came twice", Order.LATE: "came after a newer one"}


class Checker:
    """Notes what programs read, and compares it with what executions have found.

    A program that comes back after a crash may be given again what it had not acknowledged; within a run, nothing may.

    Args:
        found: gives the executions that found something for each BE subscription, as
            :meth:`Sandbox.executions_with_results` does.
    """

    def __init__(self, found: Callable[[], Mapping[int, Sequence[int]]]) -> None:
        self._found = found
        self._receipts = Receipts()
        self._read: dict[str, set[int]] = {}
        self._disorder: list[str] = []

    async def read(self, name: str, subscription: Subscription) -> AsyncIterator[Note]:
        """The notes of somebody's subscription, which are owed to them from here on."""
        self._receipts.hold(name, subscription.number, subscription.taken)
        self._read.setdefault(name, set()).add(subscription.number)
        async for note in subscription:
            order = self._receipts.add(name, note.subscription, note.execution)
            if order in _WRONG:
                self._disorder.append(f"{name}: execution {note.execution} of {note.channel} {_WRONG[order]}")
            yield note

    def wrong(self) -> list[str]:
        """What came twice or out of order, and what has not come yet; empty if everything is as it should be."""
        missed = self._receipts.compare(self._found(), self._read).missed
        return self._disorder + [
            f"{one.who}: of subscription {one.subscription}, executions {one.executions} did not come" for one in missed
        ]
