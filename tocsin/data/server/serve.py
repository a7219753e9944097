"""Listening: the application on a real socket, until the process is told to stop."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import uvicorn

from tocsin.data.server import uploads
from tocsin.data.server.app import create_app
from tocsin.data.server.cluster import DataCluster, Tokens
from tocsin.errors import StorageError, UnavailableError
from tocsin.log import get_logger
from tocsin.settings import Settings

log = get_logger(__name__)

ADDRESS: Final = "address"
# How long calls under way may take to end once the server stops.
STOP_SECONDS: Final = 10
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def bind(settings: Settings) -> socket.socket:
    """A socket that holds the server's address but does not accept yet, so that a taken port is found out early."""
    host, port = settings.data.host, settings.data.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UnavailableError(f"cannot listen on data.host = {host}: {error.strerror}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise UnavailableError(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another with --set data.port=N"
        ) from None
    return listener


async def run(
    cluster: DataCluster,
    tokens: Tokens,
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
    url = address(listener)

    def listens() -> None:
        _note(directory, url)
        log.info("data cluster listens", url=url)
        if listening:
            listening(url)

    try:
        await Server(_config(app, settings), listens).serve([listener])
    finally:
        with suppress(OSError):
            (directory / ADDRESS).unlink()


def address(listener: socket.socket) -> str:
    """The URL by which this machine reaches the socket."""
    host, port = listener.getsockname()[:2]
    host = _WILDCARDS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """Uvicorn that says when it listens, and leaves the process alive when a signal stops it."""

    def __init__(self, config: uvicorn.Config, listens: Callable[[], None]) -> None:
        super().__init__(config)
        self._listens = listens

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to listen."""
        await super().startup(sockets)
        self._listens()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stops at SIGTERM and SIGINT. Uvicorn would then raise them again, before the cluster could be stopped."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _config(app: Any, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",
        ws="websockets-sansio",
        ws_max_size=settings.data.max_request_bytes,
        ws_ping_interval=10,
        ws_ping_timeout=30,
        # Results are compressible, but brokers are near and there is no core to spare for it.
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


def _note(directory: Path, url: str) -> None:
    """Writes the URL where scripts look for it, never half."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        unfinished = directory / f"{ADDRESS}.new"
        unfinished.write_text(f"{url}\n", encoding="utf-8")
        os.replace(unfinished, directory / ADDRESS)
    except OSError as error:
        raise StorageError(f"the address cannot be written to {directory}: {error.strerror}") from None
