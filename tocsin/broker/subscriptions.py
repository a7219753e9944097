"""Many FE subscriptions, one BE subscription: attached with the first, detached a while after the last.

A line is held while somebody subscribes to it or claims it: whoever got it from :meth:`Attachments.attach` has a claim
and must release it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tocsin.broker.accounting import Account
from tocsin.broker.cache import Cache
from tocsin.broker.deadlines import Deadlines
from tocsin.broker.holdings import Channel, Holdings, Line, key
from tocsin.broker.limits import Limits
from tocsin.broker.outbox import DataLink, Outbox, Reply, to_be_repeated
from tocsin.errors import ForbiddenError
from tocsin.model import control
from tocsin.model.parts import parts, size
from tocsin.model.terms import Asker, admit, fill_in

# What a line adds to a message beyond its parameters, at most; so there are never more than 8,000 in one.
_NUMBER_BYTES: Final = 32


@dataclass(frozen=True)
class Attachment:
    """Claimed lines, in the order asked for; what executions after ``execution`` find is for whoever asked."""

    lines: list[Line]
    execution: int


Then = Callable[[Attachment | control.Error], None]


@dataclass(eq=False)
class Wish:
    """An Attach that is not answered yet."""

    channel: str
    parameters: list[dict[str, Any]]
    then: Then
    asker: Asker | None = None


class Attachments:
    """Which lines are held.

    What can go wrong: the link is lost (everything held is attached again, every wish asked again), the data cluster
    refuses or does not answer in time (the wish is told the error), it still counts lines to this broker that nobody
    wants (they are detached).
    """

    def __init__(
        self,
        holdings: Holdings,
        outbox: Outbox,
        data: DataLink,
        cache: Cache,
        limits: Limits,
        heard: Callable[[Channel], None],
    ) -> None:
        self._holdings, self._outbox, self._data = holdings, outbox, data
        self._cache, self._limits, self._heard = cache, limits, heard
        self._wishes: Deadlines[Wish] = Deadlines(limits.request_seconds)
        self._waiting: dict[Wish, None] = {}
        self._lingering: Deadlines[Line] = Deadlines(limits.linger_seconds)
        self._leaving: dict[int, None] = {}
        self._retries: list[tuple[float, Channel, list[Line]]] = []
        self._strange: dict[int, str] = {}
        self._strangers: Deadlines[int] = Deadlines(limits.stranger_seconds)

    def attach(self, channel: str, parameters: list[dict[str, Any]], then: Then, asker: Asker | None = None) -> None:
        """Gets lines, at once if all are held.

        ``asker`` must be one who may use the channel, and has bound parameters filled in; without, the broker itself
        asks for what somebody holds already.
        """
        try:
            held = self._held(channel, parameters, asker)
        except ForbiddenError as error:
            then(control.Error(error.code, str(error)))
            return
        lines = [line for line in held if line]
        if len(lines) == len(held):
            for line in lines:
                self.claim(line)
            then(Attachment(lines, self._holdings.channel(channel).seen))
            return
        self._holdings.channel(channel)
        wish = Wish(channel, parameters, then, asker)
        self._waiting[wish] = None
        self._wishes.set(self._outbox.now, wish)
        self._ask(wish)

    def claim(self, line: Line) -> None:
        """Keeps a line held until it is released as often as it was claimed."""
        line.claims += 1
        self._lingering.drop(line)

    def release(self, line: Line) -> None:
        """Takes a claim back."""
        line.claims -= 1
        self.unused(line)

    def unused(self, line: Line) -> None:
        """Lets a line go after a while, if nobody wants it."""
        if not line.claims and not line.subscriptions:
            self._lingering.set(self._outbox.now, line)

    def strangers(self, channel: str, bes: list[int]) -> None:
        """Takes note of what the data cluster counts to this broker though nobody here wants it, after a crash say.

        It is not detached soon: those who wanted it may be about to come back, and must not miss what is found.
        """
        for be in bes:
            if be not in self._holdings.lines and be not in self._leaving and be not in self._strange:
                self._strange[be] = channel
                self._strangers.set(self._outbox.now, be)

    def connected(self) -> None:
        """Asks for everything again; in this order, because what is to leave may have been wanted again since."""
        self._retries.clear()
        leaving, self._leaving = list(self._leaving), {}
        self._detach([be for be in leaving if be not in self._holdings.lines])
        for channel in self._holdings.channels.values():
            for lines in parts(channel.lines.values(), _weight):
                self._attach_again(channel, lines)
        for wish in self._waiting:
            self._ask(wish)

    def due(self, now: float) -> None:
        """Refuses what was not answered in time, and detaches what nobody wants."""
        for wish in self._wishes.due(now):
            self._end(wish, control.Error("unavailable", "the data cluster did not answer in time; try again later"))
        self._detach([line.be for line in list(self._lingering.due(now)) if self._forgotten(line)])
        self._detach([be for be in list(self._strangers.due(now)) if self._unknown(be)])
        retries, self._retries = self._retries, []
        for at, channel, lines in retries:
            if at <= now:
                self._attach_again(channel, [line for line in lines if line.be in channel.lines])
            else:
                self._retries.append((at, channel, lines))

    def wake(self) -> float:
        """When something is due."""
        soonest = min(self._wishes.soonest, self._lingering.soonest, self._strangers.soonest)
        return min(soonest, *(at for at, _, _ in self._retries)) if self._retries else soonest

    def _held(self, channel: str, parameters: list[dict[str, Any]], asker: Asker | None) -> list[Line | None]:
        """The lines for these parameters, as far as they are held; ForbiddenError when it is known who may not."""
        known = self._holdings.channels.get(channel)
        if known is None or known.terms is None:
            return [None] * len(parameters)
        if asker is not None:
            admit(known.terms, asker, f"channel {channel}")
            parameters = [fill_in(known.terms, asker.name, one) for one in parameters]
        return [self._holdings.keys.get(key(channel, one)) for one in parameters]

    def _ask(self, wish: Wish) -> None:
        name, groups = (wish.asker.name, wish.asker.groups) if wish.asker else (None, ())
        self._data.ask(
            lambda id: control.Attach(id, wish.channel, wish.parameters, name, groups), partial(self._answered, wish)
        )

    def _answered(self, wish: Wish, answer: Reply) -> None:
        if wish not in self._waiting:
            if isinstance(answer, control.Attached):
                self.strangers(wish.channel, answer.bes)
            return
        if isinstance(answer, control.Attached):
            self._holdings.channel(wish.channel).terms = answer.terms
            asked = wish.parameters
            if wish.asker:
                asked = [fill_in(answer.terms, wish.asker.name, one) for one in asked]
            lines = [
                self._line(wish.channel, parameters, be, answer.execution)
                for be, parameters in zip(answer.bes, asked, strict=True)
            ]
            for line in lines:
                self.claim(line)
            self._end(wish, Attachment(lines, answer.execution))
        elif isinstance(answer, control.Error):
            self._end(wish, answer)

    def _end(self, wish: Wish, outcome: Attachment | control.Error) -> None:
        self._waiting.pop(wish, None)
        self._wishes.drop(wish)
        wish.then(outcome)
        self._tidy(wish.channel)

    def _line(self, name: str, parameters: dict[str, Any], be: int, execution: int) -> Line:
        line = self._holdings.lines.get(be) or self._new_line(name, parameters, be, execution)
        words = key(name, parameters)
        if words not in self._holdings.keys:
            self._holdings.keys[words] = line
            line.keys.append(words)
        return line

    def _new_line(self, name: str, parameters: dict[str, Any], be: int, execution: int) -> Line:
        channel = self._holdings.channel(name)
        if not channel.lines:
            channel.seen = max(channel.seen, execution)
            channel.level = channel.seen
        line = Line(be, channel, parameters, Account(self._limits.rate_seconds), execution)
        # What was executed but not yet asked for was not for this line when it was heard of.
        if channel.seen > max(channel.level, channel.pulling):
            channel.wanted[line] = None
        self._holdings.lines[be] = channel.lines[be] = line
        self._leaving.pop(be, None)
        self._cache.open(be, line.horizon)
        return line

    def _attach_again(self, channel: Channel, lines: list[Line]) -> None:
        parameters = [line.parameters for line in lines]
        if not lines:
            return
        self._data.ask(
            lambda id: control.Attach(id, channel.name, parameters), partial(self._attached_again, channel, lines)
        )

    def _attached_again(self, channel: Channel, lines: list[Line], answer: Reply) -> None:
        if isinstance(answer, control.Attached):
            channel.terms = answer.terms
            # Also for lines attached since: notices up to this execution may still be on their way, and come too late.
            channel.wanted.update(dict.fromkeys(channel.lines.values()))
            channel.seen = max(channel.seen, answer.execution)
            self._heard(channel)
        elif isinstance(answer, control.Error) and to_be_repeated(answer):
            at = self._outbox.now + (answer.retry_after or self._limits.retry_seconds)
            self._retries.append((at, channel, lines))
        elif len(lines) > 1:
            # One that is refused must not keep the others away.
            middle = len(lines) // 2
            self._attach_again(channel, lines[:middle])
            self._attach_again(channel, lines[middle:])

    def _forgotten(self, line: Line) -> bool:
        """Lets a line go, unless it is wanted or may be the answer to a wish in other words."""
        if line.claims or line.subscriptions:
            return False
        if self._wished(line.channel.name):
            self._lingering.set(self._outbox.now, line)
            return False
        self._forget(line)
        return True

    def _unknown(self, be: int) -> bool:
        """Whether a stranger still is one; should it be the answer to a wish, it will be known or noticed again."""
        return not self._wished(self._strange.pop(be)) and be not in self._holdings.lines

    def _wished(self, channel: str) -> bool:
        return any(wish.channel == channel for wish in self._waiting)

    def _forget(self, line: Line) -> None:
        del self._holdings.lines[line.be], line.channel.lines[line.be]
        for words in line.keys:
            del self._holdings.keys[words]
        line.channel.wanted.pop(line, None)
        self._cache.close(line.be)
        self._tidy(line.channel.name)

    def _tidy(self, name: str) -> None:
        channel = self._holdings.channels.get(name)
        if channel and not channel.lines and not self._wished(name):
            del self._holdings.channels[name]

    def _detach(self, bes: list[int]) -> None:
        self._leaving.update(dict.fromkeys(bes))
        for part in parts(bes, lambda _: _NUMBER_BYTES):
            self._ask_to_detach(part)

    def _ask_to_detach(self, bes: list[int]) -> None:
        self._data.ask(lambda id: control.Detach(id, bes), partial(self._detached, bes))

    def _detached(self, bes: list[int], answer: Reply) -> None:  # noqa: ARG002
        for be in bes:
            self._leaving.pop(be, None)


def _weight(line: Line) -> int:
    return size(line.parameters) + _NUMBER_BYTES
