"""Why Spark could not do something, in one line."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError


def reason_of(error: BaseException) -> str:
    """The first line of what it says; where that only names a call into Java, what Java says was the cause."""
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while (deeper := cause.getCause()) is not None:
            cause = deeper
        text = str(cause.toString())
    else:
        text = str(error)
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
