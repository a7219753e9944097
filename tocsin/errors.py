"""The errors a person or a client may see.

Every message says what was wrong, with which value, and what to do next. ``code`` is stable and meant for programs;
``status`` is the HTTP status a server answers with. Anything that is not a :class:`TocsinError` is a bug, and is logged
but never shown to a client.
"""

from __future__ import annotations


class TocsinError(Exception):
    """Base of all errors that are part of the interface."""

    code = "error"
    status = 500


class InvalidError(TocsinError):
    """What was asked for makes no sense as written: a bad value, a bad statement, a bad record."""

    code = "invalid"
    status = 400


class StatementError(InvalidError):
    """A statement of an application file was refused, at a line and column of that file."""

    code = "statement"

    def __init__(self, reason: str, *, line: int = 0, column: int = 0, statement: str = "") -> None:
        self.reason, self.line, self.column, self.statement = reason, line, column, statement
        where = f"line {line}, column {column}: " if line else ""
        super().__init__(f"{where}{reason}")


class FilterError(StatementError):
    """A filter of a content-based subscription was refused, at a line and column of its text."""

    code = "filter"


class SettingsError(InvalidError):
    """A settings key is unknown or its value is not allowed."""

    code = "settings"


class UnauthorizedError(TocsinError):
    """No token, or one that is not known."""

    code = "unauthorized"
    status = 401


class ForbiddenError(TocsinError):
    """The token is known, but its role may not do this."""

    code = "forbidden"
    status = 403


class NotFoundError(TocsinError):
    """A name that does not exist here."""

    code = "not-found"
    status = 404


class GoneError(NotFoundError):
    """A name that did exist and was dropped."""

    code = "gone"
    status = 410


class ConflictError(TocsinError):
    """It exists already with another definition, or others depend on it."""

    code = "conflict"
    status = 409


class SupersededError(ConflictError):
    """Another process has taken over from this one, which must change nothing any more, and ends."""

    code = "superseded"
    status = 503


class TooLargeError(TocsinError):
    """A request larger than the server takes."""

    code = "too-large"
    status = 413


class BusyError(TocsinError):
    """Over a bound right now; the same request is welcome after ``retry_after`` seconds."""

    code = "busy"
    status = 429

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class StorageError(TocsinError):
    """The disk refused: full, read-only or failing. Nothing of the request was accepted."""

    code = "storage"
    status = 507


class UnavailableError(TocsinError):
    """The part of the system that would answer is not running yet, or not any more."""

    code = "unavailable"
    status = 503


class SparkEndedError(UnavailableError):
    """The process that runs Spark is gone, though nobody asked it to end; nothing goes on without it."""

    code = "spark-ended"
