"""The verdict on a run: what applications saw, held against what the data cluster produced.

Everything here is a pure function of records, so that the checker itself is tested without any process.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

# Subscription → execution → digest of what it found.
Produced = Mapping[int, Mapping[int, str]]
_EXAMPLES: Final = 10


class Kind(StrEnum):
    """What can be wrong with a note."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    DISORDERED = "out of order"
    ALTERED = "wrong payload"
    INVENTED = "never produced"
    UNHELD = "for a subscription that was not held"


@dataclass(frozen=True)
class Holding:
    """A subscription from ``since`` on, without that execution, up to ``until``, with that one, if it was given up.

    One that is live is held anew each time its subscriber comes back, since what was found meanwhile is not for it.
    """

    subscriber: str
    subscription: int
    since: int
    until: int | None = None

    def covers(self, execution: int) -> bool:
        """Whether what this execution found belongs to it."""
        return self.since < execution and (self.until is None or execution <= self.until)


@dataclass(frozen=True)
class Run:
    """One run of a subscriber's program. What it says it had before, by ``cursors``, must not come to it again."""

    subscriber: str
    number: int = 0
    cursors: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """A note as the application saw it, in the run of its program with this number."""

    subscriber: str
    subscription: int
    execution: int
    digest: str
    run: int = 0
    recovered: bool = False
    at: float = 0.0


@dataclass(frozen=True, order=True)
class Fault:
    """Something that must not be."""

    kind: Kind
    subscriber: str
    subscription: int
    execution: int

    def __str__(self) -> str:
        return f"{self.kind}: {self.subscriber}, subscription {self.subscription}, execution {self.execution}"


@dataclass(frozen=True)
class Verdict:
    """All faults there are, and how many notes were judged."""

    faults: Sequence[Fault]
    seen: int

    def count(self, kind: Kind) -> int:
        """How many faults of this kind there are."""
        return sum(fault.kind is kind for fault in self.faults)

    def __str__(self) -> str:
        counts = Counter(fault.kind for fault in self.faults)
        head = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items())) or "no fault"
        lines = [f"{self.seen} notes: {head}", *map(str, self.faults[:_EXAMPLES])]
        return "\n  ".join(lines)


def digest(payload: Any) -> str:
    """What identifies a payload, however its JSON was written."""
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()[:16]


def check(produced: Produced, holdings: Iterable[Holding], runs: Iterable[Run], seen: Sequence[Seen]) -> Verdict:
    """Judges every note seen, in the order they were seen, and every one that should have been."""
    held: dict[tuple[str, int], list[Holding]] = defaultdict(list)
    for holding in holdings:
        held[holding.subscriber, holding.subscription].append(holding)
    started = {(run.subscriber, run.number): run for run in runs}
    notes: dict[tuple[str, int], list[Seen]] = defaultdict(list)
    for note in seen:
        notes[note.subscriber, note.subscription].append(note)
    faults: list[Fault] = []
    for subscriber, subscription in sorted(held.keys() | notes.keys()):
        theirs, had = held[subscriber, subscription], notes[subscriber, subscription]
        found = produced.get(subscription, {})
        faults += _misplaced(found, theirs, had)
        faults += _repeated(started, had)
        faults += _lost(subscriber, subscription, found, theirs, {note.execution for note in had})
    return Verdict(sorted(faults), len(seen))


def _misplaced(found: Mapping[int, str], holdings: Sequence[Holding], had: Sequence[Seen]) -> Iterator[Fault]:
    """Each note by itself."""
    for note in had:
        if note.execution not in found:
            yield _fault(Kind.INVENTED, note)
        elif found[note.execution] != note.digest:
            yield _fault(Kind.ALTERED, note)
        if not any(holding.covers(note.execution) for holding in holdings):
            yield _fault(Kind.UNHELD, note)


def _repeated(runs: Mapping[tuple[str, int], Run], had: Sequence[Seen]) -> Iterator[Fault]:
    """What came before in the same run, or is behind where the run said it was."""
    before: dict[int, set[int]] = defaultdict(set)
    for note in had:
        earlier = before[note.run]
        start = runs[note.subscriber, note.run].cursors.get(note.subscription, 0)
        if note.execution in earlier or note.execution <= start:
            yield _fault(Kind.DUPLICATED, note)
        elif earlier and note.execution < max(earlier):
            yield _fault(Kind.DISORDERED, note)
        earlier.add(note.execution)


def _lost(
    subscriber: str, subscription: int, found: Mapping[int, str], holdings: Sequence[Holding], had: set[int]
) -> Iterator[Fault]:
    for execution in sorted(found.keys() - had):
        if any(holding.covers(execution) for holding in holdings):
            yield Fault(Kind.LOST, subscriber, subscription, execution)


def _fault(kind: Kind, note: Seen) -> Fault:
    return Fault(kind, note.subscriber, note.subscription, note.execution)
