"""Two data clusters on one directory and one database: one is active, the other stands by, and nobody notices which.

Real processes, with publications flowing and a subscriber, while the active one is killed, held up and woken again, and
the database is restarted: what was accepted is told once.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import tocsin
from tests.e2e.floods import APPLICATION
from tests.e2e.process import SPARK_SECONDS, DataProcess
from tests.network.network import Network
from tests.ports import free_port
from tests.postgresql import PostgresqlServer
from tests.waiting import until_async
from tocsin.client.subscription import Subscription

pytestmark = pytest.mark.process

PATIENCE: Final = 180.0


class Head(DataProcess):
    """A data cluster that stands by unless it is the only one."""

    def __init__(self, name: str, tmp_path: Path, state: str) -> None:
        port = free_port()
        settings = {"data.state": state, "data.port": port, "data.takeover_seconds": 4}
        super().__init__(tmp_path / "data", tmp_path / f"{name}.log", settings, options=["--standby"])
        self.port = port
        self.client.base_url = httpx.URL(self.url)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def status(self) -> str:
        """What anybody is told of it."""
        with suppress(httpx.TransportError):
            return str(self.client.get("/health", timeout=5).json()["status"])
        return "silent"

    def becomes(self, *states: str) -> None:
        """Waits until it says that it is in one of these states."""
        self.until(lambda: self.status() in states, f"a data cluster that is {' or '.join(states)}", SPARK_SECONDS)


class Publisher:
    """Publishes one report after another to whichever takes it, and the same again until one does."""

    def __init__(self, *heads: Head) -> None:
        self.accepted: list[str] = []
        self._heads, self._leaving = heads, False

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """While entered, publishes; the report at hand is accepted before it is left."""
        task = asyncio.create_task(self._work())
        try:
            yield
        finally:
            self._leaving = True
            await task

    async def takes_more(self, reports: int = 5) -> None:
        """Waits until so many more have been accepted."""
        goal = len(self.accepted) + reports
        await until_async(lambda: len(self.accepted) >= goal, "reports that are accepted", PATIENCE)

    async def _work(self) -> None:
        async with httpx.AsyncClient(
            headers={"Authorization": "Bearer demo"}, trust_env=False, verify=False, timeout=2
        ) as client:
            while not self._leaving:
                report = f"r{len(self.accepted)}"
                await until_async(partial(self._is_taken, client, report), "one that takes it", PATIENCE)
                self.accepted.append(report)

    async def _is_taken(self, client: httpx.AsyncClient, report: str) -> bool:
        record = json.dumps({"id": report, "kind": "flood"}).encode()
        for head in self._heads:
            with suppress(httpx.TransportError):
                headers = {"Content-Type": "application/x-ndjson"}
                answer = await client.post(f"{head.url}/feeds/reports", content=record, headers=headers)
                if answer.is_success:
                    return True
                assert answer.status_code in (429, 503, 507), answer.text
        return False


@pytest.fixture
def heads(tmp_path: Path, postgresql: PostgresqlServer) -> Iterator[tuple[Head, Head]]:
    """An active data cluster with the application, and one that stands by."""
    state = postgresql.database()
    first, second = Head("first", tmp_path, state), Head("second", tmp_path, state)
    try:
        first.spawn()
        first.becomes("ok")
        first.apply(APPLICATION)
        second.spawn()
        second.becomes("standby")
        yield first, second
    finally:
        for head in (first, second):
            if head.running:
                head.process.send_signal(signal.SIGCONT)
            head.close()


async def test_whoever_of_two_is_killed_or_held_up_nothing_is_lost_or_told_twice(
    heads: tuple[Head, Head], tmp_path: Path, postgresql: PostgresqlServer
) -> None:
    first, second = heads
    await _stands_by(second, first)
    publisher = Publisher(*heads)
    async with AsyncExitStack() as stack:
        urls = ",".join(head.url for head in heads)
        network = await stack.enter_async_context(Network(first, tmp_path, "standby", data_urls=urls))
        await network.add("a")
        ann = await stack.enter_async_context(tocsin.connect(network.url, await network.register("ann")))
        floods = await ann.subscribe("OfKind", wanted="flood")
        found: list[str] = []
        async with publisher.at_work():
            await publisher.takes_more()
            await _hears(floods, found, publisher.accepted[-1])

            first.kill()
            await asyncio.to_thread(second.becomes, "ok")
            await publisher.takes_more()
            await _hears(floods, found, publisher.accepted[-1])

            first.spawn()
            await asyncio.to_thread(first.becomes, "standby")
            second.process.send_signal(signal.SIGSTOP)
            await asyncio.to_thread(first.becomes, "ok")
            await publisher.takes_more()
            second.process.send_signal(signal.SIGCONT)
            # It wakes up with publications at its door, and ends by itself.
            assert await asyncio.to_thread(second.process.wait, PATIENCE) == 1
            assert "another data cluster has taken over" in second.tail()
            await publisher.takes_more()
            await _hears(floods, found, publisher.accepted[-1])

            await asyncio.to_thread(postgresql.stop)
            await asyncio.to_thread(postgresql.start)
            await publisher.takes_more()
        await _hears(floods, found, publisher.accepted[-1])
        assert sorted(found) == sorted(publisher.accepted)
        await asyncio.to_thread(first.wait_drained)
        stored = pa.table(
            DeltaTable(str(first.directory / "datasets" / "Reports")).to_pyarrow_dataset().to_table(["id"])
        )
        assert sorted(stored["id"].to_pylist()) == sorted(publisher.accepted)


async def _stands_by(standby: Head, active: Head) -> None:
    answer = await asyncio.to_thread(standby.publish, "reports", b'{"id": "r", "kind": "flood"}')
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert answer.json()["error"]["message"] == f"this data cluster stands by; the active one listens on {active.url}"


async def _hears(subscription: Subscription, found: list[str], last: str) -> None:
    """Takes notes until that of the last report has come."""
    async with asyncio.timeout(PATIENCE):
        while last not in found:
            note = await anext(subscription)
            note.done()
            found += [row["id"] for row in note.rows]
