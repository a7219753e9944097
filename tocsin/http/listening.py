"""Listening: an application on a real socket, until the process is told to stop."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import uvicorn

from tocsin.errors import StorageError, UnavailableError
from tocsin.http.accepting import Acceptor
from tocsin.http.doorway import HEAD_SECONDS, Doorways
from tocsin.http.websocket import ServerWebSocket
from tocsin.log import get_logger

log = get_logger(__name__)

ADDRESS: Final = "address"
# How long calls under way may take to end once the server stops.
STOP_SECONDS: Final = 10
# How long a connection is kept without a request. Uvicorn's own 5 s are httpx's, too: both would hang up at the same
# moment, and a request that is on its way just then be lost.
IDLE_SECONDS: Final = int(HEAD_SECONDS)
# TLS handshakes under way at the same time.
HANDSHAKES: Final = 1000
# What a process needs beyond one file per connection.
_SPARE_FILES: Final = 100
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def bind(section: str, host: str, port: int) -> socket.socket:
    """A socket that holds a server's address but does not accept yet, so that a taken port is found out early.

    ``section`` is that of the settings ``host`` and ``port`` come from.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UnavailableError(f"cannot listen on {section}.host = {host}: {reason}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise UnavailableError(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another with --set {section}.port=N"
        ) from None
    return listener


def address(listener: socket.socket, scheme: str = "http") -> str:
    """The URL by which this machine reaches the socket."""
    host, port = listener.getsockname()[:2]
    host = _WILDCARDS.get(host, host)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on ``host``."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def allow_files(section: str, connections: int) -> None:
    """Lets the process have a file per connection, as far as the system allows."""
    wanted = connections + _SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    if soft != resource.RLIM_INFINITY and soft < wanted:
        message = f"fewer files may be open than {section}.connections needs"
        log.warning(message, files=soft, connections=connections)


def config(app: Any, doorways: Doorways, **more: Any) -> uvicorn.Config:
    """How Uvicorn serves an application here; ``more`` are further settings of Uvicorn's."""
    settings: dict[str, Any] = {
        "http": doorways.protocol,
        "ws": ServerWebSocket,
        # Results are compressible, but brokers are near and there is no core to spare for it.
        "ws_per_message_deflate": False,
        "lifespan": "off",
        "log_config": None,
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": IDLE_SECONDS,
        "timeout_graceful_shutdown": STOP_SECONDS,
    }
    return uvicorn.Config(app, **settings | more)


def note_address(directory: Path, url: str) -> None:
    """Writes the URL where scripts look for it, never half."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        unfinished = directory / f"{ADDRESS}.new"
        unfinished.write_text(f"{url}\n", encoding="utf-8")
        os.replace(unfinished, directory / ADDRESS)
    except OSError as error:
        raise StorageError(f"the address cannot be written to {directory}: {error.strerror}") from None


class HttpServer(uvicorn.Server):
    """Uvicorn that says when it listens, bounds what strangers may do, and leaves the process alive when a signal stops
    it. ``stopping`` is awaited before anything is closed."""

    def __init__(
        self,
        config: uvicorn.Config,
        listens: Callable[[], None],
        doorways: Doorways,
        stopping: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(config)
        self._listens, self._doorways, self._stopping = listens, doorways, stopping
        self._sweep: asyncio.Task[None] | None = None
        self._acceptors: list[Acceptor] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to listen."""
        self._sweep = asyncio.create_task(self._doorways.end_late_ones())
        context, self.config.ssl = self.config.ssl, None
        if context is None:
            await super().startup(sockets)
        else:
            await super().startup([])
            self._acceptors = [self._acceptor(listener, context) for listener in sockets or []]
        self._listens()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops."""
        if self._stopping:
            await self._stopping()
        self._doorways.stop()
        if self._sweep:
            self._sweep.cancel()
        for acceptor in self._acceptors:
            acceptor.close()
            await acceptor.wait_closed()
        await super().shutdown(sockets)

    def _acceptor(self, listener: socket.socket, context: ssl.SSLContext) -> Acceptor:
        def make() -> asyncio.Protocol:
            return self._doorways.protocol(config=self.config, server_state=self.server_state, app_state={})

        acceptor = Acceptor(make, context, HEAD_SECONDS, HANDSHAKES)
        acceptor.start(listener, self.config.backlog)
        return acceptor

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stops at SIGTERM and SIGINT. Uvicorn would then raise them again, before all could be put in order."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
