"""Whether everybody got what was for them: what was delivered, against what the data cluster had found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tocsin.demo.telling import Figures, Received
from tocsin.errors import TocsinError

# Subscription → executions that found something for it.
Found = Mapping[int, frozenset[int]]


class WrongError(TocsinError):
    """What was delivered is not what was found."""

    code = "wrong"


@dataclass(frozen=True)
class Missed:
    """Executions that found something for somebody's subscription, and whose notifications never came."""

    who: str
    subscription: int
    executions: list[int]


@dataclass(frozen=True)
class Verdict:
    """How many notifications should have been delivered, and which of them were not."""

    expected: int
    missed: list[Missed]

    @property
    def lost(self) -> int:
        """How many were not."""
        return sum(len(each.executions) for each in self.missed)

    @property
    def delivered(self) -> int:
        """How many were."""
        return self.expected - self.lost


def verdict(received: Received, found: Found) -> Verdict:
    """``received`` has everybody's subscriptions, also those of which nothing came."""
    expected, missed = 0, []
    for who, subscriptions in received.items():
        for subscription, executions in subscriptions.items():
            due = found.get(subscription, frozenset())
            expected += len(due)
            if lacking := due.difference(executions):
                missed.append(Missed(who, subscription, sorted(lacking)))
    return Verdict(expected, missed)


def insist(verdict: Verdict, figures: Figures) -> None:
    """Raises WrongError unless everybody got everything, once and in order."""
    if verdict.lost or figures.duplicates or figures.disordered:
        raise WrongError(
            "not everybody got what was for them, once and in order: this is a fault in Tocsin; please report it "
            "with the logs"
        )
