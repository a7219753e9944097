"""Threads that share a connection to PostgreSQL, as far as that can be told without a server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tocsin.errors import InvalidError, StorageError
from tocsin.postgresql import PostgresqlSchema


class Connection:
    """Takes every statement; what happens as it is closed is the test's."""

    def __init__(self, closing: Callable[[], None]) -> None:
        self.open, self._closing = True, closing

    def execute(self, *_: object) -> None:
        pass

    def close(self) -> None:
        self._closing()
        self.open = False


@pytest.fixture
def schema(monkeypatch: pytest.MonkeyPatch) -> PostgresqlSchema:
    monkeypatch.setattr(psycopg, "connect", lambda *_, **__: Connection(lambda: None))
    return PostgresqlSchema("postgresql://ann:secret@host/db", "a", "data cluster", 2)


def test_a_connection_that_is_given_up_is_nobodys_any_more(
    schema: PostgresqlSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread whose turn comes while it is being closed has a new one."""
    asked, states = threading.Event(), list[bool]()

    def next_turn() -> None:
        asked.set()
        with schema.connection() as connection:
            states.append(vars(connection)["open"])

    with ThreadPoolExecutor(1) as other:

        def closing() -> None:
            turn = other.submit(next_turn)
            assert asked.wait(30)
            # If it is let in before this is over, that takes no time.
            with pytest.raises(TimeoutError):
                turn.result(0.1)

        connections = iter([Connection(closing), Connection(lambda: None)])
        monkeypatch.setattr(psycopg, "connect", lambda *_, **__: next(connections))
        refused = pytest.raises(StorageError, match=r"^postgresql://ann@host/db: gone; nothing was changed")
        with refused, schema.connection():
            raise psycopg.OperationalError("gone")
    assert states == [True]


def test_a_value_that_a_database_cannot_have_does_not_cost_the_connection(schema: PostgresqlSchema) -> None:
    with schema.connection() as first:
        pass
    with pytest.raises(InvalidError, match=r"^no such thing; nothing was changed$"), schema.connection():
        raise psycopg.DataError("no such\nthing")
    with schema.connection() as second:
        assert second is first


@pytest.mark.parametrize("error", [psycopg.OperationalError, psycopg.errors.AdminShutdown])
def test_what_goes_wrong_otherwise_costs_it_and_the_next_call_connects_anew(
    schema: PostgresqlSchema, error: type[psycopg.Error]
) -> None:
    with pytest.raises(StorageError), schema.connection() as first:
        raise error("gone")
    with schema.connection() as second:
        assert second is not first
