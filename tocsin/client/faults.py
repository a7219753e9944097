"""Errors that come as a code and a sentence, from a broker or the coordinator, as exceptions."""

from __future__ import annotations

from typing import Final

from tocsin.errors import (
    BusyError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    StorageError,
    TocsinError,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
)
from tocsin.model.messages import read_problem


class ReplacedError(ConflictError):
    """Another program has connected under this subscriber's name, and the newest one is served: stop one of them."""

    code = "replaced"


class ClosedError(UnavailableError):
    """What was asked for needs the connection, and that is closed: connect again."""

    code = "closed"


_KINDS: Final[dict[str, type[TocsinError]]] = {
    kind.code: kind
    for kind in (
        BusyError,
        ConflictError,
        ForbiddenError,
        GoneError,
        InvalidError,
        NotFoundError,
        ReplacedError,
        StorageError,
        TooLargeError,
        UnauthorizedError,
        UnavailableError,
    )
}


def fault(code: str, message: str) -> TocsinError:
    """The exception for a code; one that has none of its own is a TocsinError that bears it."""
    error = _KINDS.get(code, TocsinError)(message)
    error.code = code
    return error


def refusal(body: bytes) -> TocsinError | None:
    """The exception that the body of an answer names; None if that is not how a server of Tocsin refuses."""
    problem = read_problem(body)
    return fault(problem.code, problem.message) if problem else None
