"""A database that is away, or another data cluster's, is told; what was committed is known, whatever broke."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgresql import PostgresqlServer
from tests.waiting import until_async
from tocsin.data.store import RememberedTokens, Store
from tocsin.data.store.postgresql import PostgresqlDatabase
from tocsin.errors import ConflictError, InvalidError, SettingsError, StorageError, SupersededError
from tocsin.schema.definitions import Channel


@pytest.fixture
def url(postgresql: PostgresqlServer) -> str:
    return postgresql.database()


@pytest.fixture
def store(url: str, tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path, url=url) as store:
        yield store


def database(store: Store) -> PostgresqlDatabase:
    assert isinstance(store._database, PostgresqlDatabase)
    return store._database


def names(store: Store) -> list[str]:
    return [broker.name for broker in store.brokers.all()]


def test_after_the_server_was_away_everything_goes_on(store: Store, postgresql: PostgresqlServer) -> None:
    store.claim()
    store.brokers.register("a", "http://a")
    postgresql.stop()
    try:
        with pytest.raises(StorageError, match="nothing was changed; see to the database"):
            store.brokers.register("b", "http://b")
        with pytest.raises(StorageError, match="see to the database"):
            store.brokers.all()
    finally:
        postgresql.start()
    store.brokers.register("c", "http://c")
    assert names(store) == ["a", "c"]


def test_a_second_data_cluster_is_refused_until_the_first_is_gone(store: Store, url: str, tmp_path: Path) -> None:
    store.claim()
    with Store(tmp_path, url=url) as other:
        other.tokens.add("ann", "admin")
        with pytest.raises(ConflictError, match=r"another data cluster works on .*: stop it first"):
            other.claim()
        store.close()
        other.claim()


def test_a_data_cluster_that_was_cut_off_changes_nothing_once_another_has_taken_over(
    store: Store, url: str, tmp_path: Path, postgresql: PostgresqlServer
) -> None:
    store.claim()
    _cut(postgresql, store)
    with Store(tmp_path, url=url) as other:
        other.claim()
        with pytest.raises(StorageError):
            store.brokers.register("a", "http://a")
        with pytest.raises(ConflictError, match="another data cluster works on"):
            store.brokers.register("a", "http://a")
    with pytest.raises(ConflictError, match="meanwhile"):
        store.brokers.register("a", "http://a")
    assert names(store) == []


def test_one_that_is_held_up_is_superseded_by_who_has_seen_it_silent(store: Store, url: str, tmp_path: Path) -> None:
    store.claim()
    with Store(tmp_path, url=url) as other:
        other.claim(store.head.last_seen())
        assert other.term == store.term + 1
        with pytest.raises(StorageError):
            store.brokers.register("a", "http://a")
        with pytest.raises(SupersededError, match="another data cluster works on"):
            store.brokers.register("a", "http://a")
        with pytest.raises(SupersededError, match="has taken over since term 1"):
            store.head.beat(store.term)
        other.brokers.register("b", "http://b")
        assert names(other) == ["b"]


def test_one_that_gives_a_sign_of_life_after_all_is_not_superseded(store: Store, url: str, tmp_path: Path) -> None:
    store.claim()
    with Store(tmp_path, url=url) as other:
        seen = other.head.last_seen()
        store.head.beat(store.term)
        with pytest.raises(ConflictError, match="has given a sign of life, or another has taken over"):
            other.claim(seen)
    store.brokers.register("a", "http://a")
    assert names(store) == ["a"]


def test_of_two_that_have_seen_it_silent_one_takes_over(store: Store, url: str, tmp_path: Path) -> None:
    store.claim()
    with Store(tmp_path, url=url) as second, Store(tmp_path, url=url) as third:
        seen = store.head.last_seen()
        second.claim(seen)
        with pytest.raises(ConflictError, match="another has taken over"):
            third.claim(seen)
        second.brokers.register("a", "http://a")


def test_a_long_change_keeps_no_sign_of_life_waiting(store: Store) -> None:
    store.claim()
    with database(store).changing() as connection:
        connection.execute("INSERT INTO brokers (name, url, registered_at) VALUES ('a', 'http://a', '')")
        store.head.beat(store.term)
        assert store.head.last_seen().beats == 1


def test_it_shares_a_database_with_a_coordinator(store: Store, url: str) -> None:
    from tocsin.coordinator.store.postgresql import PostgresqlStore

    coordinator = PostgresqlStore(url)
    coordinator.claim()
    store.claim()
    coordinator.close()


@pytest.mark.parametrize("done", [True, False])
def test_a_connection_that_breaks_while_a_change_is_committed_is_asked_about(
    store: Store, postgresql: PostgresqlServer, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    with database(store)._writer.connection() as connection:
        execute = connection.execute

    def breaks(statement: str, *values: Any) -> object:
        if statement != "COMMIT":
            return execute(statement, *values)
        if done:
            execute(statement)
        _cut(postgresql, store)
        return execute("SELECT 1")

    monkeypatch.setattr(connection, "execute", breaks)
    if done:
        store.brokers.register("a", "http://a")
    else:
        with pytest.raises(StorageError):
            store.brokers.register("a", "http://a")
    assert names(store) == (["a"] if done else [])


def test_a_text_that_the_database_cannot_have_is_refused_and_nobody_has_it(store: Store) -> None:
    with pytest.raises(InvalidError, match="NUL"):
        store.brokers.remove("a\0b")
    assert names(store) == []


def test_what_was_known_counts_while_the_server_is_away(
    store: Store, channel: Channel, postgresql: PostgresqlServer
) -> None:
    token = store.tokens.add("ann", "admin")
    tokens = RememberedTokens(store.tokens)
    first, second = store.subscriptions.attach(channel, "a", ["[1]", "[2]"])
    store.set_aside.put("OfType", {first: "fails \0", second: "fails too"}, 100.0)
    assert [aside.be for aside in store.set_aside.of("OfType", 1.0)] == [first, second]
    postgresql.stop()
    try:
        assert [aside.reason for aside in store.set_aside.of("OfType", 1.0)] == ["fails \ufffd", "fails too"]
        assert store.set_aside.of("OfType", 101.0) == []
        assert tokens.role_of(token) == ("ann", "admin")
    finally:
        postgresql.start()
    assert tokens.role_of("another") is None


async def test_tokens_are_known_and_forgotten_within_moments(store: Store) -> None:
    tokens = RememberedTokens(store.tokens)
    renewal = asyncio.create_task(tokens.renew())
    token = store.tokens.add("ann", "admin")
    await until_async(lambda: tokens.role_of(token))
    store.tokens.revoke("ann")
    await until_async(lambda: tokens.role_of(token) is None)
    renewal.cancel()


def test_a_database_of_a_newer_version_is_refused(store: Store, url: str, tmp_path: Path) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE tocsin_data.facts SET value = '99' WHERE name = 'schema'")
    with pytest.raises(StorageError, match="newer version"):
        Store(tmp_path, url=url)


def test_ids_rise_above_those_of_any_copy(store: Store) -> None:
    for above in (0, 5_000_000_000, 7):
        with database(store).changing() as connection:
            database(store).raise_ids(connection, "subscriptions", above)
    with database(store).changing() as connection:
        (number,) = connection.execute(
            "INSERT INTO subscriptions (channel, key) VALUES (1, 'k') RETURNING id"
        ).fetchone()
    assert number > 5_000_000_000


def test_a_state_that_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"data\.state must be .*postgresql://user@host/database"):
        Store(tmp_path, url="mysql://here")


def _cut(postgresql: PostgresqlServer, store: Store) -> None:
    """Breaks the connection for changes as an administrator does, and waits until the server has let go of it."""
    opened = database(store)._writer._open
    assert opened is not None
    postgresql.execute(f"SELECT pg_terminate_backend({opened.info.backend_pid}, 10000)")
