"""The real server on a real socket, in the test's own event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from tocsin.coordinator.server.serve import run
from tocsin.coordinator.store.opening import open_store
from tocsin.coordinator.tokens import Claims, Role, SigningKey
from tocsin.settings.coordinator import CoordinatorSettings

# Generous, for the machine may be shared: reaching it means that something is wrong, not slow.
WAIT_SECONDS: Final = 30.0
OPERATOR: Final = "olga"


@dataclass
class Running:
    """A coordinator that listens. ``key`` is what its tokens are signed with."""

    url: str
    key: SigningKey
    http: httpx.AsyncClient

    def token(self, name: str, role: Role, expires: float = 1e11) -> str:
        """A token as it signs them."""
        return self.key.sign(Claims(name, role, expires))

    async def call(self, method: str, path: str, token: str | None = "", **options: Any) -> httpx.Response:
        """A call; with an operator's token unless another is given, or None for none."""
        token = self.token(OPERATOR, "operator") if token == "" else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return await self.http.request(method, f"{self.url}{path}", headers=headers, **options)

    async def status(self) -> dict[str, Any]:
        """How things stand."""
        answer = await self.call("GET", "/status")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def subscriber(self, name: str) -> str:
        """Registers a subscriber, and gives its token."""
        answer = await self.call("POST", "/users", json={"name": name})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])


@dataclass
class RunningHere(Running):
    """One in the test's own process. ``task`` ends when it does."""

    task: asyncio.Task[None]


def settings(directory: Path, **more: Any) -> CoordinatorSettings:
    """A coordinator's settings for a test: any free port, and plans without waiting."""
    quick = {
        "interval_seconds": 0.2,
        "cool_down_seconds": 0,
        "settle_seconds": 0,
        "grace_seconds": 0.5,
        "placement": "round-robin",
    }
    return CoordinatorSettings(directory=directory, port=0, **{**quick, **more})


@asynccontextmanager
async def running(its: CoordinatorSettings, *, demo: bool = False) -> AsyncIterator[RunningHere]:
    """A coordinator, stopped by a signal in the end unless it has ended already; how it ended is raised."""
    store = await asyncio.to_thread(open_store, its)
    key = store.keyring().signing
    store.close()
    listens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(run(its, demo=demo, listening=listens.set_result))
    either: list[asyncio.Future[Any]] = [task, listens]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    async with httpx.AsyncClient(timeout=WAIT_SECONDS, trust_env=False, verify=False) as http:
        try:
            yield RunningHere(listens.result(), key, http, task)
        finally:
            if not task.done():
                signal.raise_signal(signal.SIGTERM)
            await task
