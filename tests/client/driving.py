"""A program with a subscriber's core, driven by hand: time stands still until a test moves it."""

from __future__ import annotations

from random import Random
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from tocsin.client.core.actions import Action, Open, Send
from tocsin.client.core.core import SubscriberCore
from tocsin.client.core.events import BrokerFound, Event, Lost, Opened, Received, Start, Tick
from tocsin.client.core.events import Subscribe as SubscribeCall
from tocsin.client.rules import Rules
from tocsin.model.subscriber import VERSION, Answer, Held, Note, Notes, Request, Subscribe, Subscribed, Welcome

A = TypeVar("A", bound=Action)
R = TypeVar("R", bound=Request)

FIRES: Final[dict[str, Any]] = {"event": "fire"}


def held(number: int, cursor: int = 0, channel: str = "Fires") -> Held:
    return Held(number, channel, {"n": number}, cursor)


def notes(number: int, *executions: int) -> Notes:
    return Notes([Note(number, execution, Raw(b'[{"x":1}]')) for execution in executions])


class Program:
    """A core, the clock it is told, and what it has wanted done at the last event."""

    def __init__(self, rules: Rules | None = None, seed: int = 0) -> None:
        self.core = SubscriberCore(Random(seed), rules)
        self.now = 100.0
        self.actions: list[Action] = []

    def do(self, event: Event) -> list[Action]:
        self.actions = self.core.handle(self.now, event)
        return self.actions

    def say(self, connection: int, answer: Answer) -> list[Action]:
        """A broker's message comes."""
        return self.do(Received(connection, msgspec.json.encode(answer)))

    def wait(self) -> list[Action]:
        """Lets the time pass until the core wants to be woken."""
        wake = self.core.wake()
        assert wake is not None, "the core waits for nothing"
        self.now = max(self.now, wake)
        return self.do(Tick())

    def serve(self, *subscriptions: Held, url: str = "ws://a") -> int:
        """Starts, and is welcomed by a broker; gives the connection."""
        self.do(Start("token"))
        connection = only(self.do(BrokerFound(url)), Open).connection
        self.do(Opened(connection))
        self.say(connection, welcome(*subscriptions))
        return connection

    def confirm(self, connection: int, subscribe: Subscribe, number: int, cursor: int = 0) -> list[Action]:
        """The broker confirms a subscription under a number."""
        answer = Held(number, subscribe.channel, subscribe.parameters, cursor, subscribe.live)
        return self.say(connection, Subscribed(subscribe.id, answer))


def welcome(*subscriptions: Held, version: int = VERSION, newest: dict[str, int] | None = None) -> Welcome:
    return Welcome("ann", "a", version, list(subscriptions), newest or {})


def every(actions: list[Action], kind: type[A]) -> list[A]:
    return [action for action in actions if isinstance(action, kind)]


def only(actions: list[Action], kind: type[A]) -> A:
    """The one action of its kind."""
    (action,) = every(actions, kind)
    return action


def sent(actions: list[Action], kind: type[R]) -> list[R]:
    """The requests of a kind that were sent, on whichever connection."""
    requests: list[Request] = [msgspec.json.decode(send.text, type=Request) for send in every(actions, Send)]
    return [request for request in requests if isinstance(request, kind)]


def asked(actions: list[Action], kind: type[R]) -> R:
    """The one request of its kind."""
    (request,) = sent(actions, kind)
    return request


def again(program: Program, connection: int, *subscriptions: Held) -> int:
    """Loses the connection and is welcomed on a new one; the actions are those of the welcome."""
    program.do(Lost(connection))
    opened = only(program.wait(), Open).connection
    program.do(Opened(opened))
    program.say(opened, welcome(*subscriptions))
    return opened


def subscribed(program: Program, ref: int = 1, number: int = 7) -> Subscribe:
    """Subscribes, with the broker's confirmation."""
    request = asked(program.do(SubscribeCall(ref, "Fires", FIRES)), Subscribe)
    program.confirm(1, request, number)
    return request
