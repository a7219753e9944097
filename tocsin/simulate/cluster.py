"""The data cluster as a model: what it has found for whom, without the data in which it was found."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Raw

from tocsin.data.control import events
from tocsin.data.control.actions import CarryOut, ReadOn, Send, Work
from tocsin.data.control.core import ControlCore, Position
from tocsin.data.rates import Rates
from tocsin.errors import GoneError, NotFoundError, TocsinError
from tocsin.model import control
from tocsin.model.histories import DROPPED, Era, incarnation
from tocsin.model.messages import ProblemDetails, Pulled, Result
from tocsin.model.terms import Asker, Terms, admit, fill_in
from tocsin.model.weight import weight

_encode = msgspec.json.Encoder(order="deterministic").encode
_STORED: Final = ("execution", "bes", "channels", "attached", "found", "bes_by_channel", "histories", "absent")


@dataclass
class DataClusterModel:
    """Executes channels when told to, and remembers what each execution found.

    A channel exists once it is asked for, in the spelling in which it was first heard of, unless it was dropped or all
    data were lost: then it must be created. What outlives a restored copy is only what nobody may be given twice,
    numbers and incarnations, and for the verdict ``ever``, what was ever found, and ``eras``, the history that a
    channel had under each incarnation. ``rates`` are λ, measured by the real one's code from every start on.

    Args:
        size: the bytes of what an execution finds for a BE subscription; a payload is never smaller than its ids.
        kept: of each BE subscription, results of so many executions of its channel can be pulled; None: of all.
        part: so many results come in a part of an answer; None: all of them.
        window: the time constant of λ.
        now: what time it is.
    """

    size: Callable[[int, int], int] = lambda be, execution: 0  # noqa: ARG005
    kept: int | None = None
    part: int | None = None
    window: float = 60.0
    now: Callable[[], float] = lambda: 0.0
    execution: dict[str, int] = field(default_factory=dict)
    bes: dict[tuple[str, bytes], int] = field(default_factory=dict)
    channels: dict[int, str] = field(default_factory=dict)
    attached: dict[int, set[str]] = field(default_factory=dict)
    found: dict[int, list[int]] = field(default_factory=dict)
    bes_by_channel: dict[str, list[int]] = field(default_factory=dict)
    terms: dict[str, Terms] = field(default_factory=dict)
    histories: dict[str, list[Era]] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    given: int = 0
    lives: int = 0
    words: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    ever: dict[int, set[tuple[str, int]]] = field(default_factory=dict)
    eras: dict[tuple[str, str], list[Era]] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _ran: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rates = Rates(self.window)

    def begin(self) -> None:
        """Its process has started."""
        self.lives += 1
        self.rates = Rates(self.window)
        for channel in sorted({*self.execution, *self.bes_by_channel, *self.histories} - self.absent):
            self.rates.resume(channel, self._ran.get(channel, self.now()))
            self._append(channel, Era(f"life {self.lives}", self.execution.get(channel, 0)), [Era("", 0)])

    def create(self, channel: str) -> None:
        """A channel that was dropped or lost is there again: another one."""
        if channel in self.absent:
            self._names[channel.casefold()] = channel
            self.absent.discard(channel)
            self.lives += 1
            began = DROPPED if channel in self.histories else 0
            self._append(channel, Era(f"creation {self.lives}", began), [])

    def drop(self, channel: str) -> None:
        """A channel is gone, with all that was subscribed to and found."""
        for be in self.bes_by_channel.pop(channel, []):
            del self.bes[self.words[be]], self.channels[be], self.attached[be], self.found[be]
        self.execution.pop(channel, None)
        self.rates.drop(channel)
        if not self.histories.get(channel):
            self.histories[channel] = [Era("", 0)]
        self.absent.add(channel)

    def copy(self) -> dict[str, Any]:
        """All that is on its disk."""
        return {name: deepcopy(getattr(self, name)) for name in _STORED}

    def restore(self, copy: dict[str, Any]) -> None:
        """Has what it had when the copy was made."""
        for name, value in deepcopy(copy).items():
            setattr(self, name, value)

    def lose(self) -> None:
        """Has nothing any more, and no channels."""
        known = {*self.execution, *self.bes_by_channel, *self.histories, *self.absent}
        for name in _STORED:
            getattr(self, name).clear()
        self.absent.update(known)

    def spelling_of(self, channel: str) -> str:
        """A channel's name as it was first written."""
        folded = channel.casefold()
        if folded not in self._names:
            self._names[folded] = next((name for name in self.terms if name.casefold() == folded), channel)
        return self._names[folded]

    def incarnation(self, channel: str) -> str:
        """Under which a channel is counted."""
        return incarnation(self.histories.get(channel, []))

    def present(self, be: int) -> int:
        """The number that something has now which had another before, as far as it has one."""
        return self.bes.get(self.words[be], be)

    def position(self, channel: str) -> Position | None:
        """How far the channel of that name is, in any spelling; None if it is not there."""
        name = self.spelling_of(channel)
        if name in self.absent:
            return None
        return Position(self.execution.get(name, 0), list(self.histories.get(name, [])), self.terms.get(name, Terms()))

    def carry_out(self, broker: str, request: Work) -> Iterator[events.Outcome]:
        """What comes of a broker's request, of a pull the parts one after the other; raises what the real one does."""
        match request:
            case control.Attach():
                yield self._subscribe(broker, request)
            case control.Detach(_, bes):
                yield events.Unsubscribed(self._unsubscribe(broker, bes))
            case control.Pull():
                yield from map(events.PartRead, self._pull(broker, request))

    def answers(self, broker: str, request: control.Request) -> list[control.ControlMessage]:
        """All that a broker is answered that asks nothing else, at once."""
        core, parts, said = ControlCore(broker, self), iter(list[events.Outcome]()), list[control.ControlMessage]()
        todo = deque[events.Event]([events.Opened(), events.Received(msgspec.json.encode(request))])
        while todo:
            for action in core.handle(todo.popleft()):
                match action:
                    case Send(message):
                        said.append(message)
                        todo.append(events.Writable())
                    case CarryOut(work):
                        parts = self.carry_out(broker, work)
                        todo.append(outcome(parts))
                    case ReadOn():
                        todo.append(outcome(parts))
        return said[1:]

    def answer(self, broker: str, request: control.Request) -> control.ControlMessage:
        """The answer that comes in one part."""
        [only] = self.answers(broker, request)
        return only

    def _subscribe(self, broker: str, request: control.Attach) -> events.Subscribed:
        channel = self._existing(request.channel)
        parameters, terms = request.parameters, self.terms.get(channel, Terms())
        if request.subscriber is not None:
            admit(terms, Asker(request.subscriber, request.groups), f"channel {channel}")
            parameters = [fill_in(terms, request.subscriber, one) for one in parameters]
        bes = self.attach(broker, channel, parameters)
        forecast = self.rates.forecast(self.now(), channel, np.array(bes, np.int64))
        return events.Subscribed(channel, bes, parameters, forecast.rates, forecast.seconds)

    def _unsubscribe(self, broker: str, bes: list[int]) -> int:
        held = [be for be in bes if broker in self.attached.get(be, ())]
        for be in held:
            self.attached[be].discard(broker)
        self.rates.forget([be for be in bes if not self.attached.get(be)])
        return len(held)

    def _existing(self, channel: str) -> str:
        """The name of a channel as it was created; raises GoneError or NotFoundError if it is not there."""
        name = self.spelling_of(channel)
        if name in self.absent:
            error = GoneError if name in self.histories else NotFoundError
            raise error(f"there is no channel {name}")
        return name

    def _append(self, channel: str, era: Era, first: list[Era]) -> None:
        history = self.histories.setdefault(channel, first)
        history.append(era)
        self.eras[channel, era.incarnation] = list(history)

    def _pull(self, broker: str, pull: control.Pull) -> list[Pulled]:
        """What was found, in parts."""
        channel = self._existing(pull.channel)
        wanted = pull.bes if pull.bes is not None else [be for be, held in self.attached.items() if broker in held]
        found, upto, size = list[Result](), pull.last, 0
        for one in self.results(channel, pull.first, pull.last, wanted):
            if pull.most and size >= pull.most and one.execution > found[-1].execution:
                upto = found[-1].execution
                break
            found.append(one)
            size += one.bytes
        gone = {be: last for be, last in self.last_gone(channel, wanted).items() if last >= pull.first}
        each, oldest = self.part or max(len(found), 1), self.oldest(channel)
        starts = range(0, max(len(found), 1), each)
        return [Pulled(found[at : at + each], at != starts[-1], upto, oldest, gone if at == 0 else {}) for at in starts]

    def attach(self, broker: str, channel: str, parameters: list[dict[str, Any]]) -> list[int]:
        """Counts BE subscriptions to a broker."""
        bes = [self.be(channel, one) for one in parameters]
        for be in bes:
            self.attached[be].add(broker)
        self.rates.begin(self.now(), channel, bes)
        return bes

    def be(self, channel: str, parameters: dict[str, Any]) -> int:
        """The BE subscription of a channel with these parameters."""
        channel = self.spelling_of(channel)
        key = (channel, _encode(parameters))
        be = self.bes.get(key)
        if be is None:
            self.given += 1
            be = self.bes[key] = self.given
            self.words[be], self.ever[be] = key, set()
            self.channels[be], self.attached[be], self.found[be] = channel, set(), []
            self.bes_by_channel.setdefault(channel, []).append(be)
        return be

    def results(self, channel: str, first: int, last: int, wanted: list[int]) -> list[Result]:
        """What executions ``first`` to ``last`` found, as far as it is kept."""
        oldest, pairs = max(first, self.oldest(channel)), []
        for be in wanted:
            if self.channels.get(be) == channel:
                found = self.found[be]
                pairs += [(each, be) for each in found[bisect_left(found, oldest) : bisect_right(found, last)]]
        return [
            result(be, execution, self.size(be, execution), self.under(channel, execution))
            for execution, be in sorted(pairs)
        ]

    def under(self, channel: str, execution: int) -> str:
        """The incarnation of an execution."""
        eras = [era.incarnation for era in self.histories.get(channel, []) if era.began < execution]
        return eras[-1] if eras else ""

    def oldest(self, channel: str) -> int:
        """Of executions before this one nothing is kept."""
        return 1 if self.kept is None else max(1, self.execution.get(channel, 0) - self.kept + 1)

    def last_gone(self, channel: str, wanted: list[int]) -> dict[int, int]:
        """Of those BE subscriptions that had something which is not kept any more, the last execution that found it."""
        oldest = self.oldest(channel)
        ends = {be: bisect_left(self.found[be], oldest) for be in wanted if self.channels.get(be) == channel}
        return {be: self.found[be][end - 1] for be, end in ends.items() if end}

    def execute(self, channel: str, chosen: Callable[[int], bool]) -> dict[str, control.Executed]:
        """Runs a channel once, which finds something for the ``chosen``; what each broker is told."""
        told: dict[str, list[int]] = {}
        for be in self.run(channel, chosen):
            for broker in sorted(self.attached[be]):
                told.setdefault(broker, []).append(be)
        number = self.execution[channel]
        return {broker: self.notice(channel, number, bes) for broker, bes in told.items()}

    def notice(self, channel: str, number: int, bes: list[int]) -> control.Executed:
        """What a broker is told that holds these, for which an execution found something."""
        forecast = self.rates.forecast(self.now(), channel, np.array(bes, np.int64))
        return control.Executed(channel, number, bes, self.incarnation(channel), forecast.rates, forecast.seconds)

    def run(self, channel: str, chosen: Callable[[int], bool]) -> list[int]:
        """The same, but nobody is told; for which BE subscriptions something was found."""
        bes, number = self.find(channel, chosen), self.execution[channel]
        results = self.results(channel, number, number, bes)
        found = np.array([[one.be, weight(one.bytes)] for one in results], np.int64).reshape(-1, 2)
        self._ran[channel] = self.now()
        self.rates.add(self.now(), channel, found[:, 0], found[:, 1])
        return bes

    def find(self, channel: str, chosen: Callable[[int], bool]) -> list[int]:
        """The same, but what it weighs is not counted."""
        number = self.execution[channel] = self.execution.get(channel, 0) + 1
        bes = [be for be in self.bes_by_channel.get(channel, []) if self.attached[be] and chosen(be)]
        counted = self.incarnation(channel), number
        for be in bes:
            self.found[be].append(number)
            self.ever[be].add(counted)
        return bes


def outcome(parts: Iterator[events.Outcome]) -> events.Outcome:
    """The next outcome of a request; an error is one, too."""
    try:
        return next(parts)
    except TocsinError as error:
        return events.RequestFailed(
            ProblemDetails(error.code, str(error), retry_after=getattr(error, "retry_after", None))
        )


def result(be: int, execution: int, size: int = 0, incarnation: str = "") -> Result:
    """A result whose payload says what it is, filled up to ``size`` bytes."""
    under = b',"i":"%b"' % incarnation.encode() if incarnation else b""
    payload = b'[{"be":%d,"n":%d%b}]' % (be, execution, under)
    if (missing := size - len(payload) - len(b',"fill":""')) >= 0:
        payload = b'[{"be":%d,"n":%d%b,"fill":"%b"}]' % (be, execution, under, b"." * missing)
    return Result(execution, be, 1, len(payload), Raw(payload))
