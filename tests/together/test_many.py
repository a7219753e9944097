"""However many people there are and however much they hold, no message grows with them, and nothing is sent in one go
that a peer would be cut off for not having read yet."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
import pytest

from tests.broker.world import DataClusterModel, verify
from tests.coordinator.manual import START, planners
from tocsin.balance.policies import placement
from tocsin.broker import actions, events
from tocsin.broker.core import BrokerCore
from tocsin.coordinator import actions as doings
from tocsin.coordinator.core import CoordinatorCore
from tocsin.coordinator.events import BatchStored, Received
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.store.records import Assignment, BrokerRecord, PutAssignment, PutBroker, PutHeld
from tocsin.model.coordination import Hello, Prepare
from tocsin.model.parts import PART_BYTES
from tocsin.model.subscriber import Held, Login, Welcome

LARGEST = 2 * PART_BYTES
"""No message may be larger: far below what any peer takes."""


class Pair:
    """A coordinator and a broker, on links that carry one message at a time and weigh it."""

    def __init__(self, store: MemoryStore) -> None:
        self.store, self.cluster = store, DataClusterModel()
        self.broker = BrokerCore("a", "ws://a", verify)
        self.now, self.link = START, 0
        self.largest = self.waiting = self.most_waiting = 0
        self.sizes: dict[str, list[int]] = {}
        self.sent: deque[bytes] = deque()
        self._todo: deque[actions.Action | doings.Action] = deque()

    def start_coordinator(self) -> None:
        """It begins with what is stored, and the broker connects."""
        self.coordinator = CoordinatorCore(
            self.store.read(), self.now, placement("round-robin"), planners(), CoordinatorLimits()
        )
        self.link += 1
        self.tell(events.Lost("coordinator"))
        self.tell(events.Connected("coordinator"))

    def tell(self, event: events.Event) -> None:
        """Something happens to the broker, and all that follows from it."""
        self._todo.extend(self.broker.handle(self.now, event))
        while self._todo:
            self._do(self._todo.popleft())

    def _do(self, action: actions.Action | doings.Action) -> None:
        match action:
            case actions.ToData(message):
                self._weigh(message)
                self._todo.extend(self.broker.handle(self.now, events.Told(self.cluster.answer("a", message))))  # type: ignore[arg-type]
            case actions.ToCoordinator(message):
                self._weigh(message)
                self._todo.extend(self.coordinator.handle(self.now, Received(self.link, message)))
            case actions.Send(_, frame):
                self.sent.append(frame)
            case doings.StoreBatch(batch, changes):
                self.store.write(changes)
                self._todo.extend(self.coordinator.handle(self.now, BatchStored(batch)))
            case doings.Send(_, message):
                # It is read in turn, when all that was said before it has been.
                self.waiting += (size := self._weigh(message))
                self.most_waiting = max(self.most_waiting, self.waiting)
                self._todo.append(_Read(message, size))  # type: ignore[arg-type]
            case _Read(message, size):
                self.waiting -= size
                self._todo.extend(self.broker.handle(self.now, events.Told(message)))

    def _weigh(self, message: Any) -> int:
        size = len(msgspec.json.encode(message))
        self.sizes.setdefault(type(message).__name__, []).append(size)
        self.largest = max(self.largest, size)
        return size


class _Read(msgspec.Struct):
    message: Any
    size: int


def settled(people: int, subscriptions: int, parameter: str = "") -> MemoryStore:
    """What a coordinator has stored of so many people on one broker."""
    store, number = MemoryStore(), 0
    store.write([PutBroker(BrokerRecord("a", "ws://a"))])
    for person in range(people):
        name = f"subscriber-{person:06}"
        store.write([PutAssignment(Assignment(name, "a", 1, None, 1))])
        for _ in range(subscriptions):
            number += 1
            store.write([PutHeld(name, Held(number, "c", {"v": number, "text": parameter}, 0))])
    return store


def held_by(pair: Pair) -> int:
    return sum(len(stay.subscriptions) for stay in pair.broker.holdings.stays.values())


@pytest.fixture(scope="module")
def city() -> Pair:
    """16,000 people on one broker, which was started after the coordinator."""
    pair = Pair(settled(16_000, 2))
    pair.tell(events.Connected("data"))
    pair.start_coordinator()
    return pair


@pytest.mark.slow
def test_a_broker_that_starts_gets_all_its_subscribers_back(city: Pair) -> None:
    assert len(city.broker.holdings.stays) == 16_000
    assert held_by(city) == 32_000


@pytest.mark.slow
def test_sixteen_thousand_people_come_through_a_restart_of_the_coordinator(city: Pair) -> None:
    city.sizes.clear()
    city.largest = city.most_waiting = 0
    city.start_coordinator()
    assert held_by(city) == 32_000
    assert len(city.sizes[Hello.__name__]) > 1
    assert len(city.sizes[Prepare.__name__]) == 16_000
    assert city.largest < LARGEST
    assert city.most_waiting < 4 << 20
    assert city.waiting == 0


@pytest.mark.slow
def test_all_are_attached_again_in_parts_when_the_data_cluster_is_back(city: Pair) -> None:
    city.sizes.clear()
    city.largest = 0
    city.tell(events.Lost("data"))
    city.tell(events.Connected("data"))
    assert len(city.sizes["Attach"]) > 1
    assert city.largest < LARGEST


def test_a_subscriber_with_all_it_may_have_is_prepared_welcomed_and_moved_in_parts() -> None:
    pair = Pair(settled(3, 1000, "x" * 4000))
    pair.tell(events.Connected("data"))
    pair.start_coordinator()
    assert held_by(pair) == 3000
    assert pair.largest < LARGEST
    pair.tell(events.Opened(1))
    pair.tell(events.Received(1, msgspec.json.encode(Login("token-subscriber-000001"))))
    welcomes = [message for frame in pair.sent if isinstance(message := _read(frame), Welcome)]
    assert [welcome.more for welcome in welcomes] == [True] * (len(welcomes) - 1) + [False]
    assert sum(len(welcome.subscriptions) for welcome in welcomes) == 1000
    assert max(map(len, pair.sent)) < LARGEST
    assert welcomes[-1].newest


def _read(frame: bytes) -> Any:
    try:
        return msgspec.json.decode(frame, type=Welcome)
    except msgspec.ValidationError:
        return None
