"""Why Spark could not do something, in one line."""

from __future__ import annotations

from typing import Final

from py4j.protocol import Py4JJavaError

_TRACEBACK: Final = "Traceback (most recent call last):"


def reason_of(error: BaseException) -> str:
    """The first line of what it says.

    Where that only names a call into Java, what Java says was the cause; where Python has failed in an executor, what
    it has raised there.
    """
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while (deeper := cause.getCause()) is not None:
            cause = deeper
        text = str(cause.toString())
    else:
        text = str(error)
    return _first_line(_last_raised(text)) or _first_line(text) or type(error).__name__


def _last_raised(text: str) -> str:
    """What a text with Python's traceback ends with: the first line after the last one that is not indented."""
    _, found, traceback = text.rpartition(_TRACEBACK)
    lines = traceback.splitlines() if found else []
    return next((line for line in lines if line.strip() and not line[0].isspace()), "")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
