"""A coordinator with its store, driven by hand: what it stores is stored at once, what it asks is decided at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec.structs import replace

from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.policies import placement, planner
from tocsin.coordinator.actions import Action, Decide, Reply, Send
from tocsin.coordinator.actions import StoreBatch as StoreAction
from tocsin.coordinator.answers import Registered
from tocsin.coordinator.balancing import Planners
from tocsin.coordinator.core import CoordinatorCore
from tocsin.coordinator.events import BatchStored, Event, Received, RegisterUser, RequestBroker, SignOfLife, Tick
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.store import CoordinatorStore
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.store.records import Assignment
from tocsin.model.coordination import Arrived, FromBroker, FromCoordinator, Hello, Keep, Prepare, Prepared, StayId
from tocsin.model.subscriber import Held

T = TypeVar("T")
START = 1_000.0


def planners(**thresholds: Any) -> Planners:
    """Planners that balance any load, without waiting."""
    settings: dict[str, Any] = {"cool_down": 0, "settle": 0} | thresholds
    return Planners(planner("ldm"), planner("gsh"), Thresholds(**settings))


def held(subscription: int, cursor: int = 0) -> Held:
    """A subscription to some channel."""
    return Held(subscription, "Floods", {"radius": subscription}, cursor)


@dataclass
class ManualCoordinator:
    """Time stands still until :meth:`wait`. Brokers that are connected stay within hearing, unless they are muted."""

    limits: CoordinatorLimits = field(default_factory=CoordinatorLimits)
    planners: Planners = field(default_factory=planners)
    placement: str = "round-robin"
    store: CoordinatorStore = field(default_factory=MemoryStore)
    now: float = START
    handles: int = 0
    links: dict[str, int] = field(default_factory=dict)
    muted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """The coordinator begins with what is stored; nobody is connected."""
        self.links.clear()
        state = self.store.read()
        self.core = CoordinatorCore(state, self.now, placement(self.placement), self.planners, self.limits)

    def handle(self, event: Event) -> list[Action]:
        """What comes of an event in the end."""
        done: list[Action] = []
        todo = self.core.handle(self.now, event)
        while todo:
            action = todo.pop(0)
            if isinstance(action, StoreAction):
                self.store.write(action.changes)
                todo += self.core.handle(self.now, BatchStored(action.batch))
            elif isinstance(action, Decide):
                todo += self.core.handle(self.now, action.run())
            else:
                done.append(action)
        return done

    def wait(self, seconds: float) -> list[Action]:
        """What comes of time passing."""
        end, done = self.now + seconds, list[Action]()
        while (wake := self.core.wake()) <= end:
            self.now = max(wake, self.now)
            for name, link in self.links.items():
                if name not in self.muted:
                    done += self.handle(SignOfLife(link))
            done += self.handle(Tick())
        self.now = end
        return done

    def hello(
        self, name: str, serving: list[StayId] | None = None, prepared: list[StayId] | None = None
    ) -> list[Action]:
        """A broker connects, on a link of its own."""
        self.handles += 1
        self.links[name] = self.handles
        return self.say(name, Hello(name, f"ws://{name}", serving or [], prepared or []))

    def say(self, broker: str, message: FromBroker) -> list[Action]:
        """A broker says something."""
        return self.handle(Received(self.links[broker], message))

    def token(self, name: str) -> str:
        """Registers a subscriber."""
        answer = self.answer(self.handle(RegisterUser(0, name)))
        assert isinstance(answer, Registered)
        return answer.token

    def request(self, name: str) -> list[Action]:
        """A subscriber asks for its broker; the handle is 7."""
        return self.handle(RequestBroker(7, self.token(name)))

    def settle(self, name: str, *subscriptions: int) -> Assignment:
        """A subscriber is placed, arrives and subscribes."""
        broker, prepare = self.sole(self.request(name), Prepare)
        self.say(broker, Prepared(name, prepare.stay))
        self.say(broker, Arrived(name, prepare.stay))
        for subscription in subscriptions:
            self.say(broker, Keep(0, name, prepare.stay, held(subscription)))
        return self.assignment(name)

    def assignment(self, name: str) -> Assignment:
        """Where a subscriber is, as it is stored; when it was seen is left out."""
        return replace(self.record(name), seen=0.0)

    def record(self, name: str) -> Assignment:
        """All that is stored of a subscriber."""
        return next(each for each in self.store.read().assignments if each.subscriber == name)

    def sent(self, actions: list[Action], kind: type[T]) -> list[tuple[str, T]]:
        """The messages of one kind, with the broker each goes to."""
        names = {link: name for name, link in self.links.items()}
        return [
            (names[action.link], action.message)
            for action in actions
            if isinstance(action, Send) and isinstance(action.message, kind)
        ]

    def sole(self, actions: list[Action], kind: type[T]) -> tuple[str, T]:
        """The only message of a kind."""
        (one,) = self.sent(actions, kind)
        return one

    def messages(self, actions: list[Action]) -> list[FromCoordinator]:
        """All messages."""
        return [action.message for action in actions if isinstance(action, Send)]

    def answer(self, actions: list[Action]) -> object:
        """The only reply."""
        (answer,) = [action.answer for action in actions if isinstance(action, Reply)]
        return answer
