"""The HTTP calls: what each takes, who may make it, and which request of the core it is."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from tocsin.coordinator import events
from tocsin.coordinator.answers import CoordinatorHealth
from tocsin.coordinator.events import Handle
from tocsin.coordinator.server.access import Authenticator
from tocsin.coordinator.server.driver import CoordinatorDriver
from tocsin.coordinator.server.quota import Quota
from tocsin.coordinator.server.watch import StoreWatch
from tocsin.errors import ForbiddenError, InvalidError, UnauthorizedError, UnavailableError
from tocsin.http import body
from tocsin.http.answers import answer
from tocsin.http.envelope import CALLER
from tocsin.http.failures import failure
from tocsin.http.script import script
from tocsin.model.messages import BareHealth, BrokerName, BrokerUrl
from tocsin.model.terms import Groups
from tocsin.settings.coordinator import CoordinatorSettings

_MOST_BYTES: Final = 64 << 10
_RETRY_SECONDS: Final = 1
ME: Final = "me"
"""How a subscriber calls itself in a path."""
_T = TypeVar("_T")

Ask = Callable[[Handle], events.Request]
Endpoint = Callable[[Request], Awaitable[Response]]


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody who wants to subscribe; only an operator gives groups."""

    name: str
    groups: Groups = ()


class NewBroker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker that is to come. ``capacity`` is relative to other brokers', ``location`` is x and y."""

    name: BrokerName
    url: BrokerUrl
    capacity: Annotated[float, Meta(gt=0)] = 1.0
    location: tuple[float, float] | None = msgspec.field(default=None, name="place")


class Switch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something to be on or off."""

    on: bool


class CoordinatorCalls:
    """The calls of one coordinator. Every refusal is answered in the shape of :mod:`tocsin.http.failures`."""

    def __init__(
        self, driver: CoordinatorDriver, gate: Authenticator, settings: CoordinatorSettings, watch: StoreWatch
    ) -> None:
        self._driver, self._gate, self._registration, self._watch = driver, gate, settings.registration, watch
        self._quota = Quota(settings.registrations_each, settings.registrations, lambda: driver.now)

    async def health(self, request: Request) -> Response:
        """Says that it is there and whether all is well, to anybody; to operators also what is not."""
        problems = self._driver.problems
        bare = BareHealth("degraded" if problems else "ok")
        try:
            self._operator(request)
        except (UnauthorizedError, ForbiddenError):
            return answer(bare)
        return answer(CoordinatorHealth(bare.status, problems))

    async def register_user(self, request: Request) -> Response:
        """The paper's registeruser. Without an operator's token, only names that nobody has."""
        fresh = self._registration == "open" and not request.headers.get("authorization")
        if not fresh:
            self._operator(request)
        user = await _decode(request, User)
        if fresh and user.groups:
            raise ForbiddenError("only an operator puts subscribers into groups: register without, or with their token")
        if fresh:
            self._quota.take(request.client.host if request.client else "")
            # A name that was signed for a moment ago is taken.
            await self._watch.look()
        return await self._answer(lambda handle: events.RegisterUser(handle, user.name, fresh, user.groups), 201)

    async def register_broker(self, request: Request) -> Response:
        """The paper's registerbroker."""
        self._operator(request)
        new = await _decode(request, NewBroker)
        return await self._answer(
            lambda handle: events.RegisterBroker(handle, new.name, new.url, new.capacity, new.location), 201
        )

    async def remove_user(self, request: Request) -> Response:
        """Operators remove anybody; subscribers themselves, as "me" or by their name."""
        authorization, name = request.headers.get("authorization"), str(request.path_params["name"])
        caller = self._gate.identify(authorization)
        request.scope[CALLER] = caller.name
        if caller.role == "operator":
            return await self._answer(lambda handle: events.RemoveUser(handle, name))
        if caller.role != "subscriber" or name not in (ME, caller.name):
            raise ForbiddenError(f"{caller.name} may not remove {name}: operators may, and {name} itself")
        token = self._gate.token(authorization)
        return await self._answer(lambda handle: events.Unregister(handle, token))

    async def remove_broker(self, request: Request) -> Response:
        """Forgets a broker that is dead or drained."""
        self._operator(request)
        name = str(request.path_params["name"])
        response = await self._answer(lambda handle: events.RemoveBroker(handle, name))
        # Its token is not taken from now on, and one that still runs is cut off.
        await self._watch.look()
        return response

    async def request_broker(self, request: Request) -> Response:
        """The paper's requestbroker. The core itself looks at the token."""
        token = self._gate.token(request.headers.get("authorization"))
        location = _location(request)
        return await self._answer(lambda handle: events.RequestBroker(handle, token, location))

    async def status(self, request: Request) -> Response:
        """How things stand."""
        self._operator(request)
        return await self._answer(events.AskStatus)

    async def plan(self, request: Request) -> Response:
        """What would be moved now, and why; by POST it is also carried out."""
        self._operator(request)
        return await self._answer(events.ApplyPlan if request.method == "POST" else events.ShowPlan)

    async def drain(self, request: Request) -> Response:
        """Empties a broker, or lets it have subscribers again."""
        self._operator(request)
        switch, broker = await _decode(request, Switch), str(request.path_params["name"])
        return await self._answer(lambda handle: events.Drain(handle, broker, switch.on))

    async def balance(self, request: Request) -> Response:
        """Turns balancing on or off."""
        self._operator(request)
        switch = await _decode(request, Switch)
        return await self._answer(lambda handle: events.Balance(handle, switch.on))

    async def script(self, request: Request) -> Response:
        """The JavaScript client."""
        return script(request)

    def _operator(self, request: Request) -> None:
        request.scope[CALLER] = self._gate.require(request.headers.get("authorization"), "operator").name

    async def _answer(self, ask: Ask, status: int = 200) -> Response:
        return answer(await self._driver.ask(ask), status)


def guard(call: Endpoint) -> Endpoint:
    """A call whose errors are answers. What is not there yet may be asked for again soon."""

    async def called(request: Request) -> Response:
        try:
            return await call(request)
        except UnavailableError as error:
            response = failure(error)
            response.headers["Retry-After"] = str(_RETRY_SECONDS)
            return response
        except Exception as error:
            return failure(error)

    return called


async def _decode(request: Request, kind: type[_T]) -> _T:
    return body.decode(await body.read(request, _MOST_BYTES), kind)


def _location(request: Request) -> tuple[float, float] | None:
    """Where the caller says it is: x and y, or nothing."""
    x, y = request.query_params.get("x"), request.query_params.get("y")
    if x is None and y is None:
        return None
    try:
        location = float(x or ""), float(y or "")
    except ValueError:
        raise InvalidError(f"x is {x!r} and y is {y!r}: give both as numbers, or neither") from None
    if not all(map(math.isfinite, location)):
        raise InvalidError(f"x is {x} and y is {y}: give both as numbers, or neither")
    return location
