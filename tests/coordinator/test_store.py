"""What a store has kept it gives back, whichever store it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.coordinator.desk import held
from tocsin.coordinator.store import Store
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.store.records import (
    Broker,
    Change,
    DropHeld,
    Place,
    PutBroker,
    PutCursors,
    PutHeld,
    PutPlace,
    SetBalancing,
)
from tocsin.coordinator.store.sqlite import SqliteStore
from tocsin.errors import BusyError, StorageError

Open = Callable[[], Store]


def _memory(_: Path) -> Open:
    store = MemoryStore()
    return lambda: store


def _sqlite(directory: Path) -> Open:
    return lambda: SqliteStore(directory / "new" / "coordinator.sqlite")


@pytest.fixture(params=[_memory, _sqlite], ids=["memory", "sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the store of this test, each time as another process would."""
    opened = request.param(tmp_path)
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(opened()))


def test_everything_written_is_there_for_the_next_process(open_store: Open) -> None:
    broker = Broker("a", "ws://a", 2.5, (1.0, -2.0), draining=True)
    place = Place("ann", "a", 3, "b", 4)
    changes: list[Change] = [PutBroker(broker), PutPlace(place), PutHeld("ann", held(7, 5)), SetBalancing(False)]
    open_store().write(changes)
    state = open_store().read()
    assert (state.brokers, state.places, state.held, state.balancing) == (
        [broker],
        [place],
        {"ann": {7: held(7, 5)}},
        False,
    )


def test_a_new_store_is_empty_and_balances(open_store: Open) -> None:
    state = open_store().read()
    assert (state.brokers, state.places, state.held, state.balancing) == ([], [], {}, True)


def test_the_key_stays_the_same(open_store: Open) -> None:
    key = open_store().read().key
    assert len(key) >= 32
    assert open_store().read().key == key


def test_the_newest_record_counts(open_store: Open) -> None:
    store = open_store()
    store.write([PutBroker(Broker("a", "ws://old")), PutPlace(Place("ann", "a", 1, None, 1))])
    store.write([PutBroker(Broker("a", "ws://new")), PutPlace(Place("ann", "b", 2, None, 2))])
    assert store.read().brokers == [Broker("a", "ws://new")]
    assert store.read().places == [Place("ann", "b", 2, None, 2)]


def test_cursors_never_go_back(open_store: Open) -> None:
    store = open_store()
    store.write([PutHeld("ann", held(7, 5)), PutCursors("ann", {7: 9}), PutCursors("ann", {7: 8})])
    store.write([PutHeld("ann", held(7, 6))])
    assert store.read().held["ann"][7].cursor == 9


def test_a_cursor_of_what_is_not_held_is_passed_over(open_store: Open) -> None:
    store = open_store()
    store.write([PutHeld("ann", held(7)), DropHeld("ann", 7), PutCursors("ann", {7: 9}), PutCursors("bob", {7: 9})])
    assert store.read().held == {}


def test_giving_up_twice_is_giving_up(open_store: Open) -> None:
    store = open_store()
    store.write([PutHeld("ann", held(7)), PutHeld("ann", held(8)), DropHeld("ann", 7)])
    store.write([DropHeld("ann", 7)])
    assert store.read().held == {"ann": {8: held(8)}}


def test_what_is_read_is_the_readers(open_store: Open) -> None:
    store = open_store()
    store.write([PutHeld("ann", held(7))])
    store.read().held["ann"].clear()
    assert store.read().held["ann"]


def test_a_batch_that_is_refused_leaves_no_trace(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "state")) as store:
        whole = PutPlace(Place("ann"))
        with pytest.raises(StorageError):
            store.write([whole, PutPlace(Place("bob", broker=object()))])  # type: ignore[arg-type]
        assert store.read().places == []
        store.write([whole])
        assert store.read().places == [Place("ann")]


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"not a database" * 100)
    with pytest.raises(StorageError, match="put a backup"):
        SqliteStore(tmp_path / "state")


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "state")) as store:
        store._connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StorageError, match="newer version"):
        SqliteStore(tmp_path / "state")


def test_another_process_that_writes_is_named_as_the_reason(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "state")) as one, closing(SqliteStore(tmp_path / "state")) as other:
        one._connection.execute("BEGIN IMMEDIATE")
        other._connection.execute("PRAGMA busy_timeout = 0")
        with pytest.raises(BusyError, match="another process"):
            other.write([SetBalancing(False)])
