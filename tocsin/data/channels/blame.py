"""Who is to blame when an execution fails because of its data: found by running it for fewer, and on less. Pure.

Blame is laid as narrowly as it can be. A subscription that fails is tried without any record: if it fails even then,
its parameters are to blame, and it is set aside. Otherwise the records are found with which it fails, and it alone does
without these: a subscriber cannot keep a record from others, nor a record silence a subscriber. Only if more
subscriptions fail than can be told apart are the records looked for that make them fail, and nobody gets these.

With ``k`` to blame among ``n``, about ``2 k log2(n / k)`` trials are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class UnclearError(Exception):
    """Not all can be told apart: it takes several together to fail, or nothing works, or too many fail.

    ``found`` are subscriptions that fail, though not all of them.
    """

    def __init__(self, reason: str, found: Sequence[int] = ()) -> None:
        super().__init__(reason)
        self.found = found


class Trial(Protocol):
    """Runs the execution for some; False if it fails because of its data, other failures are raised."""

    def __call__(self, subscriptions: range, records: Sequence[int]) -> bool: ...


@dataclass
class Verdict:
    """Who is to blame, as positions among the subscriptions and records that were judged.

    ``hopeless`` subscriptions fail without any record. Each of the subscriptions in ``without`` does without these
    records, and everybody without ``poison``. ``unclear`` ones fail, though it is not known with which records, and of
    ``untried`` ones it is not known whether they do: both do without this execution.
    """

    hopeless: set[int] = field(default_factory=set)
    without: dict[int, frozenset[int]] = field(default_factory=dict)
    poison: frozenset[int] = frozenset()
    unclear: set[int] = field(default_factory=set)
    untried: set[int] = field(default_factory=set)

    @property
    def set_apart(self) -> set[int]:
        """Who is not executed with all others."""
        return self.hopeless | self.without.keys() | self.unclear | self.untried


def judge(subscriptions: int, records: int, trial: Trial, most: int, known: int = 0) -> Verdict:
    """Finds out whom to set aside so that all others can be served.

    Args:
        most: trials that may be made; half of them for subscriptions, half for records.
        known: so many of the subscriptions, the first ones, have been executed before: it is the others, more likely.
    """
    everybody, everything = range(subscriptions), range(records)
    counted = _Counted(trial, most // 2)
    try:
        bad = culprits(everybody, lambda some: counted(some, everything), first=known)
    except _TooManyError as many:
        counted = _Counted(trial, most - most // 2)
        return Verdict(poison=_poison(everything, lambda some: counted(everybody, some), many.found))
    verdict = Verdict()
    counted = _Counted(trial, most - most // 2)
    for number, subscription in enumerate(bad):
        _sentence(verdict, subscription, everything, counted.share(len(bad) - number), verdict.hopeless)
    if len(bad) == subscriptions and all(len(kept) == records for kept in verdict.without.values()):
        raise UnclearError("it fails for everybody and with every record")
    return verdict


def try_out(subscriptions: int, records: int, trial: Trial, most: int) -> Verdict:
    """Finds out who of some, who are known to fail, can be executed with all others: in few trials, since all others
    wait for it.

    If they do not suffice to try all, whoever was found to fail is hopeless, for the rest waits for them to be out of
    the way.

    Args:
        most: trials that may be made; more only if they would not suffice to find one who fails.
    """
    everybody, everything = range(subscriptions), range(records)
    counted, cleared = _Counted(trial, max(most, subscriptions.bit_length() + 1)), set[int]()

    def works(some: range) -> bool:
        fine = counted(some, everything)
        cleared.update(some if fine else ())
        return fine

    try:
        bad = culprits(everybody, works)
    except _TooManyError as many:
        return Verdict(hopeless=set(many.found), untried=set(everybody) - cleared - set(many.found))
    except UnclearError:
        return Verdict(untried=set(everybody))
    verdict = Verdict()
    for number, subscription in enumerate(bad):
        _sentence(verdict, subscription, everything, counted.share(len(bad) - number), verdict.unclear)
    return verdict


def culprits(items: range, works: Callable[[range], bool], first: int = 0) -> list[int]:
    """Which of the items fail by themselves, given that all together do.

    Args:
        first: where to divide the items at first, if that is not at an end.
    """
    bad: list[int] = []

    def search(some: range, fails: bool, middle: int) -> None:
        """``fails`` if it is known that some of these do."""
        if not some or (not fails and works(some)):
            return
        if len(some) == 1:
            if fails and works(some):
                raise UnclearError("each by itself works, and all together fail")
            bad.append(some[0])
            return
        middle = middle if 0 < middle < len(some) else len(some) // 2
        before = len(bad)
        search(some[:middle], False, 0)
        search(some[middle:], len(bad) == before, 0)

    try:
        search(items, True, first)
    except _TooManyError as many:
        many.found = bad
        raise
    return bad


def _sentence(verdict: Verdict, subscription: int, everything: range, trial: Trial, unclear: set[int]) -> None:
    """Why one subscription fails, and what it has to do without; it is ``unclear`` if that takes too many trials."""
    alone = range(subscription, subscription + 1)
    try:
        suspected = frozenset().union(*verdict.without.values())
        rest = [record for record in everything if record not in suspected]
        if not trial(alone, ()):
            verdict.hopeless.add(subscription)
        elif suspected and trial(alone, rest):
            verdict.without[subscription] = suspected
        else:
            verdict.without[subscription] = frozenset(culprits(everything, lambda some: trial(alone, some)))
    except (_TooManyError, UnclearError):
        unclear.add(subscription)


def _poison(everything: range, works: Callable[[range], bool], failing: Sequence[int]) -> frozenset[int]:
    """The records that make very many fail, of which ``failing`` are some."""
    try:
        poison = culprits(everything, works)
    except (_TooManyError, UnclearError):
        raise UnclearError("very many subscriptions fail, and not because of a few records", failing) from None
    if len(poison) == len(everything):
        raise UnclearError("very many subscriptions fail, and with every record", failing)
    return frozenset(poison)


class _TooManyError(Exception):
    """More trials would be needed than may be made. ``found`` is what the trials so far did."""

    found: Sequence[int] = ()


class _Counted:
    """A trial that may be made so many times."""

    def __init__(self, trial: Trial, most: int) -> None:
        self._trial, self._left = trial, most

    def share(self, many: int) -> _Counted:
        """One for the next of so many, so that one who fails with everything does not use up what others need."""
        return _Counted(self, self._left // many)

    def __call__(self, subscriptions: range, records: Sequence[int]) -> bool:
        if not self._left:
            raise _TooManyError
        self._left -= 1
        return self._trial(subscriptions, records)
