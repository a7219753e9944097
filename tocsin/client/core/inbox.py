"""What has come for the application: each note once and in order, acknowledged when it is taken.

Every connection brings, of each subscription, all notes after the cursor it was logged in with, in order. So a note is
new exactly when its execution is later than the last one delivered, whichever connection brings it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from tocsin.client.core.actions import Deliver, Missed
from tocsin.client.rules import Rules
from tocsin.model.histories import Cursor, Era, common_execution, incarnation, knows, since, to_wire
from tocsin.model.subscriber import Acknowledge, Cursors, Gap, Held, Note

_CONNECTIONS: Final = 4
_BRANCHES: Final = 8


class Branch(NamedTuple):
    """What had been delivered and taken, as counted in a history that was taken back: it may be restored."""

    history: tuple[Era, ...]
    last: int
    taken: int


@dataclass(slots=True)
class NoteStream:
    """One subscription's notes: up to ``last`` delivered, up to ``taken`` had by the application, between them
    ``backlog``. What was found up to ``missed`` was found before the subscriber last came back. What connections up to
    number ``deaf`` bring is not taken in: they have brought too much.

    All that is counted under the last incarnation of ``history``, those in ``left`` were before it, and ``heard`` is
    the one that each connection last named. ``cuts`` are the executions after which what had been delivered turned out
    to count no more; an epoch is how many there were. ``branches`` are the newest of what they were taken from. Most
    streams never have any of these, and a program may have a hundred thousand: so nothing is made for them beforehand.
    """

    last: int
    taken: int
    history: tuple[Era, ...]
    left: frozenset[str] = frozenset()
    heard: dict[int, str] = field(default_factory=dict)
    cuts: tuple[int, ...] = ()
    branches: tuple[Branch, ...] = ()
    missed: int = 0
    deaf: int = -1
    bytes: int = 0
    backlog: list[tuple[int, int]] = field(default_factory=list)

    @property
    def incarnation(self) -> str:
        """Under which executions are counted."""
        return incarnation(self.history)

    @property
    def cursor(self) -> int | Cursor:
        """What the application has taken, as brokers are told."""
        return to_wire(Cursor(self.taken, self.incarnation))

    def go_on(self, history: Sequence[Era]) -> None:
        """Counts under another incarnation."""
        common = max(0, common_execution(history, self.incarnation, self.history))
        self.left |= {self.incarnation}
        if common < self.last:
            self._cut(common)
        known = knows(history, self.incarnation)
        self.history = (*self.history[:-1], *since(history, self.incarnation)) if known else tuple(history)
        for branch in self.branches:
            again = common_execution(history, incarnation(branch.history), branch.history)
            self.last = max(self.last, min(branch.last, again))
            self.taken = max(self.taken, min(branch.taken, again))

    def settle(self) -> int:
        """Lets go of what is taken of the backlog; how many notes that is."""
        count = 0
        for execution, size in self.backlog:
            if execution > self.taken:
                break
            self.bytes -= size
            count += 1
        del self.backlog[:count]
        return count

    def _cut(self, common: int) -> None:
        """What was delivered after ``common`` counts no more, unless a later history has it again."""
        self.branches = (*self.branches, Branch(self.history, self.last, self.taken))[-_BRANCHES:]
        self.cuts += (common,)
        self.last, self.taken, self.missed = common, min(self.taken, common), min(self.missed, common)
        while self.backlog and self.backlog[-1][0] > common:
            self.bytes -= self.backlog.pop()[1]


@lru_cache(maxsize=1024)
def _beginning(incarnation: str) -> tuple[Era, ...]:
    """What is known of a history at first: one for all streams that begin under an incarnation."""
    return (Era(incarnation, 0),)


class Inbox:
    """The notes on their way to the application.

    What can go wrong: a note comes again (dropped); one comes for what is not, or no longer, held (dropped); the
    application takes more slowly than notes come (beyond a bound the subscription's notes are dropped until it has
    taken the backlog, and :meth:`thirsty` then asks for a new login, which brings them again).
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._streams: dict[int, NoteStream] = {}
        self._newest = -1
        self._deaf: set[int] = set()
        self._unsaid: set[int] = set()
        self._count = 0
        self._since = 0.0

    def enter(self, connection: int) -> Cursors:
        """The cursors for a login on this connection: what the application has taken of each subscription."""
        self._newest = connection
        return {number: stream.cursor for number, stream in self._streams.items()}

    def admit(self, held: Held) -> None:
        """Takes notes of a subscription from now on, those after its cursor."""
        if held.subscription not in self._streams:
            self._streams[held.subscription] = NoteStream(held.cursor, held.cursor, _beginning(held.incarnation))

    def renumber(self, was: int, held: Held) -> None:
        """A subscription has another number, unless that is known already."""
        stream = self._streams.get(was)
        if stream is None:
            self.admit(held)
        else:
            self._streams.setdefault(held.subscription, stream)
            if was in self._deaf:
                self._deaf.add(held.subscription)

    def told(self, connection: int, held: Held, history: Sequence[Era]) -> None:
        """A broker has said under which incarnation it counts, with the history since that of before."""
        stream = self._streams.get(held.subscription)
        if stream is None:
            return
        # None is what a connection that is not there has named: so nothing is made where there are no incarnations.
        if held.incarnation or stream.heard:
            stream.heard[connection] = held.incarnation
        if len(stream.heard) > _CONNECTIONS:
            del stream.heard[min(stream.heard)]
        # Of two brokers one may know less than the other.
        if held.incarnation != stream.incarnation and held.incarnation not in stream.left:
            stream.go_on(history or [Era(held.incarnation, 0)])

    def incarnation(self, number: int) -> str:
        """Under which a subscription is counted."""
        stream = self._streams.get(number)
        return stream.incarnation if stream else ""

    def forget(self, number: int) -> None:
        """Takes no more notes of a subscription."""
        self._streams.pop(number, None)
        self._deaf.discard(number)
        self._unsaid.discard(number)

    def welcomed(self, now: float, subscriptions: Iterable[Held], missed: Mapping[str, int]) -> None:
        """A broker has said from where it goes on. It may not know the latest acknowledgements.

        ``missed`` is, per channel, the newest execution of the time the subscriber was away.
        """
        for held in subscriptions:
            stream = self._streams.get(held.subscription)
            if stream is None:
                continue
            stream.missed = max(stream.missed, missed.get(held.channel, 0))
            if held.cursor < stream.taken:
                self._unsay(now, held.subscription)

    def receive(self, connection: int, notes: Iterable[Note]) -> list[Deliver]:
        """What of one message's notes is new to the application."""
        return [
            Deliver(note.s, note, note.e <= stream.missed, len(stream.cuts))
            for note in notes
            if (stream := self._streams.get(note.s))
            and self._takes(connection, stream, note.s, note.e, len(memoryview(note.payload)))
        ]

    def skip(self, connection: int, gap: Gap) -> list[Missed]:
        """What of a gap is new to the application: it comes in order with the notes, and is taken like one."""
        stream = self._streams.get(gap.subscription)
        first = max(gap.first, stream.last + 1) if stream else gap.first
        if stream is None or not self._takes(connection, stream, gap.subscription, gap.last, 0):
            return []
        return [Missed(gap.subscription, first, gap.last, len(stream.cuts))]

    def take(self, now: float, number: int, execution: int, epoch: int = 0) -> None:
        """The application has had the notes of a subscription up to this one, which was delivered in that epoch."""
        stream = self._streams.get(number)
        if stream is not None:
            execution = min([execution, *stream.cuts[epoch:]])
        if stream is None or min(execution, stream.last) <= stream.taken:
            return
        stream.taken = min(execution, stream.last)
        self._count += stream.settle()
        self._unsay(now, number)

    @property
    def deaf(self) -> bool:
        """Whether there are subscriptions whose notes are dropped."""
        return bool(self._deaf)

    def thirsty(self, connection: int) -> bool:
        """Whether a subscription whose notes are dropped on this connection has room for them again."""
        streams = (self._streams[number] for number in self._deaf)
        return any(not stream.backlog and connection <= stream.deaf for stream in streams)

    def due(self, now: float) -> list[Acknowledge]:
        """The acknowledgement that is to be sent now."""
        full = self._count >= self._rules.ack_notes
        return self.flush() if self._unsaid and (full or now >= self._since + self._rules.ack_seconds) else []

    def flush(self) -> list[Acknowledge]:
        """The acknowledgement of everything taken and not yet acknowledged."""
        cursors: Cursors = {number: self._streams[number].cursor for number in sorted(self._unsaid)}
        self._unsaid.clear()
        self._count = 0
        return [Acknowledge(cursors)] if cursors else []

    def wake(self) -> float | None:
        """When an acknowledgement is due."""
        return self._since + self._rules.ack_seconds if self._unsaid else None

    def _unsay(self, now: float, number: int) -> None:
        if not self._unsaid:
            self._since = now
        self._unsaid.add(number)

    def _takes(self, connection: int, stream: NoteStream, number: int, execution: int, size: int) -> bool:
        if stream.heard.get(connection, "") != stream.incarnation:
            return False
        if execution <= stream.last or connection <= stream.deaf:
            return False
        if self._overfull(stream, size):
            # A later note over the same connection must not pass for the next one, even if there is room by then.
            stream.deaf = self._newest
            self._deaf.add(number)
            return False
        stream.last = execution
        stream.backlog.append((execution, size))
        stream.bytes += size
        self._deaf.discard(number)
        return True

    def _overfull(self, stream: NoteStream, size: int) -> bool:
        too_many = len(stream.backlog) >= self._rules.backlog_notes
        return bool(stream.backlog) and (too_many or stream.bytes + size > self._rules.backlog_bytes)
