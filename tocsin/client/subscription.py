"""A subscription as the application sees it: an iterator of its notes, each acknowledged when it is done with."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Literal

from tocsin.client.core.actions import Deliver, Missed
from tocsin.client.mailbox import Mailbox
from tocsin.client.note import Gap, Note

Acknowledge = Literal["auto", "manual"]
OnGap = Callable[[Gap], None]
Mark = tuple[int, int]
"""The epoch and the execution of a note: in this order they grow, also when executions are counted anew."""


class Subscription:
    """The notes of a channel with certain parameters, in order and each once: ``async for note in subscription``.

    Taking the next note acknowledges the one before, unless acknowledgement is ``manual``: then ``note.done()`` does,
    in any order; what is not done with comes again to the next run of the program. Leaving the loop changes nothing,
    and another loop goes on where it ended. A program that does not take its notes holds only so many of them in memory
    (``Rules.backlog_notes`` and ``backlog_bytes``), and gets the others when it has taken those. Where notes are not to
    be had any more, ``on_gap`` is called in their place, before the iteration goes on; then that is acknowledged, too.

    What can go wrong: the iteration raises what ended the connection for good, or the subscription itself, as when its
    channel was dropped. It ends without an error after :meth:`close`, and when the connection is left.
    """

    def __init__(
        self,
        channel: str,
        parameters: dict[str, Any],
        acknowledge: Acknowledge,
        leave: Callable[[Subscription], Awaitable[None]],
        on_gap: OnGap | None = None,
    ) -> None:
        self.channel, self.parameters = channel, parameters
        self._automatic = acknowledge == "auto"
        self._leave, self._on_gap = leave, on_gap
        self._fanout: Fanout | None = None
        self._mailbox: Mailbox[tuple[Mark, Note | Gap]] = Mailbox()
        self._given: deque[Mark] = deque()
        self._done: set[Mark] = set()
        self.mark: Mark = (0, 0)

    @property
    def number(self) -> int:
        """By which brokers know it, and everybody else who has subscribed to the same."""
        assert self._fanout
        return self._fanout.number

    @property
    def taken(self) -> int:
        """Up to which execution the application is done with the notes."""
        return self.mark[1]

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Note:
        if self._automatic and self._given:
            self.done(self._given[-1])
        mark, item = await anext(self._mailbox)
        while isinstance(item, Gap):
            self._skip(mark, item)
            mark, item = await anext(self._mailbox)
        self._given.append(mark)
        return item

    async def close(self) -> None:
        """Unsubscribes, unless the same was subscribed to more than once here; then only the last close does.

        Notes that were not taken are dropped.
        """
        self._mailbox.clear()
        await self._leave(self)

    def done(self, mark: Mark) -> None:
        """The application is done with a note. What is acknowledged is everything before the first that is not."""
        if self._given and mark >= self._given[0]:
            self._done.add(mark)
        while self._given and self._given[0] in self._done:
            self.mark = self._given.popleft()
            self._done.discard(self.mark)
        if self._fanout:
            self._fanout.advance()

    def join(self, fanout: Fanout, taken: Mark) -> None:
        """Gets its notes from ``fanout``, those after ``taken``; another than before when the broker renumbered it."""
        self._fanout, self.mark = fanout, taken
        self._given.clear()
        self._done.clear()

    def put(self, deliver: Deliver | Missed) -> None:
        """A note has come, or word that some will not."""
        mark = mark_of(deliver)
        if isinstance(deliver, Missed):
            self._mailbox.put((mark, Gap(deliver.subscription, self.channel, deliver.first, deliver.last)))
            return
        note, payload = deliver.note, bytes(deliver.note.payload)
        done = partial(self.done, mark)
        self._mailbox.put((mark, Note(note.s, self.channel, note.e, payload, deliver.recovered, done)))

    def end(self, error: Exception | None) -> None:
        """No more notes come."""
        self._mailbox.end(error)

    def _skip(self, mark: Mark, gap: Gap) -> None:
        if self._on_gap:
            self._on_gap(gap)
        self._given.append(mark)
        self.done(mark)

    def __repr__(self) -> str:
        return f"<Subscription {self.channel} {self.parameters}>"


class Fanout:
    """What comes of one subscription number, for all in this program who want it.

    Each gets every note from when it joined. While there is nobody, notes are kept for the first: they may have been
    missed while the program was not running. Only what all have taken is told as taken.
    """

    def __init__(self, number: int, cursor: int, take: Callable[[int, Mark], None]) -> None:
        self.number = number
        self._take = take
        self._last = self._taken = (0, cursor)
        self._kept: list[Deliver | Missed] = []
        self._readers: dict[Subscription, None] = {}

    def put(self, deliver: Deliver | Missed) -> None:
        """A note has come, or word that some will not."""
        self._last = mark_of(deliver)
        if not self._readers:
            self._kept.append(deliver)
        for reader in self._readers:
            reader.put(deliver)

    def join(self, reader: Subscription) -> None:
        """Somebody wants the notes."""
        kept, self._kept = self._kept, []
        reader.join(self, self._last if self._readers else self._taken)
        self._readers[reader] = None
        for deliver in kept:
            reader.put(deliver)

    def part(self, reader: Subscription) -> None:
        """Somebody wants no more."""
        self._readers.pop(reader, None)
        self.advance()

    def advance(self) -> None:
        """Tells what all have taken, if that is more than before."""
        taken = min((reader.mark for reader in self._readers), default=(0, 0))
        if taken > self._taken:
            self._taken = taken
            self._take(self.number, taken)


def mark_of(deliver: Deliver | Missed) -> Mark:
    """Where in its subscription it stands."""
    return deliver.epoch, deliver.note.e if isinstance(deliver, Deliver) else deliver.last
