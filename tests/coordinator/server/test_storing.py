"""What is not stored is not said: the store away for a while, and then back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.coordinator.server.live import wire
from tests.coordinator.server.running import WAIT_SECONDS, Running, running, settings
from tests.postgresql import PostgresqlServer
from tests.waiting import until_async
from tocsin.coordinator.actions import StoreBatch as Batch
from tocsin.coordinator.server.writer import BatchWriter
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.store.opening import open_store
from tocsin.coordinator.store.records import Assignment, Change, PutAssignment
from tocsin.errors import ConflictError, StorageError
from tocsin.model.coordination import Accepted, Hello, Keep, Kept, Prepare, Prepared
from tocsin.model.subscriber import Held
from tocsin.settings.coordinator import CoordinatorSettings


async def _degraded(coordinator: Running) -> Callable[[], Any]:
    async def looked() -> bool:
        return bool((await coordinator.call("GET", "/health", None)).json() == {"status": "degraded"})

    return looked


async def test_while_the_database_is_away_nothing_is_said_and_then_all_of_it(
    tmp_path: Path, postgresql: PostgresqlServer
) -> None:
    its = settings(tmp_path, store=postgresql.database(), silence_seconds=1_000)
    async with running(its) as coordinator, wire(coordinator, coordinator.token("north", "broker")) as north:
        await north.say(Hello("north", "ws://north"))
        assert isinstance(await north.hear(), Accepted)
        asked = asyncio.create_task(coordinator.call("GET", "/broker", await coordinator.subscriber("ann")))
        prepare = await north.hear()
        assert isinstance(prepare, Prepare)
        await north.say(Prepared("ann", prepare.stay))
        assert (await asked).status_code == 200
        await asyncio.to_thread(postgresql.stop)
        try:
            await north.say(Keep(1, "ann", prepare.stay, Held(7, "c", {}, 3)))
            registering = asyncio.create_task(coordinator.call("POST", "/users", json={"name": "bob"}))
            heard = asyncio.create_task(north.hear())
            await until_async(await _degraded(coordinator), "refusal")
            assert not registering.done()
            assert not heard.done()
        finally:
            await asyncio.to_thread(postgresql.start)
        assert await heard == Kept(1)
        assert (await registering).status_code == 201
        with closing(open_store(its)) as store:
            state = await asyncio.to_thread(store.read)
        assert {each.subscriber for each in state.assignments} == {"ann", "bob"}
        assert state.held == {"ann": {7: Held(7, "c", {}, 3)}}


async def test_a_file_that_another_process_is_changing_is_waited_for(tmp_path: Path) -> None:
    its = settings(tmp_path)
    async with running(its) as coordinator:
        with closing(sqlite3.connect(tmp_path / "coordinator.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            registering = asyncio.create_task(coordinator.call("POST", "/users", json={"name": "bob"}))
            await until_async(await _degraded(coordinator), "refusal")
            assert not registering.done()
            other.execute("ROLLBACK")
            assert (await registering).status_code == 201
        assert (await coordinator.call("GET", "/health", None)).json() == {"status": "ok"}


async def test_a_coordinator_whose_database_was_taken_over_ends(tmp_path: Path, postgresql: PostgresqlServer) -> None:
    its = settings(tmp_path, store=postgresql.database())
    with pytest.raises(ConflictError, match="another coordinator"):
        await _lose_database(its, postgresql)


async def _lose_database(its: CoordinatorSettings, postgresql: PostgresqlServer) -> None:
    async with running(its) as coordinator:
        await asyncio.to_thread(postgresql.stop)
        await asyncio.to_thread(postgresql.start)
        with closing(open_store(its)) as other:
            other.claim()
            asked = asyncio.create_task(coordinator.call("POST", "/users", json={"name": "bob"}))
            await asyncio.wait([coordinator.task], timeout=WAIT_SECONDS)
            asked.cancel()
            assert other.read().assignments == []


class _Choosy(MemoryStore):
    """Refuses the first few writes, and notes what it was asked to keep in one go."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals, self.asked = refusals, list[int]()

    def write(self, changes: Any) -> None:
        self.asked.append(len(changes))
        if self.refusals:
            self.refusals -= 1
            raise StorageError("the disk is full")
        super().write(changes)


def _batch(number: int) -> Batch:
    changes: tuple[Change, ...] = (PutAssignment(Assignment(f"s{number}")),)
    return Batch(number, changes)


async def test_what_waits_is_written_together_and_in_order() -> None:
    store, stored = _Choosy(1), list[int]()
    writer = BatchWriter(store, stored.append)
    for number in (1, 2, 3):
        writer.add(_batch(number))
    writing = asyncio.create_task(writer.run())
    await until_async(lambda: stored == [3], "batches")
    writer.add(_batch(4))
    writer.end()
    await writing
    assert (stored, store.asked) == ([3, 4], [3, 3, 1])
    assert [each.subscriber for each in store.read().assignments] == ["s1", "s2", "s3", "s4"]


async def test_when_the_server_stops_a_store_that_refuses_is_asked_no_more() -> None:
    store, stored = _Choosy(1_000), list[int]()
    writer = BatchWriter(store, stored.append)
    writer.add(_batch(1))
    writing = asyncio.create_task(writer.run())
    await until_async(lambda: writer.refused, "refusal")
    writer.end()
    await writing
    assert stored == []
