"""The data cluster that the demo runs on, with its server, in this process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from tocsin.data.cluster import Cluster
from tocsin.data.server.access import DEMO_TOKEN
from tocsin.data.server.serve import bind, run
from tocsin.data.store import Store
from tocsin.errors import UnavailableError
from tocsin.settings import Settings

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Stage:
    """A data cluster that listens on ``url`` and takes the demo token."""

    def __init__(self, cluster: Cluster, url: str) -> None:
        self._cluster, self.url = cluster, url

    async def ready(self) -> None:
        """Waits for Spark; UnavailableError says why there is none."""
        await self._cluster.ready()
        health = await self._cluster.health()
        if not health.spark:
            raise UnavailableError("; ".join(health.problems))


@asynccontextmanager
async def stage(settings: Settings, ended: asyncio.Event) -> AsyncIterator[Stage]:
    """While entered, a data cluster runs. SIGINT and SIGTERM do not stop it, they set ``ended``."""
    with Store(settings.data.directory) as store:
        cluster = Cluster(settings)
        try:
            await cluster.start()
            async with _serving(cluster, store, settings) as url:
                with _signals_set(ended):
                    yield Stage(cluster, url)
        finally:
            await cluster.stop()


@asynccontextmanager
async def _serving(cluster: Cluster, store: Store, settings: Settings) -> AsyncIterator[str]:
    """The server's URL; at the end it is stopped as a signal would."""
    with bind(settings) as listener:
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        options: dict[str, Any] = {"demo_token": DEMO_TOKEN, "listener": listener, "listening": url.set_result}
        server = asyncio.create_task(run(cluster, store.tokens, settings, **options))
        either: list[asyncio.Future[Any]] = [server, url]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if server.done():
            server.result()
        yield await url
        signal.raise_signal(signal.SIGTERM)
        await server


@contextmanager
def _signals_set(ended: asyncio.Event) -> Iterator[None]:
    """Meanwhile the server, which would stop at these signals, does not get them."""
    loop = asyncio.get_running_loop()

    def end(*_: object) -> None:
        loop.call_soon_threadsafe(ended.set)

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
