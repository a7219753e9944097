"""Listening: the data cluster's application on a real socket, until the process is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

from tocsin.data.server import uploads
from tocsin.data.server.app import create_app
from tocsin.data.server.cluster import DataCluster, KnownTokens
from tocsin.http import listening as sockets
from tocsin.http.doorway import Doorways
from tocsin.http.listening import ADDRESS, HttpServer, address, allow_files, config, note_address
from tocsin.http.tls import tls
from tocsin.log import get_logger
from tocsin.settings import Settings

log = get_logger(__name__)


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
    files = tls("data", settings.data.tls_certificate, settings.data.tls_key)
    app = create_app(cluster, tokens, settings, demo_token)
    uploads.clear(directory)
    listener = listener or bind(settings)
    url = address(listener, "https" if files else "http")

    def listens() -> None:
        note_address(directory, url)
        log.info("data cluster listens", url=url)
        if listening:
            listening(url)

    doorways = Doorways(settings.data.connections)
    allow_files("data", settings.data.connections)
    options = {"ws_max_size": settings.data.max_request_bytes, "ws_ping_interval": 10, "ws_ping_timeout": 30, **files}
    try:
        await HttpServer(config(app, doorways, **options), listens, doorways).serve([listener])
    finally:
        with suppress(OSError):
            (directory / ADDRESS).unlink()
