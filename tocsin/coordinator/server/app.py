"""The ASGI application of a coordinator."""

from __future__ import annotations

from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from tocsin.coordinator.server.access import Authenticator
from tocsin.coordinator.server.calls import CoordinatorCalls, guard
from tocsin.coordinator.server.driver import CoordinatorDriver
from tocsin.coordinator.server.links import BrokerLinks
from tocsin.coordinator.server.watch import StoreWatch
from tocsin.http.envelope import Envelope
from tocsin.http.failures import failure, no_such_call
from tocsin.http.origins import Guard, Origins
from tocsin.http.script import PATHS as SCRIPTS
from tocsin.settings.coordinator import CoordinatorSettings

_HERE: Final = "this is a coordinator"


def create_app(
    driver: CoordinatorDriver, gate: Authenticator, watch: StoreWatch, settings: CoordinatorSettings, demo: bool = False
) -> Starlette:
    """The server of a coordinator, not yet listening."""
    calls, links = CoordinatorCalls(driver, gate, settings, watch), BrokerLinks(driver, gate, settings.link_bytes)
    # The core closes what is left of removed brokers, so that by then none can come again, and each was told why.
    watch.listen(lambda amended: gate.learn(amended.keyring.trust))
    watch.listen(lambda amended: links.learn(amended.keyring.trust))
    watch.listen(driver.tell)
    origins = Origins("coordinator", settings.origins, demo)
    app = Starlette(
        routes=[
            Route("/health", guard(calls.health)),
            Route("/users", guard(calls.register_user), methods=["POST"]),
            Route("/users/{name}", guard(calls.remove_user), methods=["DELETE"]),
            Route("/brokers", guard(calls.register_broker), methods=["POST"]),
            Route("/brokers/{name}", guard(calls.remove_broker), methods=["DELETE"]),
            Route("/brokers/{name}/draining", guard(calls.drain), methods=["PUT"]),
            Route("/broker", guard(calls.request_broker)),
            Route("/status", guard(calls.status)),
            Route("/plan", guard(calls.plan), methods=["GET", "POST"]),
            Route("/balancing", guard(calls.balance), methods=["PUT"]),
            *(Route(path, guard(calls.script)) for path in SCRIPTS),
            WebSocketRoute("/link", links.endpoint),
        ],
        middleware=[
            Middleware(Envelope),
            Middleware(Guard, origins=origins),
            Middleware(_SharedWith, origins=origins),
        ],
        exception_handlers={HTTPException: no_such_call(_HERE), Exception: lambda _, error: failure(error)},
    )
    app.router.redirect_slashes = False
    return app


class _SharedWith(CORSMiddleware):
    """Tells browsers that pages of these origins may read the answers."""

    def __init__(self, app: ASGIApp, origins: Origins) -> None:
        super().__init__(
            app,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
        self._origins = origins

    def is_allowed_origin(self, origin: str) -> bool:
        """Whether pages of this origin may."""
        return self._origins.allows(origin)
