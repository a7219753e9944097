"""Listening: the data cluster's application on a real socket, until the process is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from starlette.applications import Starlette

from tocsin.data.server import uploads
from tocsin.data.server.app import create_app
from tocsin.data.server.cluster import DataCluster, KnownTokens
from tocsin.data.server.standby import create_standby_app
from tocsin.http import listening as sockets
from tocsin.http.doorway import Doorways
from tocsin.http.listening import ADDRESS, HttpServer, address, allow_files, config, note_address
from tocsin.http.tls import tls
from tocsin.log import get_logger
from tocsin.settings import Settings

log = get_logger(__name__)

T = TypeVar("T")


def bind(settings: Settings) -> socket.socket:
    """A socket that holds the server's address but does not accept yet."""
    return sockets.bind("data", settings.data.host, settings.data.port)


async def run(
    cluster: DataCluster,
    tokens: KnownTokens,
    settings: Settings,
    *,
    demo_token: str | None = None,
    listener: socket.socket | None = None,
    listening: Callable[[str], None] | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT; calls under way are answered before it returns.

    Once it listens, its URL is logged, written to the file ``address`` in the data directory, and given to
    ``listening``. ``listener`` is a socket from :func:`bind`, made here unless given.
    """
    directory = settings.data.directory
    app = create_app(cluster, tokens, settings, demo_token)
    uploads.clear(directory)
    listener = listener or bind(settings)
    url = address(listener, "https" if settings.data.tls_certificate else "http")

    def listens() -> None:
        note_address(directory, url)
        log.info("data cluster listens", url=url)
        if listening:
            listening(url)

    try:
        await _server(app, settings, listens).serve([listener])
    finally:
        with suppress(OSError):
            # One that has taken over has written its own.
            if (directory / ADDRESS).read_text(encoding="utf-8").strip() == url:
                (directory / ADDRESS).unlink()


async def run_standby(
    settings: Settings, listener: socket.socket, turn: Awaitable[T], listening: Callable[[str], None] | None = None
) -> T | None:
    """Answers that this one stands by until its ``turn`` has come, and gives what came; None if told to stop before.

    ``listener`` stays open, so that whoever comes in between waits.
    """
    url = address(listener, "https" if settings.data.tls_certificate else "http")

    def listens() -> None:
        log.info("data cluster stands by", url=url)
        if listening:
            listening(url)

    server = _server(create_standby_app(settings), settings, listens)
    serving = asyncio.create_task(server.serve([listener.dup()]))
    waiting = asyncio.ensure_future(turn)
    try:
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
        return waiting.result() if waiting.done() else None
    finally:
        server.should_exit = True
        waiting.cancel()
        await asyncio.gather(serving, waiting, return_exceptions=True)


def _server(app: Starlette, settings: Settings, listens: Callable[[], None]) -> HttpServer:
    doorways = Doorways(settings.data.connections)
    allow_files("data", settings.data.connections)
    files = tls("data", settings.data.tls_certificate, settings.data.tls_key)
    options = {"ws_max_size": settings.data.max_request_bytes, "ws_ping_interval": 10, "ws_ping_timeout": 30, **files}
    return HttpServer(config(app, doorways, **options), listens, doorways)
