"""What went wrong in an execution: the query's own error in a sentence, and whether the data are to blame for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from tocsin.data.compiler import refusal
from tocsin.data.disk import FULL_SENTENCE, says_full
from tocsin.errors import StorageError, TocsinError

# Classes of SQLSTATE: too many rows for one value, data exceptions (22: division, overflow, cast, …), keys that are
# there twice, and what a body raises itself.
_OF_DATA: Final = ("21", "22", "23", "P0")
# A pattern of LIKE that ends within an escape is bad syntax to Spark, whoever has written it.
_OF_PATTERN: Final = "INVALID_FORMAT."
# What Java throws where it computes a value, and Spark passes on as it is: a pattern or a format that is none, an index
# that is not there, a recursion that is deeper than the stack.
_THROWN_BY_DATA: Final = frozenset(
    {
        *("java.lang.ArithmeticException", "java.lang.IllegalArgumentException"),
        *("java.lang.IndexOutOfBoundsException", "java.lang.NegativeArraySizeException"),
        *("java.lang.StackOverflowError", "java.time.DateTimeException", "org.xml.sax.SAXException"),
    }
)
_OF_MISSING: Final = ("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST")
_ADVICE: Final = ' If necessary set "'
_DEEPEST: Final = 20


def is_foreseen(error: BaseException) -> bool:
    """Whether an error says enough of itself, so that nobody needs to see where it was raised."""
    return isinstance(error, TocsinError | PySparkException | Py4JError) or is_of_disk(error)


def is_of_data(error: BaseException) -> bool:
    """Whether some record or some parameter makes the query fail, and not the machine that it runs on."""
    told = any(
        state.startswith(_OF_DATA) or condition.startswith(_OF_PATTERN) for condition, state, _ in _spark_errors(error)
    )
    return told or _is_thrown_by_data(error)


def is_of_disk(error: BaseException) -> bool:
    """Whether the disk refused, which is over as soon as there is room."""
    return isinstance(error, StorageError) or says_full(_innermost(error) or str(error))


def is_of_missing_file(error: BaseException) -> bool:
    """Whether a file that was to be read is not there any more."""
    return isinstance(error, FileNotFoundError) or any(
        condition in _OF_MISSING for condition, _, _ in _spark_errors(error)
    )


def sentence(error: BaseException) -> str:
    """What went wrong, for people: what the query itself complains of, if it does."""
    for condition, _, message in _spark_errors(error):
        return f"[{condition}] {refusal.clean(message.split(_ADVICE)[0])}"
    text = (_innermost(error) or str(error)).strip()
    if says_full(text):
        return FULL_SENTENCE
    return next(iter(text.splitlines()), type(error).__name__)[:500]


def kind(error: BaseException) -> str:
    """What went wrong without any of the values with which it did, for those who must not see them."""
    return next(
        (f"[{condition}]" for condition, _, _ in _spark_errors(error)), "the reason is in the data cluster's log"
    )


def _spark_errors(error: BaseException) -> Iterator[tuple[str, str, str]]:
    """Condition, SQLSTATE and message of each of Spark's errors behind an error, the outermost first."""
    for cause in _causes(error):
        # Not everything that is thrown has these, and nothing has when Spark is gone.
        with suppress(Exception):
            condition, state = cause.getCondition(), cause.getSqlState()
            if condition and state:
                yield str(condition), str(state), str(cause.getMessage())


def _causes(error: BaseException) -> Iterator[Any]:
    cause = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    with suppress(Exception):
        for _ in range(_DEEPEST):
            if cause is None:
                return
            yield cause
            cause = cause.getCause()


def _is_thrown_by_data(error: BaseException) -> bool:
    """Whether what began it all is one of Java's own complaints of a value. Should it have been of something else, the
    parts into which the execution is taken say so: no part of it is blamed that works."""
    with suppress(Exception):
        *_, first = _causes(error)
        kind = first.getClass()
        while kind is not None:
            if str(kind.getName()) in _THROWN_BY_DATA:
                return True
            kind = kind.getSuperclass()
    return False


def _innermost(error: BaseException) -> str:
    """The message of what began it all, where only a wrapper has come to us."""
    if not isinstance(error, Py4JJavaError):
        return ""
    messages = [f"{cause.getClass().getSimpleName()}: {cause.getMessage()}" for cause in _causes(error)]
    return messages[-1] if messages else "Spark does not say why"
