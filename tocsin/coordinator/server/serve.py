"""Listening: a coordinator on a real socket, until the process is told to stop."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, Final

from tocsin.balance.warming import warm_up_live_workload, warm_up_rounds
from tocsin.coordinator.balancing import Planners
from tocsin.coordinator.core import CoordinatorCore
from tocsin.coordinator.server import policy
from tocsin.coordinator.server.access import Authenticator
from tocsin.coordinator.server.app import create_app
from tocsin.coordinator.server.driver import CoordinatorDriver, SteadyClock
from tocsin.coordinator.server.watch import StoreWatch
from tocsin.coordinator.store import CoordinatorStore
from tocsin.coordinator.store.opening import open_store
from tocsin.http import listening as sockets
from tocsin.http.demo import DEMO_TOKEN, check_demo
from tocsin.http.doorway import Doorways
from tocsin.http.listening import ADDRESS, HttpServer, address, allow_files, config, note_address
from tocsin.http.tls import tls
from tocsin.log import get_logger
from tocsin.settings.coordinator import CoordinatorSettings
from tocsin.tasks import until_one_ends

log = get_logger(__name__)

# A hello names everybody that a broker serves: this is enough for a million of them.
_MESSAGE_BYTES: Final = 64 << 20


def bind(settings: CoordinatorSettings) -> socket.socket:
    """A socket that holds the server's address but does not accept yet."""
    return sockets.bind("coordinator", settings.host, settings.port)


async def run(
    settings: CoordinatorSettings,
    *,
    demo: bool = False,
    listening: Callable[[str], None] | None = None,
    store: CoordinatorStore | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT; calls under way are answered before it returns.

    Once it listens, its URL is logged, written to the file ``address`` in its directory, and given to ``listening``.
    With ``demo`` the token "demo" is an operator's and a broker's. ``store`` is opened as the settings say unless
    given, and closed in the end.

    What can go wrong: the address is taken, a setting makes no sense, the store cannot be opened or belongs to another
    coordinator, now or later. Each is a TocsinError; any other is a fault.
    """
    if demo:
        check_demo("coordinator", settings.host)
    files = tls("coordinator", settings.tls_certificate, settings.tls_key)
    planners, placement = policy.planners(settings), policy.newcomers(settings)
    with bind(settings) as listener, closing(store or await _open_store(settings)) as kept:
        await asyncio.to_thread(kept.claim)
        # What runs on the loop's thread is compiled before anybody waits for it; the planners while they already may.
        state, _ = await asyncio.gather(asyncio.to_thread(kept.read), asyncio.to_thread(warm_up_live_workload))
        _warm_up(planners)
        clock = SteadyClock()
        core = CoordinatorCore(state, clock(), placement, planners, policy.limits(settings))
        driver = CoordinatorDriver(core, kept, clock, settings.answer_seconds, settings.max_waiting)
        gate, watch = (
            Authenticator(state.keyring.trust, clock, DEMO_TOKEN if demo else None),
            StoreWatch(kept, state.keyring, clock),
        )
        app = create_app(driver, gate, watch, settings, demo)
        await until_one_ends(_serve(app, settings, listener, files, listening), driver.run(), watch.run())


async def _open_store(settings: CoordinatorSettings) -> CoordinatorStore:
    return await asyncio.to_thread(open_store, settings)


def _warm_up(planners: Planners) -> None:
    """Compiles the planners in a thread that no stop waits for: the first time on a machine takes many seconds."""
    threading.Thread(
        target=warm_up_rounds, args=(planners.migration, planners.shuffle), name="warming", daemon=True
    ).start()


async def _serve(
    app: Any,
    settings: CoordinatorSettings,
    listener: socket.socket,
    files: dict[str, Any],
    listening: Callable[[str], None] | None,
) -> None:
    url = address(listener, "https" if files else "http")

    def listens() -> None:
        note_address(settings.directory, url)
        log.info("coordinator listens", url=url)
        if listening:
            listening(url)

    doorways = Doorways(settings.connections)
    allow_files("coordinator", settings.connections)
    options = {"ws_max_size": _MESSAGE_BYTES, "ws_ping_interval": 5, "ws_ping_timeout": 10, **files}
    try:
        await HttpServer(config(app, doorways, **options), listens, doorways).serve([listener])
    finally:
        with suppress(OSError):
            (settings.directory / ADDRESS).unlink()
