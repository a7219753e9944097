"""What a store has kept it gives back, whichever store it is."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest
from msgspec.structs import replace

from tests.coordinator.manual import held
from tests.postgresql import PostgresqlServer
from tocsin.coordinator.store import CoordinatorStore
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.store.opening import open_store as open_store_of
from tocsin.coordinator.store.postgresql import PostgresqlStore
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
from tocsin.coordinator.store.sql import SCHEMA
from tocsin.coordinator.store.sqlite import SqliteStore
from tocsin.errors import BusyError, ConflictError, SettingsError, StorageError
from tocsin.model.histories import Cursor
from tocsin.model.subscriber import Held
from tocsin.settings.coordinator import CoordinatorSettings

Open = Callable[[], CoordinatorStore]
OF_THE_FIRST_SCHEMA = (
    "ALTER TABLE held DROP COLUMN incarnation",
    "ALTER TABLE places DROP COLUMN seen",
    "ALTER TABLE places DROP COLUMN registration",
    "ALTER TABLE places DROP COLUMN gone",
    "DELETE FROM facts WHERE name = 'keyring'",
    "INSERT INTO facts VALUES ('key', 'known to every broker')",
)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the store of this test, each time as another process would."""
    yield from _opening(request, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def open_durable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """As ``open_store``, of those that outlive their process."""
    yield from _opening(request, tmp_path)


def _opening(request: pytest.FixtureRequest, directory: Path) -> Iterator[Open]:
    opened = _how(request, directory)
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(opened()))


def _how(request: pytest.FixtureRequest, directory: Path) -> Open:
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    if request.param == "sqlite":
        return lambda: SqliteStore(directory / "new" / "coordinator.sqlite")
    url = request.getfixturevalue("postgresql").database()
    return lambda: PostgresqlStore(url)


def test_everything_written_is_there_for_the_next_process(open_store: Open) -> None:
    broker = BrokerRecord("a", "ws://a", 2.5, (1.0, -2.0), draining=True)
    assignment = Assignment("ann", "a", 3, "b", 4, 5.5, 6)
    changes: list[Change] = [
        PutBroker(broker),
        PutAssignment(assignment),
        PutHeld("ann", held(7, 5)),
        SetBalancing(False),
    ]
    open_store().write(changes)
    state = open_store().read()
    assert (state.brokers, state.assignments, state.held, state.balancing) == (
        [broker],
        [assignment],
        {"ann": {7: held(7, 5)}},
        False,
    )


def test_a_new_store_is_empty_and_balances(open_store: Open) -> None:
    state = open_store().read()
    assert (state.brokers, state.assignments, state.held, state.balancing) == ([], [], {}, True)


def test_the_key_stays_the_same(open_store: Open) -> None:
    keyring = open_store().read().keyring
    assert open_store().read().keyring == keyring


def test_keys_tokens_and_names_can_be_changed_while_another_has_claimed_the_store(open_store: Open) -> None:
    coordinator, program = open_store(), open_store()
    coordinator.claim()
    key = coordinator.keyring().signing
    program.amend(lambda ring: ring.rotate(1.0, 2.0).without("id"), "ann", "bob")
    program.amend(lambda ring: ring, "ann")
    ring = coordinator.keyring()
    assert [each.id for each in ring.keys][:-1] == [key.id]
    assert (ring.withdrawn, ring.names) == (frozenset({"id"}), 3)
    assert sorted(coordinator.unplaced_subscribers()) == [("ann", 0), ("bob", 0)]
    coordinator.write([PutAssignment(Assignment("ann", "a", 1, None, 1))])
    program.amend(lambda ring: ring, "ann")
    assert coordinator.unplaced_subscribers() == [("bob", 0)], "who has a place keeps it"
    assert Assignment("ann", "a", 1, None, 1) in coordinator.read().assignments


def test_a_name_that_was_removed_is_another_persons_when_it_is_registered_again(open_store: Open) -> None:
    coordinator, program = open_store(), open_store()
    coordinator.write([PutAssignment(Assignment("ann", coming=3, registration=1, gone=9.0))])
    assert coordinator.unplaced_subscribers() == []
    program.amend(lambda ring: ring, "ann")
    assert coordinator.unplaced_subscribers() == [("ann", 2)]
    assert program.registration("ann") == 2
    assert coordinator.read().assignments == [Assignment("ann", coming=3, registration=2)]
    program.amend(lambda ring: ring, "ann")
    assert (program.registration("ann"), program.registration("bob")) == (2, 0)
    coordinator.write([DropAssignment("ann"), DropAssignment("ann")])
    assert coordinator.read().assignments == []


def test_a_removed_brokers_tokens_are_worthless_from_the_same_moment(open_store: Open) -> None:
    store = open_store()
    store.write([PutBroker(BrokerRecord("a", "ws://a")), PutBroker(BrokerRecord("b", "ws://b"))])
    store.write([DropBroker("a")])
    assert [broker.name for broker in store.read().brokers] == ["b"]
    assert store.keyring().series == {"a": 1}


def test_a_change_that_fails_changes_nothing(open_store: Open) -> None:
    store = open_store()
    before = store.keyring()
    with pytest.raises(ZeroDivisionError):
        store.amend(lambda ring: 1 // 0, "ann")  # type: ignore[arg-type, return-value]
    assert (store.keyring(), store.unplaced_subscribers()) == (before, [])


def test_a_file_of_the_first_schema_is_opened_with_a_key_that_nobody_knows(tmp_path: Path) -> None:
    file = tmp_path / "coordinator.sqlite"
    SqliteStore(file).close()
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for statement in OF_THE_FIRST_SCHEMA:
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
    with closing(SqliteStore(file)) as store:
        assert len(store.read().keyring.keys) == 1
        facts = dict(store._connection.execute("SELECT name, value FROM facts"))
    assert "known to every broker" not in facts.values()


def test_a_database_of_the_first_schema_is_opened_too(postgresql: PostgresqlServer) -> None:
    url = postgresql.database()
    PostgresqlStore(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path TO tocsin")
        for statement in (*OF_THE_FIRST_SCHEMA, "UPDATE facts SET value = '1' WHERE name = 'schema'"):
            connection.execute(statement)
    with closing(PostgresqlStore(url)) as store:
        assert len(store.read().keyring.keys) == 1
    with psycopg.connect(url) as connection:
        facts: dict[str, str] = dict(connection.execute("SELECT name, value FROM tocsin.facts").fetchall())
    assert facts["schema"] == str(SCHEMA)
    assert "key" not in facts


def test_nobody_else_reads_a_file_of_keys(tmp_path: Path) -> None:
    file = tmp_path / "new" / "coordinator.sqlite"
    with closing(SqliteStore(file)) as store:
        store.amend(lambda ring: ring, "ann")
        modes = {each.name: each.stat().st_mode & 0o777 for each in file.parent.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert file.parent.stat().st_mode & 0o777 == 0o700
    file.chmod(0o644)
    SqliteStore(file).close()
    assert file.stat().st_mode & 0o777 == 0o600, "also one of an earlier version"


def test_the_newest_record_counts(open_store: Open) -> None:
    store = open_store()
    store.write([PutBroker(BrokerRecord("a", "ws://old")), PutAssignment(Assignment("ann", "a", 1, None, 1))])
    store.write([PutBroker(BrokerRecord("a", "ws://new")), PutAssignment(Assignment("ann", "b", 2, None, 2))])
    assert store.read().brokers == [BrokerRecord("a", "ws://new")]
    assert store.read().assignments == [Assignment("ann", "b", 2, None, 2)]


def test_cursors_never_go_back(open_store: Open) -> None:
    store = open_store()
    store.write([PutHeld("ann", held(7, 5)), PutCursors("ann", {7: Cursor(9)}), PutCursors("ann", {7: Cursor(8)})])
    store.write([PutHeld("ann", held(7, 6))])
    assert store.read().held["ann"][7].cursor == 9


def test_under_another_incarnation_a_cursor_counts_anew(open_store: Open) -> None:
    store = open_store()
    store.write([PutHeld("ann", held(7, 9)), PutCursors("ann", {7: Cursor(4, "restored")})])
    store.write([PutCursors("ann", {7: Cursor(3, "restored")})])
    assert store.read().held["ann"][7] == replace(held(7, 4), incarnation="restored")
    store.write([PutHeld("ann", replace(held(7, 2), incarnation="restored again"))])
    assert store.read().held["ann"][7] == replace(held(7, 2), incarnation="restored again")


def test_a_cursor_of_what_is_not_held_is_passed_over(open_store: Open) -> None:
    store = open_store()
    cursors = {7: Cursor(9)}
    store.write([PutHeld("ann", held(7)), DropHeld("ann", 7), PutCursors("ann", cursors), PutCursors("bob", cursors)])
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


def test_a_large_batch_is_kept_as_a_whole(open_store: Open) -> None:
    store = open_store()
    changes: list[Change] = []
    for number in range(500):
        changes += [PutAssignment(Assignment(f"s{number}", "a", 1, None, 1)), PutHeld(f"s{number}", held(number, 1))]
        changes.append(PutCursors(f"s{number}", {number: Cursor(number)}))
    store.write(changes)
    state = store.read()
    assert len(state.assignments) == 500
    assert {name: mine[int(name[1:])].cursor for name, mine in state.held.items()} == {
        f"s{number}": max(number, 1) for number in range(500)
    }


def test_the_key_can_be_had_alone(open_store: Open) -> None:
    assert open_store().keyring() == open_store().read().keyring


def test_the_largest_numbers_and_strange_texts_are_kept(open_store: Open) -> None:
    one = Held(2**63 - 1, "Überall 'und' \"nirgends\"", {"what": "ä\0\n", "list": [1, None, 2.5]}, 2**63 - 1, True)
    broker = BrokerRecord("a", "ws://a?x=%s&y=?")
    open_store().write([PutBroker(broker), PutHeld("ann", one)])
    state = open_store().read()
    assert (state.brokers, state.held) == ([broker], {"ann": {2**63 - 1: one}})


def test_a_batch_that_is_refused_leaves_no_trace(open_durable: Open) -> None:
    store, whole = open_durable(), PutAssignment(Assignment("ann"))
    with pytest.raises(StorageError):
        store.write([whole, PutAssignment(Assignment("bob", broker=object()))])  # type: ignore[arg-type]
    assert store.read().assignments == []
    store.write([whole])
    assert store.read().assignments == [Assignment("ann")]


def test_a_second_coordinator_is_refused_with_what_to_do(open_durable: Open) -> None:
    first, second = open_durable(), open_durable()
    first.claim()
    with pytest.raises(ConflictError, match="stop"):
        second.claim()
    assert second.keyring() == first.keyring(), "tokens can be signed meanwhile"
    first.close()
    second.claim()


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


def test_after_the_database_was_away_the_same_batch_is_kept(postgresql: PostgresqlServer) -> None:
    with closing(PostgresqlStore(postgresql.database())) as store:
        store.claim()
        postgresql.stop()
        try:
            for _ in range(2):
                with pytest.raises(StorageError, match="see to the database"):
                    store.write([PutAssignment(Assignment("ann"))])
        finally:
            postgresql.start()
        store.write([PutAssignment(Assignment("ann"))])
        assert store.read().assignments == [Assignment("ann")]


def test_a_coordinator_that_comes_back_to_anothers_database_must_end(postgresql: PostgresqlServer) -> None:
    url = postgresql.database()
    with closing(PostgresqlStore(url)) as old, closing(PostgresqlStore(url)) as new:
        old.claim()
        _cut(postgresql, old)
        new.claim()
        with pytest.raises(StorageError):
            old.write([SetBalancing(False)])
        with pytest.raises(ConflictError, match="another coordinator works on"):
            old.write([SetBalancing(False)])
        new.close()
        with pytest.raises(ConflictError, match="meanwhile"):
            old.write([SetBalancing(False)])
        assert new.read().balancing


def test_a_broken_connection_that_the_server_still_believes_in_is_ended(postgresql: PostgresqlServer) -> None:
    with closing(PostgresqlStore(postgresql.database())) as store:
        store.claim()
        believed, store._schema._open = store._schema._open, None
        with pytest.raises(BusyError, match="being ended"):
            store.write([SetBalancing(False)])
        _until_kept(store)
        assert believed is not None
        believed.close()


def test_a_database_of_a_newer_version_is_refused(postgresql: PostgresqlServer) -> None:
    url = postgresql.database()
    PostgresqlStore(url).close()
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE tocsin.facts SET value = '99' WHERE name = 'schema'")
    with pytest.raises(StorageError, match="newer version"):
        PostgresqlStore(url)


def test_a_password_is_never_shown() -> None:
    with pytest.raises(StorageError) as raised:
        PostgresqlStore("postgresql://ann:secret@127.0.0.1:1/tocsin?password=secret")
    assert "postgresql://ann@127.0.0.1:1/tocsin" in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_store_that_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="postgresql://user@host/database"):
        open_store_of(CoordinatorSettings(directory=tmp_path, store="mysql://here"))


def _cut(postgresql: PostgresqlServer, store: PostgresqlStore) -> None:
    """Breaks a store's connection as an administrator does, and waits until the server has let go of it."""
    assert store._schema._open is not None
    pid = store._schema._open.info.backend_pid
    postgresql.execute(f"SELECT pg_terminate_backend({pid}, 10000)")


def _until_kept(store: PostgresqlStore) -> None:
    for _ in range(1_000):
        try:
            store.write([SetBalancing(False)])
        except BusyError:
            continue
        return
    raise AssertionError("never kept")


def test_a_directory_that_cannot_be_one_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot be used \(File exists\): see to the disk, or choose another"):
        SqliteStore(tmp_path / "file" / "state")


def test_a_claim_that_the_disk_refuses_is_told_and_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with closing(SqliteStore(tmp_path / "state")) as store:
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", refuse)
            with pytest.raises(StorageError, match=r"No space left on device\): see to the disk"):
                store.claim()
        store.claim()
