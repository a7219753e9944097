"""Many FE subscriptions, one BE subscription: attached with the first, detached a while after the last.

A line is held while somebody subscribes to it or claims it: whoever got it from :meth:`Attachments.attach` has a claim
and must release it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tocsin.broker.accounting import DataRate
from tocsin.broker.cache import Cache
from tocsin.broker.deadlines import Deadlines
from tocsin.broker.holdings import Channel, Holdings, Line, key
from tocsin.broker.limits import Limits
from tocsin.broker.outbox import DataLink, Outbox, Reply, to_be_repeated
from tocsin.broker.renewals import GONE, Renewals
from tocsin.errors import ForbiddenError
from tocsin.model import control
from tocsin.model.histories import Cursor, knows
from tocsin.model.parts import parts, size
from tocsin.model.subscriber import Held
from tocsin.model.terms import Asker, admit, fill_in

# What a line adds to a message beyond its parameters, at most; so there are never more than 8,000 in one.
_NUMBER_BYTES: Final = 32
MOST_WORDS: Final = 8
MOST_NAMES: Final = 1000
MOST_DROPPED: Final = 100
# A data cluster that is being set up does not know its channels yet, or one is just being created anew.
_UNCERTAIN: Final = frozenset({"not-found", "conflict"})


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
    had: Cursor | None = None


class Attachments:
    """Which lines are held.

    What can go wrong: the link is lost (everything held is attached again, every wish asked again), the data cluster
    refuses or does not answer in time (the wish is told the error), it still counts lines to this broker that nobody
    wants (they are detached), it has other data than before (see :class:`Renewals`), it does not know a channel of
    which something is held (it is asked again until it does: it may be empty for the moment, and nobody is to lose a
    subscription for that), it will not have a line again (its subscriptions end).

    Only the data cluster knows how a channel is spelled. What is asked for in other words is asked of it; a few of the
    words that lead to a line are remembered.
    """

    def __init__(
        self,
        holdings: Holdings,
        outbox: Outbox,
        data: DataLink,
        cache: Cache,
        limits: Limits,
        renewals: Renewals,
        heard: Callable[[Channel], None],
    ) -> None:
        self._holdings, self._outbox, self._data = holdings, outbox, data
        self._cache, self._limits, self._heard, self._renewals = cache, limits, heard, renewals
        self._names: dict[str, str] = {}
        self._asking: dict[Channel, None] = {}
        self._dropped: deque[tuple[str, str]] = deque(maxlen=MOST_DROPPED)
        self._wishes: Deadlines[Wish] = Deadlines(limits.request_seconds)
        self._waiting: dict[Wish, None] = {}
        self._lingering: Deadlines[Line] = Deadlines(limits.linger_seconds)
        self._leaving: dict[int, None] = {}
        self._retries: list[tuple[float, Channel, list[Line]]] = []
        self._strange: dict[int, str] = {}
        self._strangers: Deadlines[int] = Deadlines(limits.stranger_seconds)

    def attach(
        self,
        channel: str,
        parameters: list[dict[str, Any]],
        then: Then,
        asker: Asker | None = None,
        known: Iterable[str] = (),
        had: Cursor | None = None,
    ) -> None:
        """Gets lines, at once if all are held and the channel's history knows these incarnations.

        ``asker`` must be one who may use the channel, and has bound parameters filled in; without, the broker itself
        asks for what somebody holds already. ``had`` is an execution that somebody has had of the channel, of which the
        data cluster is told.
        """
        try:
            held = self._held(channel, parameters, asker)
        except ForbiddenError as error:
            then(control.Error(error.code, str(error)))
            return
        lines = [line for line in held if line and not line.missing]
        if len(lines) == len(held) and all(knows(lines[0].channel.history, one) for one in known if one):
            for line in lines:
                self.claim(line)
            then(Attachment(lines, lines[0].channel.seen))
            return
        wish = Wish(channel, parameters, then, asker, had)
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

    def reattach(self, channel: Channel, lines: list[Line] | None = None) -> None:
        """Asks for these lines once more, or for all: the data cluster may have another history than is known here."""
        wanted = list(channel.lines.values()) if lines is None else lines
        if channel not in self._asking:
            for part in parts(wanted, _weight):
                self._attach_again(channel, part)

    def hold_missing(self, held: Held) -> Line:
        """A line that was held elsewhere, of a channel that the data cluster does not know at present; claimed."""
        channel = self._holdings.channel(held.channel)
        line = self._holdings.lines.get(held.subscription)
        if line is None:
            line = self._new_line(channel, held.parameters, held.subscription, 0)
            line.missing = True
            self._remember(line, key(held.channel, held.parameters))
            self._retries.append((self._outbox.now + self._limits.missing_seconds, channel, [line]))
        self.claim(line)
        return line

    def expect(self, channel: str) -> None:
        """Something was executed: that may be what is being asked for, in whatever words."""
        if self._waiting:
            self._holdings.channel(channel)

    def dropped(self, notice: control.Dropped) -> None:
        """A channel is gone; one that was created anew since is another."""
        self._dropped.append((notice.channel, notice.incarnation))
        channel = self._holdings.channels.get(notice.channel)
        if channel and channel.incarnation == notice.incarnation:
            for line in list(channel.lines.values()):
                self._renewals.end(line, GONE, f"channel {notice.channel} was dropped")
            self._tidy()

    def changed(self, notice: control.Changed) -> None:
        """A channel has other terms now; who has subscribed by those of before keeps the subscription."""
        if channel := self._holdings.channels.get(notice.channel):
            channel.terms = notice.terms

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
        for channel in list(self._holdings.channels.values()):
            self.reattach(channel)
        for wish in self._waiting:
            self._ask(wish)

    def lost(self) -> None:
        """Whatever was asked is not being answered."""
        self._asking.clear()

    def due(self, now: float) -> None:
        """Refuses what was not answered in time, and detaches what nobody wants."""
        for wish in self._wishes.due(now):
            self._end(wish, control.Error("unavailable", "the data cluster did not answer in time; try again later"))
        self._detach([line.be for line in list(self._lingering.due(now)) if self._forgotten(line)])
        self._detach([be for be in list(self._strangers.due(now)) if self._unknown(be)])
        retries, self._retries = self._retries, []
        for at, channel, lines in retries:
            if at <= now:
                self._attach_again(channel, [line for line in lines if channel.lines.get(line.be) is line])
            else:
                self._retries.append((at, channel, lines))

    def wake(self) -> float:
        """When something is due."""
        soonest = min(self._wishes.soonest, self._lingering.soonest, self._strangers.soonest)
        return min(soonest, *(at for at, _, _ in self._retries)) if self._retries else soonest

    def _held(self, channel: str, parameters: list[dict[str, Any]], asker: Asker | None) -> list[Line | None]:
        """The lines for these parameters, as far as they are held; ForbiddenError when it is known who may not."""
        known = self._holdings.channels.get(self._names.get(channel, channel))
        if known is None or known.terms is None:
            return [None] * len(parameters)
        if asker is not None:
            admit(known.terms, asker, f"channel {known.name}")
            parameters = [fill_in(known.terms, asker.name, one) for one in parameters]
        return [self._holdings.keys.get(key(channel, one)) for one in parameters]

    def _ask(self, wish: Wish) -> None:
        name, groups = (wish.asker.name, wish.asker.groups) if wish.asker else (None, ())
        self._data.ask(
            lambda id: control.Attach(id, wish.channel, wish.parameters, name, groups, wish.had),
            partial(self._answered, wish),
        )

    def _answered(self, wish: Wish, answer: Reply) -> None:
        answer = self._overtaken(answer)
        if wish not in self._waiting:
            if isinstance(answer, control.Attached):
                self.strangers(answer.channel, answer.bes)
            return
        if isinstance(answer, control.Attached):
            channel, asked = self._learn(answer, self._renumbered(answer)), wish.parameters
            self._spelled(wish.channel, channel.name)
            if wish.asker:
                asked = [fill_in(answer.terms, wish.asker.name, one) for one in asked]
            each = zip(answer.bes, asked, answer.parameters, strict=True)
            lines = [self._line(channel, wish.channel, *one, answer.execution) for one in each]
            for line in lines:
                self.claim(line)
            self._hear_rates(answer)
            self._end(wish, Attachment(lines, answer.execution))
        elif isinstance(answer, control.Error):
            self._end(wish, answer)

    def _overtaken(self, answer: Reply) -> Reply:
        """An answer, unless the notice that its channel was dropped has come before it."""
        if isinstance(answer, control.Attached) and (answer.channel, answer.incarnation) in self._dropped:
            return control.Error(GONE, f"channel {answer.channel} was dropped", answer.id)
        return answer

    def _end(self, wish: Wish, outcome: Attachment | control.Error) -> None:
        self._waiting.pop(wish, None)
        self._wishes.drop(wish)
        wish.then(outcome)
        self._tidy()

    def _renumbered(self, answer: control.Attached) -> dict[Line, int]:
        """What is held under other numbers than the answer has for it."""
        words = [key(answer.channel, parameters) for parameters in answer.parameters]
        known = [(self._holdings.keys.get(each), be) for each, be in zip(words, answer.bes, strict=True)]
        return {line: be for line, be in known if line and line.be != be}

    def _learn(self, answer: control.Attached, numbers: dict[Line, int]) -> Channel:
        """The channel that an answer is about, with the history it has now."""
        channel = self._holdings.channel(answer.channel)
        channel.terms = answer.terms
        self._renewals.renew(channel, list(answer.history), numbers)
        return channel

    def _hear_rates(self, answer: control.Attached) -> None:
        self._holdings.hear_rates(self._outbox.now, answer.bes, answer.rates, answer.seconds)

    def _spelled(self, words: str, name: str) -> None:
        if len(self._names) >= MOST_NAMES:
            self._names.clear()
        self._names[words] = name

    def _line(
        self,
        channel: Channel,
        name: str,
        be: int,
        asked: dict[str, Any],
        parameters: dict[str, Any],
        execution: int,
    ) -> Line:
        line = self._holdings.lines.get(be) or self._new_line(channel, parameters, be, execution)
        line.missing = False
        self._remember(line, key(channel.name, parameters))
        self._remember(line, key(name, asked))
        return line

    def _remember(self, line: Line, words: bytes) -> None:
        """Whoever asks in these words gets this line at once."""
        if words not in self._holdings.keys and len(line.keys) < MOST_WORDS:
            self._holdings.keys[words] = line
            line.keys.append(words)

    def _new_line(self, channel: Channel, parameters: dict[str, Any], be: int, execution: int) -> Line:
        if not channel.lines:
            channel.seen = max(channel.seen, execution)
            channel.level = channel.seen
        line = Line(be, channel, parameters, DataRate(self._limits.rate_seconds), execution)
        # What was executed but not yet asked for was not for this line when it was heard of.
        if channel.seen > max(channel.level, channel.pulling):
            channel.wanted[line] = None
        self._holdings.lines[be] = channel.lines[be] = line
        self._leaving.pop(be, None)
        self._cache.open(be, line.horizon)
        return line

    def _attach_again(self, channel: Channel, lines: list[Line]) -> None:
        parameters = [line.parameters for line in lines]
        if not lines or not self._data.up:
            return
        self._asking[channel] = None
        known = channel.cursor(channel.seen) if channel.incarnation else None
        self._data.ask(
            lambda id: control.Attach(id, channel.name, parameters, known=known),
            partial(self._attached_again, channel, lines),
        )

    def _attached_again(self, channel: Channel, lines: list[Line], answer: Reply) -> None:
        self._asking.pop(channel, None)
        answer = self._overtaken(answer)
        if isinstance(answer, control.Attached):
            self._again(channel, lines, answer)
        elif isinstance(answer, control.Error) and answer.code == GONE:
            for line in lines:
                self._renewals.end(line, GONE, answer.message)
            self._tidy()
        elif isinstance(answer, control.Error) and (to_be_repeated(answer) or answer.code in _UNCERTAIN):
            self._later(channel, lines, answer)
        elif len(lines) > 1:
            # One that is refused must not keep the others away.
            middle = len(lines) // 2
            self._attach_again(channel, lines[:middle])
            self._attach_again(channel, lines[middle:])
        elif isinstance(answer, control.Error):
            self._renewals.end(lines[0], answer.code, answer.message)
            self._tidy()

    def _again(self, channel: Channel, lines: list[Line], answer: control.Attached) -> None:
        """These lines are held, though perhaps not as they were."""
        held = {line: be for line, be in zip(lines, answer.bes, strict=True) if channel.lines.get(line.be) is line}
        for line, parameters in zip(lines, answer.parameters, strict=True):
            line.missing, line.parameters = False, parameters
        if channel.name != answer.channel:
            self._rename(channel, answer.channel)
        channel = self._learn(answer, held)
        self._hear_rates(answer)
        # Also for lines attached since: notices up to this execution may still be on their way, and come too late.
        channel.wanted.update((line, None) for line in channel.lines.values() if not line.idle)
        channel.seen = max(channel.seen, answer.execution)
        self._heard(channel)
        self.strangers(channel.name, answer.bes)
        self._tidy()

    def _rename(self, channel: Channel, name: str) -> None:
        """A channel was known in a spelling that is not the data cluster's."""
        del self._holdings.channels[channel.name]
        channel.name = name
        other = self._holdings.channels.setdefault(name, channel)
        if other is not channel:
            for line in channel.lines.values():
                line.channel = other
            other.lines.update(channel.lines)
            channel.lines.clear()

    def _later(self, channel: Channel, lines: list[Line], error: control.Error) -> None:
        wait = error.retry_after or self._limits.retry_seconds
        if error.code in _UNCERTAIN:
            wait = self._limits.missing_seconds
            for line in lines:
                line.missing = True
        self._retries.append((self._outbox.now + wait, channel, lines))

    def _forgotten(self, line: Line) -> bool:
        """Lets a line go, unless it is wanted or may be the answer to a wish in other words."""
        if line.claims or line.subscriptions:
            return False
        if self._wished(line.channel.name):
            self._lingering.set(self._outbox.now, line)
            return False
        known = self._holdings.lines.get(line.be) is line
        self._forget(line)
        return known

    def _unknown(self, be: int) -> bool:
        """Whether a stranger still is one; should it be the answer to a wish, it will be known or noticed again."""
        return not self._wished(self._strange.pop(be)) and be not in self._holdings.lines

    def _wished(self, channel: str) -> bool:
        """Whether a wish may be for this channel: one in words never heard before may be for any."""
        return any(self._names.get(wish.channel, channel) == channel for wish in self._waiting)

    def _forget(self, line: Line) -> None:
        if self._holdings.lines.get(line.be) is not line:
            return
        del self._holdings.lines[line.be], line.channel.lines[line.be]
        for words in line.keys:
            del self._holdings.keys[words]
        line.channel.wanted.pop(line, None)
        self._cache.close(line.be)
        self._tidy()

    def _tidy(self) -> None:
        idle = [name for name, channel in self._holdings.channels.items() if not channel.lines]
        for name in idle:
            if not self._wished(name):
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
