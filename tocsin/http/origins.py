"""Which web pages may call a server: browsers tell whose page it is (``Origin``) and whom it means to call (``Host``).

Where the demo token is accepted both are checked, for that token is no secret. Any page that somebody on this machine
opens could use it otherwise: directly, or under a name of its own that it has let point to this machine. Where no token
is asked for, programs on other machines call by whatever name the server has there; a page is known by its origin, also
one that has let its own name point here, so that alone is checked. Elsewhere a page needs a token that it must have
been given, and the settings may say which pages may call.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from tocsin.errors import ForbiddenError
from tocsin.http.failures import failure
from tocsin.http.listening import is_loopback


class Origins:
    """Those of one server. ``section`` is that of the settings that ``listed`` comes from; empty for any page.

    With ``demo``, pages of this machine and those listed may call, and the server only by a name of this machine or of
    a listed page's. If it is ``open``, as no token is asked for, the same pages may call, by any name. Programs that
    are no browsers send no origin, and may call in any case.
    """

    def __init__(self, section: str, listed: Iterable[str], demo: bool, *, open: bool = False) -> None:
        self._section, self._demo, self._open = section, demo, open
        self._listed = {origin.rstrip("/").lower() for origin in listed}
        self._names = {_name(origin) for origin in self._listed}

    def allows(self, origin: str, hosts: Iterable[str] = ()) -> bool:
        """Whether a page of this origin may call; ``hosts`` is how the server was called, for its own pages may."""
        origin = origin.lower()
        if origin in self._listed:
            return True
        if self._demo or self._open:
            return origin.startswith(("http://", "https://")) and is_loopback(_name(origin))
        return not self._listed or origin.partition("://")[2] in {host.lower() for host in hosts}

    def check(self, origins: list[str], hosts: list[str]) -> None:
        """Raises ForbiddenError for a call with these headers that a page may not make."""
        for host in hosts if self._demo else ():
            name = _name(f"//{host}")
            if not is_loopback(name) and name not in self._names:
                raise ForbiddenError(
                    f"this server accepts the demo token, and is therefore not called {host[:128]!r}: call it "
                    f"127.0.0.1 or localhost, or list https://{name[:128]} in {self._section}.origins"
                )
        for origin in origins:
            if not self.allows(origin, hosts):
                here = "here, where no token is asked for" if self._open else "here"
                raise ForbiddenError(
                    f"pages of {origin[:128]} may not connect {here}; {self._section}.origins lists those that may"
                )


class Guard:
    """ASGI middleware that refuses what :class:`Origins` does, calls and WebSockets alike."""

    def __init__(self, app: ASGIApp, origins: Origins) -> None:
        self._app, self._origins = app, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the call on, or refuses it."""
        headers = HTTPConnection(scope).headers
        try:
            self._origins.check(headers.getlist("origin"), headers.getlist("host"))
        except ForbiddenError as error:
            await _refuse(error, scope, receive, send)
            return
        await self._app(scope, receive, send)


async def _refuse(error: ForbiddenError, scope: Scope, receive: Receive, send: Send) -> None:
    response = failure(error)
    if scope["type"] == "websocket":
        await WebSocket(scope, receive, send).send_denial_response(response)
    else:
        await response(scope, receive, send)


def _name(url: str) -> str:
    """The host in it; nothing of what is no URL is a name."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
