"""A world for brokers' cores: a data cluster, a coordinator and subscribers, on links that deliver when told to.

The models are as small as the protocol allows. Everything that is on its way lies in a queue, so that a schedule is
a list of choices: which queue moves on, what is executed, what breaks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from tocsin.broker import actions, events
from tocsin.broker.core import Broker
from tocsin.broker.limits import Limits
from tocsin.errors import UnauthorizedError
from tocsin.model import control, coordination, subscriber
from tocsin.model.messages import Result
from tocsin.model.subscriber import Held

NOTES = msgspec.json.Decoder(subscriber.Answer)


def verify(token: str) -> str:
    """A token is its subscriber's name after ``token-``."""
    if not token.startswith("token-"):
        raise UnauthorizedError("the token is not known; register first")
    return token.removeprefix("token-")


@dataclass
class DataCluster:
    """Executes channels when told to, and remembers every result."""

    execution: dict[str, int] = field(default_factory=dict)
    bes: dict[tuple[str, str], int] = field(default_factory=dict)
    channels: dict[int, str] = field(default_factory=dict)
    attached: dict[int, set[str]] = field(default_factory=dict)
    found: dict[int, list[int]] = field(default_factory=dict)

    def answer(self, broker: str, request: control.Request) -> control.Message:
        match request:
            case control.Attach(id, channel, parameters):
                bes = [self.be(channel, one) for one in parameters]
                for be in bes:
                    self.attached[be].add(broker)
                return control.Attached(id, bes, self.execution.get(channel, 0))
            case control.Detach(id, bes):
                for be in bes:
                    self.attached[be].discard(broker)
                return control.Detached(id, len(bes))
            case control.Pull(id, channel, first, last, wanted):
                return control.Results(id, self.results(channel, first, last, wanted or []))
            case control.Ping(id):
                return control.Pong(id)

    def be(self, channel: str, parameters: dict[str, Any]) -> int:
        key = (channel, repr(sorted(parameters.items())))
        if key not in self.bes:
            be = self.bes[key] = len(self.bes) + 1
            self.channels[be], self.attached[be], self.found[be] = channel, set(), []
        return self.bes[key]

    def results(self, channel: str, first: int, last: int, wanted: list[int]) -> list[Result]:
        pairs = [
            (execution, be)
            for be in wanted
            if self.channels[be] == channel
            for execution in self.found[be]
            if first <= execution <= last
        ]
        return [result(be, execution) for execution, be in sorted(pairs)]

    def execute(self, channel: str, chosen: Callable[[int], bool]) -> dict[str, control.Executed]:
        """Runs a channel once; what each broker is told."""
        number = self.execution[channel] = self.execution.get(channel, 0) + 1
        told: dict[str, list[int]] = {}
        for be, brokers in self.attached.items():
            if self.channels[be] == channel and brokers and chosen(be):
                self.found[be].append(number)
                for broker in sorted(brokers):
                    told.setdefault(broker, []).append(be)
        return {broker: control.Executed(channel, number, bes) for broker, bes in told.items()}


def result(be: int, execution: int) -> Result:
    payload = b'[{"be":%d,"n":%d}]' % (be, execution)
    return Result(execution, be, 1, len(payload), Raw(payload))


class Bench:
    """One broker's core with a clock, and what it did last: for specifications of single rules."""

    def __init__(self, limits: Limits | None = None, **options: Any) -> None:
        self.core = Broker("a", "ws://a", verify, limits=limits, **options)
        self.now = 0.0
        self.cluster = DataCluster()
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
                more = self.tell(self.cluster.answer("a", action.message))
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
        did = self.say(session, subscriber.Login(f"token-{name}", cursors=cursors or {}))
        return did + self.answer_data(did)

    def execute(self, channel: str = "c", chosen: Callable[[int], bool] = lambda be: True) -> list[actions.Action]:
        """Runs a channel, tells the broker, and answers its pull."""
        for notice in self.cluster.execute(channel, chosen).values():
            self.answer_data(self.tell(notice))
        return self.did

    def line(self, value: int = 1, cursor: int = 0, channel: str = "c", live: bool = False) -> Held:
        parameters = {"v": value}
        return Held(self.cluster.be(channel, parameters), channel, parameters, cursor, live)


def sent(did: list[actions.Action], session: int) -> list[subscriber.Answer]:
    """The messages a session got."""
    return [NOTES.decode(one.frame) for one in did if isinstance(one, actions.Send) and one.session == session]


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
