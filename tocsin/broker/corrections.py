"""What the coordinator has stored otherwise than it is: said until it is stored, whoever is connected.

Nobody has asked for these, so nobody waits for them; where a subscriber was told something, that holds already.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.broker.deadlines import Deadlines
from tocsin.broker.holdings import Stay
from tocsin.broker.limits import Limits
from tocsin.broker.outbox import CoordinatorLink, Outbox
from tocsin.model.coordination import Keep
from tocsin.model.subscriber import Held

Key = tuple[str, int]


@dataclass(eq=False)
class Correction:
    """How a subscription of a stay is to be stored; the last word on it counts."""

    stay: Stay
    held: Held
    gone: bool


class Corrections:
    """By subscriber and number.

    What can go wrong: the coordinator is away or busy (it is said again), the subscriber has moved (its new broker
    finds the same, and says so), the subscriber changes it itself meanwhile (that counts).
    """

    def __init__(self, outbox: Outbox, coordinator: CoordinatorLink, limits: Limits) -> None:
        self._outbox, self._coordinator = outbox, coordinator
        self._refs: dict[Key, int] = {}
        self._corrections: dict[int, Correction] = {}
        self._deadlines: Deadlines[int] = Deadlines(limits.retry_seconds)
        self._last = 0

    def replace(self, stay: Stay, before: Held, now: Held | None) -> None:
        """What is stored as ``before`` is ``now``, or no more."""
        if now is not None:
            self._add(Correction(stay, now, False))
        if now is None or now.subscription != before.subscription:
            self._add(Correction(stay, before, True))

    def forget(self, stay: Stay, be: int) -> None:
        """The subscriber itself makes or gives up a subscription."""
        self._corrections.pop(self._refs.pop((stay.subscriber, be), 0), None)

    def leave(self, stay: Stay) -> None:
        """The stay is over."""
        for ref in [ref for ref, correction in self._corrections.items() if correction.stay is stay]:
            self.kept(ref)

    def kept(self, ref: int) -> None:
        """It is stored."""
        if correction := self._corrections.pop(ref, None):
            self._refs.pop((correction.stay.subscriber, correction.held.subscription), None)
            self._deadlines.drop(ref)

    def refused(self, ref: int, code: str) -> None:
        """It is not stored: said again if that may pass."""
        if code == "busy" and ref in self._corrections:
            self._deadlines.set(self._outbox.now, ref)
        else:
            self.kept(ref)

    def connected(self) -> None:
        """Says everything again."""
        for ref in self._corrections:
            self._say(ref)

    def due(self, now: float) -> None:
        """Says again what was refused."""
        for ref in self._deadlines.due(now):
            if ref in self._corrections:
                self._say(ref)

    def wake(self) -> float:
        """When something is due."""
        return self._deadlines.soonest

    def _add(self, correction: Correction) -> None:
        key = (correction.stay.subscriber, correction.held.subscription)
        self._corrections.pop(self._refs.get(key, 0), None)
        # Below zero, since requests count theirs up from one.
        self._last -= 1
        self._refs[key] = self._last
        self._corrections[self._last] = correction
        self._say(self._last)

    def _say(self, ref: int) -> None:
        each = self._corrections[ref]
        self._coordinator.tell(Keep(ref, each.stay.subscriber, each.stay.number, each.held, each.gone, unasked=True))
