"""The broker's HTTP calls: how it is, and the JavaScript client."""

from __future__ import annotations

from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tocsin.broker.server.entrance import PATH
from tocsin.broker.server.server import BrokerServer
from tocsin.errors import UnavailableError
from tocsin.http.answers import answer
from tocsin.http.envelope import CALLER, Envelope
from tocsin.http.failures import Call, endpoint, failure, no_such_call
from tocsin.http.origins import Guard
from tocsin.http.script import PATHS as SCRIPTS
from tocsin.http.script import script
from tocsin.model.messages import Failure, ProblemDetails

_HERE: Final = "this is a broker"


def create_app(server: BrokerServer) -> Starlette:
    """The calls of a broker, not yet listening."""

    def health(_: Request) -> Response:
        told = server.health()
        return answer(told, UnavailableError.status if told.status == "starting" else 200)

    def status(request: Request) -> Response:
        request.scope[CALLER] = server.access.require_operator(request.headers.get("authorization"))
        return answer(server.status())

    def subscriber(_: Request) -> Response:
        problem = ProblemDetails("invalid", f"{PATH} is a WebSocket: connect to {server.url}, as docs/protocol.md says")
        return answer(Failure(problem), 426, {"Upgrade": "websocket", "Connection": "Upgrade"})

    calls: dict[str, Call] = {
        "/health": health,
        "/status": status,
        **dict.fromkeys(SCRIPTS, script),
        PATH: subscriber,
    }
    return Starlette(
        routes=[Route(path, endpoint(call)) for path, call in calls.items()],
        middleware=[Middleware(Envelope), Middleware(Guard, origins=server.origins)],
        exception_handlers={HTTPException: no_such_call(_HERE), Exception: lambda _, error: failure(error)},
    )
