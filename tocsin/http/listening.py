"""Listening: an application on a real socket, until the process is told to stop."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import uvicorn

from tocsin.errors import StorageError, UnavailableError
from tocsin.http.websocket import WebSocket

ADDRESS: Final = "address"
# How long calls under way may take to end once the server stops.
STOP_SECONDS: Final = 10
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def bind(section: str, host: str, port: int) -> socket.socket:
    """A socket that holds a server's address but does not accept yet, so that a taken port is found out early.

    ``section`` is that of the settings ``host`` and ``port`` come from.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UnavailableError(f"cannot listen on {section}.host = {host}: {error.strerror}") from None
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


def config(app: Any, **more: Any) -> uvicorn.Config:
    """How Uvicorn serves an application here; ``more`` are further settings of Uvicorn's."""
    settings: dict[str, Any] = {
        "http": "httptools",
        "ws": WebSocket,
        # Results are compressible, but brokers are near and there is no core to spare for it.
        "ws_per_message_deflate": False,
        "lifespan": "off",
        "log_config": None,
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
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
