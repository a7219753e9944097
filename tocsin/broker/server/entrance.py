"""Who may come in: the answer to a WebSocket handshake."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import msgspec
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from tocsin.errors import NotFoundError, TocsinError, UnavailableError
from tocsin.http.origins import Origins
from tocsin.model.messages import Failure, ProblemDetails

PATH: Final = "/subscriber"
RETRY_SECONDS: Final = 1


class Entrance:
    """Checks handshakes: their path, their origin, and whether there is room.

    ``most`` connections are taken.
    """

    def __init__(self, origins: Origins, most: int) -> None:
        self._origins, self.most = origins, most
        self.open = False

    def check(self, request: Request, has_room: Callable[[], bool]) -> Response | None:
        """Why the connection is refused, as the answer to its handshake; None when it may come in.

        ``has_room`` makes room if it can, and is asked only for those who may come in otherwise.
        """
        try:
            self._check(request, has_room)
        except TocsinError as error:
            return refusal(error)
        return None

    def _check(self, request: Request, has_room: Callable[[], bool]) -> None:
        path, headers = urlsplit(request.path).path, request.headers
        if path != PATH:
            raise NotFoundError(f"there is no WebSocket at {path}; subscribers connect to {PATH}")
        self._origins.check(headers.get_all("Origin"), headers.get_all("Host"))
        if not self.open:
            raise UnavailableError("the broker has not reached its coordinator yet; try again soon")
        if not has_room():
            raise UnavailableError(f"the broker has all the {self.most} connections it takes; try again later")


def refusal(error: TocsinError) -> Response:
    """The error as the answer to a handshake."""
    status = HTTPStatus(error.status)
    body = msgspec.json.encode(Failure(ProblemDetails(error.code, str(error))))
    headers = Headers({"Connection": "close", "Content-Type": "application/json", "Content-Length": str(len(body))})
    if isinstance(error, UnavailableError):
        headers["Retry-After"] = str(RETRY_SECONDS)
    return Response(status.value, status.phrase, headers, body)
