"""The ASGI application of a head or an edge."""

from __future__ import annotations

from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute

from tocsin.http.answers import answer
from tocsin.http.envelope import Envelope
from tocsin.http.failures import endpoint, failure, no_such_call
from tocsin.http.origins import Guard, Origins
from tocsin.http.script import PATHS as SCRIPTS
from tocsin.http.script import script
from tocsin.overlay.server.server import OverlayServer
from tocsin.overlay.server.websocket import CLIENT, LINK

_HERE: Final = "this is an overlay's broker; programs name it by its ws:// URL"


def create_app(server: OverlayServer, origins: Origins) -> Starlette:
    """The calls and WebSockets of a broker, not yet listening."""

    def health(_: Request) -> Response:
        return answer(server.health())

    def status(request: Request) -> Response:
        server.access.require_reader(request.headers.get("authorization"))
        return answer(server.status())

    return Starlette(
        routes=[
            Route("/health", endpoint(health)),
            Route("/status", endpoint(status)),
            *(Route(path, endpoint(script)) for path in SCRIPTS),
            WebSocketRoute(LINK, server.links.endpoint),
            WebSocketRoute(CLIENT, server.clients.endpoint),
        ],
        middleware=[Middleware(Envelope), Middleware(Guard, origins=origins)],
        exception_handlers={HTTPException: no_such_call(_HERE), Exception: lambda _, error: failure(error)},
    )
