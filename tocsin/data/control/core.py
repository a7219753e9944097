"""One broker's control connection: its requests in order, notices in between, and answers that are true when sent."""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

import msgspec

from tocsin.data.control import events
from tocsin.data.control.actions import Action, CarryOut, CompareHistories, ReadOn, Send, Work
from tocsin.data.control.pending import MOST_IDS, Pending
from tocsin.errors import GoneError
from tocsin.model import control
from tocsin.model.histories import Era, incarnation
from tocsin.model.messages import Pulled
from tocsin.model.terms import Terms
from tocsin.schema.refusals import UNDECODABLE, undecodable

_REQUEST: Final[msgspec.json.Decoder[control.Request]] = msgspec.json.Decoder(control.Request)


class _OnlyId(msgspec.Struct):
    id: int | None = None


class Position(msgspec.Struct, frozen=True):
    """How far a channel is: ``execution`` is its last, counted under the last incarnation of ``history``."""

    execution: int
    history: list[Era]
    terms: Terms = Terms()

    @property
    def incarnation(self) -> str:
        """The present one."""
        return incarnation(self.history)


class Positions(Protocol):
    """How far channels are, as it is now."""

    def position(self, channel: str) -> Position | None:
        """That of the channel of a name, in any spelling; None if there is none. Never waits."""
        ...


class _Turn:
    """The request whose turn it is, and how far its channel was when it was begun, if there was one."""

    def __init__(self, request: Work | None = None, begun: Position | None = None) -> None:
        self.request, self.begun = request, begun
        self.outcome: events.Outcome | control.ControlMessage | None = None
        self.over = False


class ControlCore:
    """The data cluster's side of one connection, of a broker that may have it.

    What can go wrong: the broker reads slowly (its notices are folded, and nothing is begun that it has no room for),
    it sends what cannot be read (it is told, under the id if that can be), the storage refuses or fails (the broker is
    told, and the next request begun), a channel is dropped, and perhaps another created under its name, while it is
    subscribed to or pulled from (that is gone). Decision 016 has the rules.

    Args:
        broker: its name.
        positions: where channels are looked up.
        most: so many BE subscriptions may wait in notices.
    """

    def __init__(self, broker: str, positions: Positions, most: int = MOST_IDS) -> None:
        self._broker, self._positions = broker, positions
        self._pending = Pending(most)
        self._asked: deque[bytes | str] = deque()
        self._turn: _Turn | None = None
        # Nothing is sent before the welcome. The last message was an answer, not a notice, if ``answered``.
        self._sending, self._answered = True, False
        self._actions: list[Action] = []

    @property
    def idle(self) -> bool:
        """Whether all that was asked is answered: the time to read the next message, which would only wait here."""
        return self._turn is None

    def handle(self, event: events.Event) -> list[Action]:
        """What is to be done, in this order."""
        match event:
            case events.Opened():
                self._actions.append(Send(control.Welcome(self._broker)))
            case events.Received(text):
                self._asked.append(text)
                self._begin()
            case events.Noticed(notice):
                self._pending.add(notice)
            case events.Outcome():
                assert self._turn, "nothing is carried out unasked"
                self._turn.outcome = event
            case events.Writable():
                self._taken()
        self._send()
        actions, self._actions = self._actions, []
        return actions

    def _begin(self) -> None:
        """Begins with the next request, unless it is still the turn of another."""
        if self._turn is None and self._asked:
            self._turn = self._read(self._asked.popleft())
            if self._turn.request:
                self._actions.append(CarryOut(self._turn.request))

    def _read(self, text: bytes | str) -> _Turn:
        """A request; one that the storage has no part in is answered at once."""
        try:
            request = _REQUEST.decode(text)
        except UNDECODABLE as error:
            refused, turn = undecodable(error, "message"), _Turn()
            turn.outcome = control.Error(refused.code, str(refused), _id(text))
            return turn
        if isinstance(request, control.Ping):
            turn = _Turn()
            turn.outcome = control.Pong(request.id)
            return turn
        return _Turn(
            request, None if isinstance(request, control.Detach) else self._positions.position(request.channel)
        )

    def _taken(self) -> None:
        """There is room for another message. What follows an answer is its next part, or the next request."""
        self._sending = False
        if not self._answered or self._turn is None:
            return
        if self._turn.over:
            self._turn = None
            self._begin()
        else:
            self._actions.append(ReadOn())

    def _send(self) -> None:
        """Sends an answer or a notice, in turn when both wait."""
        if self._sending:
            return
        turn, message = self._turn, None
        if turn and turn.outcome and not (self._answered and self._pending):
            message, self._answered = self._answer(turn, turn.outcome), True
        elif message := self._pending.take():
            self._answered = False
        if message:
            self._sending = True
            self._actions.append(Send(message))

    def _answer(self, turn: _Turn, outcome: events.Outcome | control.ControlMessage) -> control.ControlMessage:
        """What is said to a request now."""
        turn.outcome, turn.over = None, True
        match turn.request, outcome:
            case _, control.ControlMessage():
                return outcome
            case control.Attach() as request, events.Subscribed():
                return self._answer_attach(turn, request, outcome)
            case control.Pull() as request, events.PartRead(part):
                return self._answer_pull(turn, request, part)
            case control.Detach(id), events.Unsubscribed(count):
                return control.Detached(id, count)
            case request, events.RequestFailed(problem):
                return control.Error.of(problem, request.id if request else None)
        raise AssertionError(f"{type(outcome).__name__} is no outcome of {turn.request}")

    def _answer_attach(
        self, turn: _Turn, request: control.Attach, outcome: events.Subscribed
    ) -> control.ControlMessage:
        position = self._present(turn, outcome.channel)
        if position is None:
            return _gone_error(request.id, outcome.channel)
        if request.known is not None:
            self._actions.append(CompareHistories(outcome.channel, request.known))
        return control.Attached(
            request.id,
            outcome.bes,
            position.execution,
            position.terms,
            channel=outcome.channel,
            parameters=outcome.parameters,
            history=position.history,
            rates=outcome.rates,
            seconds=outcome.seconds,
        )

    def _answer_pull(self, turn: _Turn, request: control.Pull, part: Pulled) -> control.ControlMessage:
        position = self._present(turn, request.channel)
        if position is None:
            return _gone_error(request.id, request.channel)
        turn.over = not part.more
        return control.Results(
            request.id, part.results, position.incarnation, part.more, part.upto, part.oldest, part.gone
        )

    def _present(self, turn: _Turn, channel: str) -> Position | None:
        """How far a channel is now; None if it is no more the one with which the request was begun."""
        now, begun = self._positions.position(channel), turn.begun
        return now if now and (begun is None or begun.incarnation == now.incarnation) else None


def _gone_error(id: int, channel: str) -> control.Error:
    return control.Error(GoneError.code, f"channel {channel} was dropped, and its subscriptions with it", id)


def _id(text: bytes | str) -> int | None:
    """The id of a message that may be wrong in every other way."""
    try:
        return msgspec.json.decode(text, type=_OnlyId).id
    except UNDECODABLE:
        return None
