"""A store that has fallen behind: what waits for it is bounded, and whoever asks for more is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.coordinator.manual import START, ManualCoordinator, held
from tocsin.coordinator.actions import Action, Reply, Send
from tocsin.coordinator.actions import StoreBatch as Batch
from tocsin.coordinator.answers import NetworkStatus, Registered
from tocsin.coordinator.events import AskStatus, BatchStored, Event, Received, RegisterUser
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.store.merging import MergedChanges
from tocsin.coordinator.store.records import (
    Assignment,
    BrokerRecord,
    Change,
    DropAssignment,
    DropBroker,
    DropHeld,
    PutAssignment,
    PutBroker,
    PutCursors,
    PutHeld,
    SetBalancing,
)
from tocsin.errors import BusyError
from tocsin.model.coordination import Keep, Kept, Progress, Refused
from tocsin.model.histories import Cursor
from tocsin.model.subscriber import Held


class _Away:
    """A coordinator whose store has gone away: batches pile up."""

    def __init__(self, unstored: int) -> None:
        self.coordinator = ManualCoordinator(limits=CoordinatorLimits(unstored=unstored))
        self.coordinator.hello("a")
        self.stay = self.coordinator.settle("ann", 7).stay
        self.batches: list[Batch] = []

    def handle(self, event: Event) -> list[Action]:
        actions = self.coordinator.core.handle(self.coordinator.now, event)
        self.batches += [action for action in actions if isinstance(action, Batch)]
        return [action for action in actions if not isinstance(action, Batch)]

    def keep(self, ref: int, subscription: int) -> list[Action]:
        return self.handle(Received(self.coordinator.links["a"], Keep(ref, "ann", self.stay, held(subscription))))

    def back(self) -> list[Action]:
        return self.handle(BatchStored(self.batches[-1].batch))


def test_what_would_make_more_is_refused_as_busy_until_the_store_is_back() -> None:
    away = _Away(unstored=3)
    for number in range(4):
        assert away.handle(RegisterUser(number, f"s{number}")) == []
    (refused,) = away.handle(RegisterUser(9, "bob"))
    assert isinstance(refused, Reply)
    assert isinstance(refused.answer, BusyError)
    (told,) = away.keep(5, 8)
    assert isinstance(told, Send)
    assert isinstance(told.message, Refused)
    assert (told.message.code, told.message.details) == ("busy", {"ref": 5})
    answers = [action.answer for action in away.back() if isinstance(action, Reply)]
    assert [type(answer) for answer in answers] == [Registered] * 4
    assert away.handle(RegisterUser(10, "bob")) == []
    assert away.keep(6, 8) == []
    assert [action.message for action in away.back() if isinstance(action, Send)] == [Kept(6)]


def test_cursors_are_taken_however_long_the_store_is_away() -> None:
    away = _Away(unstored=3)
    for cursor in range(1, 100):
        away.handle(Received(away.coordinator.links["a"], Progress({"ann": {7: cursor}})))
    assert away.handle(RegisterUser(1, "bob")) == []
    waiting = MergedChanges()
    for batch in away.batches:
        waiting.add(batch.changes)
    assert waiting.changes() == [PutAssignment(Assignment("bob", seen=START)), PutCursors("ann", {7: Cursor(99)})]


def test_how_things_stand_is_said_without_the_store() -> None:
    away = _Away(unstored=0)
    away.handle(RegisterUser(1, "bob"))
    (said,) = away.handle(AskStatus(2))
    assert isinstance(said, Reply)
    assert isinstance(said.answer, NetworkStatus)
    assert said.answer.subscribers == 2


_names, _numbers = st.sampled_from(["ann", "bob"]), st.integers(1, 2)
_incarnations = st.sampled_from(["", "new"])


def _put_held(name: str, number: int, cursor: int, incarnation: str) -> PutHeld:
    return PutHeld(name, replace(held(number, cursor), incarnation=incarnation))


_changes = st.one_of(
    st.builds(PutBroker, st.builds(BrokerRecord, _names, st.just("ws://a"), draining=st.booleans())),
    st.builds(DropBroker, _names),
    st.builds(PutAssignment, st.builds(Assignment, _names, stay=_numbers)),
    st.builds(DropAssignment, _names),
    st.builds(_put_held, _names, _numbers, st.integers(0, 9), _incarnations),
    st.builds(DropHeld, _names, _numbers),
    st.builds(PutCursors, _names, st.dictionaries(_numbers, st.builds(Cursor, st.integers(0, 9), _incarnations))),
    st.builds(SetBalancing, st.booleans()),
)


def _later(held: Held, cursor: Cursor) -> bool:
    """Whether it is further, or of the incarnation after."""
    return (cursor.incarnation == "new", cursor.execution) > (held.incarnation == "new", held.cursor)


def _honest(changes: list[Change]) -> list[Change]:
    """As a coordinator makes them: cursors of what is held, only forward, and never of an incarnation that was left."""
    store, made = MemoryStore(), list[Change]()
    for change in changes:
        if isinstance(change, PutCursors):
            mine = store.read().held.get(change.subscriber, {})
            change = PutCursors(
                change.subscriber,
                {key: cursor for key, cursor in change.cursors.items() if key in mine and _later(mine[key], cursor)},
            )
        elif isinstance(change, PutHeld):
            before = store.read().held.get(change.subscriber, {}).get(change.held.subscription)
            incarnation = max(change.held.incarnation, before.incarnation if before else "", key=len)
            change = PutHeld(change.subscriber, replace(change.held, incarnation=incarnation))
        store.write([change])
        made.append(change)
    return made


@given(st.lists(_changes), st.lists(_changes))
def test_merged_changes_come_to_the_same(before: list[Change], after: list[Change]) -> None:
    made, merged = _honest([*before, *after]), MergedChanges()
    merged.add(made[len(before) :])
    one, other = MemoryStore(), MemoryStore()
    one.write(made)
    other.write([*made[: len(before)], *merged.changes()])
    assert one.read().held == other.read().held
    assert sorted(map(str, one.read().assignments)) == sorted(map(str, other.read().assignments))
    assert sorted(map(str, one.read().brokers)) == sorted(map(str, other.read().brokers))
    assert one.read().balancing == other.read().balancing
    assert len(merged) <= 4 + 4 + 2 * 4 + 2 + 1
