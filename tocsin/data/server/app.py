"""The ASGI application: routes from the table of operations, access checked, errors answered in one shape."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from itertools import groupby
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from tocsin.data.server.access import Access, Caller, Gate
from tocsin.data.server.call import Call, Operation
from tocsin.data.server.cluster import DataCluster, KnownTokens
from tocsin.data.server.control import ControlSocket
from tocsin.data.server.nodes import NodeSocket
from tocsin.data.server.openapi import document
from tocsin.data.server.operations import OPERATIONS
from tocsin.http.demo import check_demo
from tocsin.http.envelope import CALLER, Envelope
from tocsin.http.failures import failure, no_such_call
from tocsin.http.origins import Guard, Origins
from tocsin.settings import Settings

Endpoint = Callable[[Request], Awaitable[Response]]

_HERE: Final = "this is a data cluster; GET /docs shows its calls"


def create_app(
    cluster: DataCluster, tokens: KnownTokens, settings: Settings, demo_token: str | None = None
) -> Starlette:
    """The server of a data cluster, not yet listening.

    ``demo_token`` may do everything; SettingsError if others than this machine could use it.
    """
    if demo_token is not None:
        check_demo("data", settings.data.host)
    gate = Gate(tokens, demo_token)
    origins = Origins("data", settings.data.origins, demo_token is not None)
    app = Starlette(
        routes=[
            *_routes(OPERATIONS, lambda operation: _endpoint(operation, cluster, gate, settings)),
            WebSocketRoute("/control", ControlSocket(cluster, gate).endpoint),
            WebSocketRoute("/nodes", NodeSocket(cluster, gate).endpoint),
        ],
        middleware=[Middleware(Envelope), Middleware(Guard, origins=origins)],
        exception_handlers={HTTPException: no_such_call(_HERE), Exception: lambda _, error: failure(error)},
    )
    app.router.redirect_slashes = False
    app.state.openapi = _openapi()
    return app


@cache
def _openapi() -> bytes:
    return msgspec.json.encode(document(OPERATIONS))


def _routes(operations: Iterable[Operation], endpoint: Callable[[Operation], Endpoint]) -> list[BaseRoute]:
    """One route per path, so that a wrong method is answered with all that are allowed."""
    by_path = groupby(sorted(operations, key=_path), key=_path)
    routes = []
    for path, group in by_path:
        endpoints = {operation.method: endpoint(operation) for operation in group}
        routes.append(Route(path, _by_method(endpoints), methods=list(endpoints)))
    return [*routes]


def _path(operation: Operation) -> str:
    return operation.path


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    async def called(request: Request) -> Response:
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return called


def _endpoint(operation: Operation, cluster: DataCluster, gate: Gate, settings: Settings) -> Endpoint:
    async def called(request: Request) -> Response:
        try:
            caller = _caller(request, gate, operation.access)
            return await operation.handler(Call(request, cluster, settings, caller))
        except Exception as error:
            return failure(error)

    return called


def _caller(request: Request, gate: Gate, access: Access) -> Caller | None:
    """Who makes a call, if that is known and allowed."""
    authorization = request.headers.get("authorization")
    if access is Access.OPEN and not authorization:
        return None
    caller = gate.caller(authorization)
    caller.require(access)
    request.scope[CALLER] = caller.name
    return caller
