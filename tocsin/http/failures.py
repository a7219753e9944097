"""Errors as answers: one JSON shape, and nothing in it that a client should not see."""

from __future__ import annotations

import math
import secrets
from collections.abc import Awaitable, Callable

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tocsin.errors import BusyError, InvalidError, NotFoundError, StatementError, TocsinError, UnauthorizedError
from tocsin.http.answers import answer
from tocsin.log import get_logger
from tocsin.model.messages import Failure, ProblemDetails, Refusal, StatementOutcome

Call = Callable[[Request], Response]

log = get_logger(__name__)

_CLIENT_LEFT = 499


class RefusedError(InvalidError):
    """None of a publication's records was accepted."""

    code = "refused"

    def __init__(self, refused: list[Refusal], unlisted: int = 0) -> None:
        self.refused, self.unlisted = refused, unlisted
        first, count = refused[0], len(refused) + unlisted
        super().__init__(f"none of the {count} records was accepted; record {first.index}: {first.reason}")


def problem(error: Exception) -> ProblemDetails:
    """What a client is told of the error being handled. A fault is logged with its traceback, and only referred to."""
    match error:
        case StatementError():
            return ProblemDetails(error.code, _safe(error.reason), line=error.line or None, column=error.column or None)
        case BusyError():
            return ProblemDetails(error.code, _safe(error), retry_after=error.retry_after)
        case RefusedError():
            return ProblemDetails(error.code, _safe(error), refused=error.refused, unlisted=error.unlisted)
        case TocsinError():
            return ProblemDetails(error.code, _safe(error))
    return _fault()


def status(error: Exception) -> int:
    """The HTTP status of an error."""
    return error.status if isinstance(error, TocsinError) else 500


def failure(error: Exception, outcomes: list[StatementOutcome] | None = None) -> Response:
    """The answer to a call that ended in ``error``, and had these ``outcomes`` before."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=_CLIENT_LEFT)
    told = msgspec.structs.replace(problem(error), outcomes=outcomes)
    return answer(Failure(told), status(error), _headers(error))


def endpoint(call: Call) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a call that waits for nothing: what it raises is answered as a failure."""

    async def called(request: Request) -> Response:
        try:
            return call(request)
        except Exception as error:
            return failure(error)

    return called


def no_such_call(here: str) -> Callable[[Request, Exception], Response]:
    """What answers calls that do not exist. ``here`` says which server this is: most who ask meant another one."""

    def told(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        called = f"{request.method} {request.url.path}"
        if error.status_code == 405:
            allowed = headers.get("Allow", "other methods")
            problem = ProblemDetails("method-not-allowed", f"{called}: allowed here are {allowed}")
        elif error.status_code == NotFoundError.status:
            problem = ProblemDetails(NotFoundError.code, f"there is no call {called} here: {here}")
        else:
            problem = ProblemDetails("error", error.detail)
        return answer(Failure(problem), error.status_code, headers)

    return told


def _headers(error: Exception) -> dict[str, str]:
    match error:
        case UnauthorizedError():
            return {"WWW-Authenticate": 'Bearer realm="tocsin"'}
        case BusyError():
            return {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
    return {}


def _safe(message: object) -> str:
    """The message as text that can be encoded, whatever a file name or a value in it was."""
    return str(message).encode("utf-8", "backslashreplace").decode()


def _fault() -> ProblemDetails:
    reference = secrets.token_hex(6)
    log.exception("fault while answering a call", reference=reference)
    return ProblemDetails("internal", f"a fault in the server: see its log, reference {reference}", reference=reference)
