"""What every call has around it: a line in the log, and headers that keep browsers careful."""

from __future__ import annotations

from time import perf_counter
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tocsin.log import get_logger

log = get_logger(__name__)

CALLER: Final = "tocsin.caller"
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class Envelope:
    """ASGI middleware. Successes are logged for debugging only: publishers make thousands of them a second."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the call on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = perf_counter(), 0

        async def seal(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        try:
            await self._app(scope, receive, seal)
        finally:
            _write(scope, status, perf_counter() - began)


def _write(scope: Scope, status: int, seconds: float) -> None:
    write = log.debug if status < 400 else log.info if status < 500 else log.warning
    client = scope.get("client")
    write(
        "call answered",
        method=scope["method"],
        path=scope["path"],
        status=status,
        milliseconds=round(seconds * 1000, 1),
        caller=scope.get(CALLER),
        client=client[0] if client else None,
    )
