"""A call on its way through the server, and the description of one kind of call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from tocsin.data.server.access import Access, Caller
from tocsin.data.server.cluster import DataCluster
from tocsin.http import body
from tocsin.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One request, whose caller may make it. ``caller`` is None when an open call came without a token."""

    request: Request
    cluster: DataCluster
    settings: Settings
    caller: Caller | None

    @property
    def name(self) -> str:
        """The name in the path."""
        return str(self.request.path_params["name"])

    def require_broker(self, name: str) -> None:
        """Raises ForbiddenError when the caller is another broker than ``name``."""
        if self.caller is not None:
            self.caller.require_name(name)

    async def body(self, most: int | None = None) -> bytes:
        """The request's body, within ``data.max_request_bytes`` and ``most``."""
        largest = self.settings.data.max_request_bytes
        return await body.read(self.request, largest if most is None else min(most, largest))

    async def decode(self, type_: type[T]) -> T:
        """The request's JSON body."""
        return body.decode(await self.body(), type_)


@dataclass(frozen=True)
class RequestBody:
    """What a call takes: the schema of each media type (a struct, or words about it), and an example of the first."""

    media: Mapping[str, type | str]
    example: str


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True)
class Query:
    """A parameter in the query string of a call."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Operation:
    """One call: its route, who may make it, what does it, and all that its documentation says.

    ``answers`` are the successes, ``errors`` the statuses that are this call's own; ``paper`` is the name the BAD
    papers give it.
    """

    method: str
    path: str
    access: Access
    handler: Handler
    summary: str
    description: str = ""
    paper: str = ""
    group: str = ""
    body: RequestBody | None = None
    query: tuple[Query, ...] = ()
    answers: Mapping[int, type | str] = field(default_factory=dict)
    errors: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """An identifier, unique among the calls."""
        words = [word for word in self.path.replace("{name}", "named").replace(".", "/").split("/") if word]
        return "_".join([self.method.lower(), *words])
