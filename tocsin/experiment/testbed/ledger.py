"""What the subscribers of a run did and received."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin.client.note import Note
from tocsin.client.subscription import Subscription


@dataclass
class Received:
    """What came of an FE subscription: the executions after its first."""

    after: int
    executions: list[int] = field(default_factory=list)

    def add(self, execution: int) -> bool:
        """Enters what has come; whether it came twice or out of order."""
        repeated = bool(self.executions) and execution <= self.executions[-1]
        self.executions.append(execution)
        return repeated

    def lacks(self, found: frozenset[int]) -> int:
        """How many of the executions that found something for it have not come."""
        return sum(1 for execution in found.difference(self.executions) if execution > self.after)


@dataclass
class Ledger:
    """Counts. ``held`` are the FE subscriptions, by subscriber and BE subscription."""

    held: dict[tuple[str, int], Received] = field(default_factory=dict)
    reports: int = 0
    locations: int = 0
    notes: int = 0
    bytes: int = 0
    repeated: int = 0
    moved: int = 0
    troubles: list[str] = field(default_factory=list)

    def hold(self, subscriber: str, subscription: Subscription) -> None:
        """Somebody has subscribed, and has read nothing of it yet."""
        self.held.setdefault((subscriber, subscription.number), Received(subscription.taken))

    def receive(self, subscriber: str, note: Note) -> None:
        """Somebody has a note."""
        self.notes += 1
        self.bytes += len(note.payload)
        self.repeated += self.held[subscriber, note.subscription].add(note.execution)

    def lost(self, found: Mapping[int, frozenset[int]]) -> int:
        """How much has not come of what executions found, per BE subscription, for those who had subscribed by then."""
        return sum(received.lacks(found.get(be, frozenset())) for (_, be), received in self.held.items())

    def complain(self, what: str) -> None:
        """Something went wrong."""
        self.troubles.append(what)

    @property
    def backend(self) -> int:
        """How many BE subscriptions there are."""
        return len({be for _, be in self.held})
