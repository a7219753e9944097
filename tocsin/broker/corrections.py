"""What the coordinator has stored otherwise than it is: said until it is stored, whoever is connected.

Nobody has asked for these, so nobody waits for them; where a subscriber was told something, that holds already.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.broker.deadlines import Deadlines
from tocsin.broker.holdings import Stay
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.outbox import CoordinatorMessages, Outbox
from tocsin.model.coordination import Keep
from tocsin.model.subscriber import Held, is_same


@dataclass(eq=False)
class Correction:
    """A subscription of a stay that was ``before`` and is ``now`` something else, or no more.

    ``numbers`` are all under which it may be stored, since corrections before this one may have been heard or not.
    """

    stay: Stay
    before: Held
    now: Held | None
    numbers: tuple[int, ...]


class Corrections:
    """By the number under which they are said.

    What can go wrong: the coordinator is away or busy (it is said again), the subscriber has moved (its new broker
    finds the same, and says so), the subscriber changes it itself meanwhile (that counts).
    """

    def __init__(self, outbox: Outbox, coordinator: CoordinatorMessages, limits: BrokerLimits) -> None:
        self._outbox, self._coordinator = outbox, coordinator
        self._corrections: dict[int, Correction] = {}
        self._stays: dict[Stay, dict[int, Correction]] = {}
        self._deadlines: Deadlines[int] = Deadlines(limits.retry_seconds)
        self._last = 0

    def replace(self, stay: Stay, before: Held, now: Held | None) -> None:
        """What is stored as ``before`` is ``now``, or no more. What was to be stored before that need not be."""
        numbers: tuple[int, ...] = (before.subscription,)
        for ref, correction in self._of(stay):
            if before.subscription in correction.numbers or _is_for(correction, before.subscription):
                numbers = tuple(dict.fromkeys((*correction.numbers, *numbers)))
                self.kept(ref)
        self._add(Correction(stay, before, now, numbers))

    def ending(self, stay: Stay, held: Held) -> bool:
        """Whether the coordinator is being told that a subscription is no more, perhaps under another number.

        Another broker that has not heard of its end may have had that stored, and then it is to go as well.
        """
        ended = [correction for _, correction in self._of(stay) if correction.now is None]
        if any(held.subscription in correction.numbers for correction in ended):
            return True
        if not any(is_same(correction.before, held) for correction in ended) or _has(stay, held):
            return False
        self.replace(stay, held, None)
        return True

    def numbers(self, stay: Stay, be: int) -> tuple[int, ...]:
        """Under which other numbers the coordinator may still have a subscription."""
        known = [number for _, each in self._of(stay) if _is_for(each, be) for number in each.numbers]
        return tuple(number for number in dict.fromkeys(known) if number != be)

    def overtaken(self, stay: Stay, be: int, was: tuple[int, ...], gone: bool) -> None:
        """The subscriber itself has made a subscription or given it up, and that is stored, under all these numbers.

        What was to be said of it before need not be any more. What was said after the subscriber gave it up must not
        bring it back.
        """
        for ref, correction in self._of(stay):
            others = tuple(number for number in correction.numbers if number not in (be, *was))
            if not others or (correction.now is None and others != correction.numbers):
                self._instead(ref, others)
            elif gone and _is_for(correction, be):
                self._instead(ref, (be, *others))

    def leave(self, stay: Stay) -> None:
        """The stay is over."""
        for ref, _ in self._of(stay):
            self.kept(ref)

    def kept(self, ref: int) -> None:
        """It is stored."""
        if correction := self._corrections.pop(ref, None):
            others = self._stays[correction.stay]
            del others[ref]
            if not others:
                del self._stays[correction.stay]
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
        # Below zero, since requests count theirs up from one.
        self._last -= 1
        self._corrections[self._last] = correction
        self._stays.setdefault(correction.stay, {})[self._last] = correction
        self._say(self._last)

    def _instead(self, ref: int, numbers: tuple[int, ...]) -> None:
        """What is stored under these numbers is no more."""
        correction = self._corrections[ref]
        self.kept(ref)
        if numbers:
            self._add(Correction(correction.stay, correction.before, None, numbers))

    def _of(self, stay: Stay) -> list[tuple[int, Correction]]:
        return list(self._stays.get(stay, {}).items())

    def _say(self, ref: int) -> None:
        each = self._corrections[ref]
        name, number, gone = each.stay.subscriber, each.stay.number, each.now is None
        self._coordinator.tell(Keep(ref, name, number, each.now or each.before, gone, True, each.numbers))


def _is_for(correction: Correction, be: int) -> bool:
    return correction.now is not None and correction.now.subscription == be


def _has(stay: Stay, held: Held) -> bool:
    """Whether the subscriber has subscribed to it again."""
    return any(is_same(subscription.held, held) for subscription in stay.subscriptions.values())
