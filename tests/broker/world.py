"""A world for brokers' cores: a data cluster, a coordinator and subscribers, on links that deliver when told to.

The models are as small as the protocol allows. Everything that is on its way lies in a queue, so that a schedule is
a list of choices: which queue moves on, what is executed, what breaks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from tocsin.broker import actions, events
from tocsin.broker.core import BrokerCore
from tocsin.broker.holdings import Bearer
from tocsin.broker.limits import BrokerLimits
from tocsin.errors import UnauthorizedError
from tocsin.model import coordination, subscriber
from tocsin.model.subscriber import Held
from tocsin.simulate.cluster import DataClusterModel, result

__all__ = ["NOTES", "Bench", "DataClusterModel", "closed", "notes", "result", "sent", "told", "verify"]

NOTES = msgspec.json.Decoder(subscriber.Answer)


def verify(token: str) -> Bearer:
    """A token is its subscriber's name after ``token-``, after a ``#`` the registration of that name, and after a ``+``
    each of its groups."""
    if not token.startswith("token-"):
        raise UnauthorizedError("the token is not known; register first")
    name, *groups = token.removeprefix("token-").split("+")
    name, _, registration = name.partition("#")
    return Bearer(name, tuple(groups), token, registration=int(registration or 0))


class Bench:
    """One broker's core with a clock, and what it did last: for specifications of single rules."""

    def __init__(self, limits: BrokerLimits | None = None, **options: Any) -> None:
        self.core = BrokerCore("a", "ws://a", verify, limits=limits, **options)
        self.now = 0.0
        self.cluster = DataClusterModel(now=lambda: self.now)
        self.did: list[actions.Action] = []

    def do(self, event: events.Event) -> list[actions.Action]:
        self.did = self.core.handle(self.now, event)
        return self.did

    def connect(self) -> None:
        self.do(events.Connected("data"))
        self.do(events.Connected("coordinator"))

    def tell(self, message: Any) -> list[actions.Action]:
        return self.do(events.Told(message))

    def wait(self, seconds: float) -> list[actions.Action]:
        """Lets time pass, with every tick the core asks for."""
        end, did = self.now + seconds, []
        while (wake := self.core.wake()) is not None and wake <= end:
            self.now = max(self.now, wake)
            did += self.do(events.Tick())
        self.now = end
        self.did = did + self.do(events.Tick())
        return self.did

    def say(self, session: int, message: subscriber.Request) -> list[actions.Action]:
        return self.do(events.Received(session, msgspec.json.encode(message)))

    def answer_data(self, did: list[actions.Action] | None = None) -> list[actions.Action]:
        """Answers all requests to the data cluster, and those that follow; everything done meanwhile."""
        waiting = deque(self.did if did is None else did)
        everything: list[actions.Action] = []
        while waiting:
            action = waiting.popleft()
            if isinstance(action, actions.ToData):
                for part in self.cluster.answers("a", action.message):
                    more = self.tell(part)
                    everything += more
                    waiting += more
        self.did = everything
        return everything

    def serve(self, name: str, session: int, *held: Held, stay: int = 1, cursors: dict[int, int] | None = None) -> None:
        """Prepares a subscriber's stay and logs it in."""
        self.tell(coordination.Prepare(name, stay, list(held)))
        self.answer_data()
        self.login(name, session, cursors)

    def login(self, name: str, session: int, cursors: dict[int, int] | None = None) -> list[actions.Action]:
        self.do(events.Opened(session))
        did = self.say(session, subscriber.Login(f"token-{name}", cursors={**(cursors or {})}))
        return did + self.answer_data(did)

    def execute(self, channel: str = "c", chosen: Callable[[int], bool] = lambda be: True) -> list[actions.Action]:
        """Runs a channel, tells the broker, and answers its pull."""
        for notice in self.cluster.execute(channel, chosen).values():
            self.answer_data(self.tell(notice))
        return self.did

    def held(self, value: int = 1, cursor: int = 0, channel: str = "c", live: bool = False) -> Held:
        parameters = {"v": value}
        return Held(self.cluster.be(channel, parameters), channel, parameters, cursor, live)


def sent(did: list[actions.Action], session: int) -> list[subscriber.Answer]:
    """The messages a session got."""
    frames = [
        one.frame
        for one in did
        if (isinstance(one, actions.Send) and one.session == session)
        or (isinstance(one, actions.SendMany) and session in one.sessions)
    ]
    return [NOTES.decode(frame) for frame in frames]


def notes(did: list[actions.Action], session: int) -> list[tuple[int, int]]:
    """The notifications a session got: subscription and execution."""
    found = [message for message in sent(did, session) if isinstance(message, subscriber.Notes)]
    return [(note.s, note.e) for message in found for note in message.notes]


def told(did: list[actions.Action], kind: type[Any]) -> list[Any]:
    """The messages of a kind to data cluster or coordinator."""
    outward = [one.message for one in did if isinstance(one, actions.ToData | actions.ToCoordinator)]
    return [message for message in outward if isinstance(message, kind)]


def closed(did: list[actions.Action]) -> list[tuple[int, int]]:
    """Sessions that were closed, with their codes."""
    return [(one.session, one.code) for one in did if isinstance(one, actions.Close)]
