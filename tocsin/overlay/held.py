"""One subscriber of an edge: what it wants, and how far it was sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tocsin.content.filter import Filter
from tocsin.overlay.dialogue import HeadCursor
from tocsin.overlay.messages import Found


@dataclass(slots=True, eq=False)
class HeldSubscription:
    """A subscriber that is connected here.

    Args:
        client: the number of its connection.
        sent: by head, the offset up to which everything that matches was sent, or had before.
        incarnations: of the heads' logs, under which those offsets count.
        told: what of that the subscriber knows.
        live: heads whose publications are sent as they come.
        behind: heads of which a piece was sent and more is to come, with the id of the fetch of the next one; empty
            before it is asked for.
        fetch: the id of the last fetch from all heads; answers to others are not for it. Empty while it waits to be
            asked for.
        asked_again: how often each head was, since it has answered or there was a new way to heads.
    """

    subscriber: str
    filter: Filter
    client: int
    sent: dict[str, int] = field(default_factory=dict)
    incarnations: dict[str, str] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    behind: dict[str, str] = field(default_factory=dict)
    fetch: str = ""
    asked_again: dict[str, int] = field(default_factory=dict)

    def come(self, cursors: dict[str, HeadCursor]) -> None:
        """The subscriber says how far it is; nothing is sent as it comes before that has been fetched."""
        self.sent = {head: cursor.offset for head, cursor in cursors.items()}
        self.incarnations = {head: cursor.incarnation for head, cursor in cursors.items()}
        self.told = dict(self.sent)
        self.asked_again.clear()
        self.interrupt(None)

    def interrupt(self, heads: Iterable[str] | None) -> None:
        """Nothing comes from these heads, or from any."""
        for head in list(self.live | self.behind.keys()) if heads is None else heads:
            self.live.discard(head)
            self.behind.pop(head, None)

    def follows(self, head: str, incarnation: str) -> bool:
        """Whether it is sent what comes of a head's log as it is under an incarnation."""
        return head in self.live and (not incarnation or incarnation == self.incarnations[head])

    def awaits(self, found: Found) -> bool:
        """Whether an answer is for it."""
        return found.head not in self.live and self.behind.get(found.head, self.fetch) == found.id

    def unanswered_heads(self) -> set[str]:
        """The heads that it has a cursor for, and that have not answered."""
        return self.sent.keys() - self.live - self.behind.keys()

    def ask_again(self, most: int) -> bool:
        """Counts that heads are asked again which have not answered; whether there is one that was not so often yet.
        Each is counted by itself: one that does not exist uses up no patience with the others."""
        again = [head for head in self.unanswered_heads() if self.asked_again.get(head, 0) < most]
        for head in again:
            self.asked_again[head] = self.asked_again.get(head, 0) + 1
        return bool(again)

    def counts_from_cursor(self, found: Found) -> bool:
        """Whether the head that answers was told of its cursor, if it has one."""
        head = found.head
        return head not in self.sent or head in self.behind or self.incarnations[head] in found.shared
