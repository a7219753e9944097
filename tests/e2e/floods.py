"""Reports of one kind: an application, records published to it, and what subscribers and a restart make of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from tests.e2e.process import DataProcess
from tocsin.client.subscription import Subscription

APPLICATION: Final = """
CREATE DATASET Reports (id STRING, kind STRING) PRIMARY KEY id;
CREATE FEED reports INTO Reports;
CREATE CONTINUOUS CHANNEL OfKind(wanted STRING) AS SELECT r.id FROM Reports r WHERE r.kind = wanted AND is_new(r);
"""
PATIENCE: Final = 120.0


async def publish(data: DataProcess, *ids: str, kind: str = "flood") -> None:
    """Reports, each published by itself, so that each is found by an execution of its own."""
    for one in ids:
        record = json.dumps({"id": one, "kind": kind}).encode()
        answer = await asyncio.to_thread(data.publish, "reports", record)
        assert answer.status_code == 200, answer.text
        await asyncio.to_thread(data.wait_drained)


async def gets(subscription: Subscription, *ids: str) -> None:
    """The next notes have these reports, in this order, and nothing else."""
    found: list[str] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < len(ids):
            note = await anext(subscription)
            note.done()
            found += [row["id"] for row in note.rows]
    assert found == list(ids)


async def taken(subscription: Subscription, last: str) -> list[str]:
    """The reports of the next notes, up to the last."""
    found: list[str] = []
    async with asyncio.timeout(PATIENCE):
        while last not in found:
            note = await anext(subscription)
            note.done()
            found += [row["id"] for row in note.rows]
    return found


async def changed(data: DataProcess, change: Callable[[], Any]) -> None:
    """The data cluster ends, something is done to its directory, and it starts again."""
    await asyncio.to_thread(data.terminate)
    await asyncio.to_thread(data.wait_alone)
    await asyncio.to_thread(change)
    await asyncio.to_thread(data.start)
    await asyncio.to_thread(data.wait_ready)
