"""What is published while the network is in trouble, and the application that finds things in it.

Every subscription of the application is matched again and again, by records that are seeded, and once more by the last
ones, so that having found those means having found everything.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final

import httpx

from tests.e2e.process import WORK_SECONDS
from tests.waiting import until_async

APPLICATION: Final = """
CREATE DATASET Reports (id STRING, kind STRING, level INT, owner STRING) PRIMARY KEY id;
CREATE FEED reports INTO Reports SLICED BY id INTO 2 SLICES;
CREATE CONTINUOUS CHANNEL OfKind(wanted STRING) AS
  SELECT r.id, r.kind, r.level FROM Reports r WHERE r.kind = wanted AND is_new(r);
CREATE CONTINUOUS CHANNEL Mine(me STRING) AS
  SELECT r.id, r.owner FROM Reports r WHERE r.owner = me AND is_new(r);
CREATE REPETITIVE CHANNEL AtLeast(least INT) PERIOD 500 MILLISECONDS AS
  SELECT r.id, r.level FROM Reports r WHERE r.level >= least AND is_new(r);
"""
Interest = tuple[str, dict[str, Any]]
CHANNELS: Final = ("OfKind", "Mine", "AtLeast")
KINDS: Final = ("fire", "flood", "storm", "quake")
HIGHEST: Final = 9
_BATCH: Final = 20
_PAUSE: Final = 0.1
# A publisher tries again after these; anything else is a fault.
_TRY_AGAIN: Final = (429, 503, 507)


def interests(random: Random, name: str) -> list[Interest]:
    """What a subscriber of this name subscribes to: two things that others have, too, and one of its own."""
    return [
        ("OfKind", {"wanted": random.choice(KINDS)}),
        ("Mine", {"me": name}),
        ("AtLeast", {"least": random.choice((0, 5, HIGHEST))}),
    ]


class Publisher:
    """Publishes batch after batch in a task of its own, each until it is accepted, also while there is no server.

    Args:
        data: the URLs of the data clusters, of which one is active.
        prefix: what the ids begin with, so that those of several publishers differ.
        owners: the names that records are about; may grow.
        seconds: how long it waits for an answer, before it tries again.
    """

    def __init__(
        self,
        data: Sequence[str],
        random: Random,
        prefix: str,
        owners: Sequence[str],
        token: str = "demo",
        seconds: float = 30.0,
    ) -> None:
        self._data, self._random, self._prefix, self._owners = data, random, prefix, owners
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.AsyncClient(headers=headers, trust_env=False, verify=False, timeout=seconds)
        self._finished = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.published = 0

    def begin(self) -> None:
        """Publishes from now on."""
        self._task = asyncio.create_task(self._run())

    async def finish(self) -> str:
        """Publishes the last records, of which every subscription matches one; gives what their ids begin with."""
        await self._stop()
        last = f"{self._prefix}-last"
        records = [self._record(f"{last}-{kind}", kind=kind, level=HIGHEST) for kind in KINDS]
        records += [self._record(f"{last}-{owner}", owner=owner) for owner in self._owners]
        await self._send(records)
        return last

    async def close(self) -> None:
        """Publishes no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._client.aclose()

    async def batch(self) -> None:
        """Publishes one batch more."""
        first = self.published
        await self._send([self._record(f"{self._prefix}-{number}") for number in range(first, first + _BATCH)])
        self.published += _BATCH

    async def _stop(self) -> None:
        self._finished.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while not self._finished.is_set():
            await self.batch()
            await asyncio.sleep(_PAUSE)

    def _record(self, id: str, **given: Any) -> dict[str, Any]:
        random = self._random
        drawn = {
            "kind": random.choice(KINDS),
            "level": random.randint(0, HIGHEST),
            "owner": random.choice(self._owners),
        }
        return {"id": id, **drawn, **given}

    async def _send(self, records: Iterable[dict[str, Any]]) -> None:
        content = "\n".join(json.dumps(record) for record in records)
        await until_async(lambda: self._accepted(content), "acceptance of a batch", WORK_SECONDS)

    async def _accepted(self, content: str) -> bool:
        headers = {"Content-Type": "application/x-ndjson"}
        for url in self._data:
            with suppress(httpx.TransportError):
                answer = await self._client.post(f"{url}/feeds/reports", content=content, headers=headers)
                assert answer.status_code in (200, *_TRY_AGAIN), answer.text
                if answer.status_code == 200:
                    return True
        return False
