"""What the subscribers of a run did and received."""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin.client.note import Note
from tocsin.client.subscription import Subscription


@dataclass
class Ledger:
    """Counts. ``held`` are the FE subscriptions as pairs of subscriber and BE subscription."""

    held: set[tuple[str, int]] = field(default_factory=set)
    reports: int = 0
    locations: int = 0
    notes: int = 0
    bytes: int = 0
    repeated: int = 0
    moved: int = 0
    troubles: list[str] = field(default_factory=list)

    def hold(self, subscriber: str, subscription: Subscription) -> None:
        """Somebody has subscribed."""
        self.held.add((subscriber, subscription.number))

    def receive(self, note: Note, after: int) -> None:
        """A note has come, after one of the execution ``after`` of the same subscription."""
        self.notes += 1
        self.bytes += len(note.payload)
        self.repeated += note.execution <= after

    def complain(self, what: str) -> None:
        """Something went wrong."""
        self.troubles.append(what)

    @property
    def backend(self) -> int:
        """How many BE subscriptions there are."""
        return len({be for _, be in self.held})
