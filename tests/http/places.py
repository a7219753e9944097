"""The three servers, each as it runs, on a port of its own."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.broker.server.world import World
from tests.coordinator.server.running import running as running_coordinator
from tests.coordinator.server.running import settings as coordinator_settings
from tests.data.server.memory import MemoryCluster
from tests.data.server.running import running as running_data
from tocsin.settings import DataSettings, Settings

Place = Callable[..., AbstractAsyncContextManager[int]]


@asynccontextmanager
async def data(directory: Path, **given: Any) -> AsyncIterator[int]:
    settings = Settings(data=DataSettings(directory=directory / "data", port=0, **given))
    async with running_data(MemoryCluster(), settings) as (url, _):
        yield urlsplit(url).port or 0


@asynccontextmanager
async def coordinator(directory: Path, **given: Any) -> AsyncIterator[int]:
    async with running_coordinator(coordinator_settings(directory, **given)) as running:
        yield urlsplit(running.url).port or 0


@asynccontextmanager
async def broker(directory: Path, **given: Any) -> AsyncIterator[int]:
    verify: Any = False
    if "tls_certificate" in given:
        verify = ssl.create_default_context(cafile=given["tls_certificate"])
    async with World(directory, given, verify=verify) as world:
        yield urlsplit(world.broker).port or 0


PLACES: Final[dict[str, Place]] = {"data": data, "coordinator": coordinator, "broker": broker}
