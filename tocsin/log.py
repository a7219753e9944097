"""Structured logs on the standard ``logging`` module.

    log = get_logger(__name__)
    log.info("feed committed", feed="reports", rows=10)

The message is a fixed sentence; what varies goes into fields. ``configure`` decides once per process how they are
written: as one JSON object per line, or as text for people. Whatever is logged with plain ``logging`` by a library
comes out the same way. No secret does: see :mod:`tocsin.redaction`.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TextIO

import msgspec

from tocsin.redaction import Redactor
from tocsin.settings import LogFormat, LogLevel

# These tell each call of theirs at the levels below, some with the tokens in its headers and messages.
TALKATIVE = ("httpcore", "httpx", "py4j", "pyspark", "websockets")

_FIELDS = "fields"
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message", _FIELDS}
_RESERVED = frozenset({"at", "level", "logger", "message", "exception"})


class Logger:
    """A ``logging.Logger`` whose calls take fields by keyword. A field may have any name and any value."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, message: str, /, **fields: object) -> None:
        """For someone looking for a fault."""
        self._log(logging.DEBUG, message, fields)

    def info(self, message: str, /, **fields: object) -> None:
        """Something happened that an operator may want to know later."""
        self._log(logging.INFO, message, fields)

    def warning(self, message: str, /, **fields: object) -> None:
        """Something is not as it should be, and the system copes."""
        self._log(logging.WARNING, message, fields)

    def error(self, message: str, /, **fields: object) -> None:
        """Something failed, and someone should look."""
        self._log(logging.ERROR, message, fields)

    def exception(self, message: str, /, **fields: object) -> None:
        """As ``error``, with the exception being handled and its traceback."""
        self._log(logging.ERROR, message, fields, exc_info=True)

    def _log(self, level: int, message: str, fields: Mapping[str, object], exc_info: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, message, extra={_FIELDS: fields}, exc_info=exc_info, stacklevel=3)


def get_logger(name: str) -> Logger:
    """The logger of that name; pass ``__name__``."""
    return Logger(logging.getLogger(name))


def configure(
    level: LogLevel = "info",
    format: LogFormat = "auto",
    stream: TextIO | None = None,
    secrets: Iterable[str] = (),
) -> None:
    """Log from now on to ``stream`` (standard error unless given), without these secrets.

    Calling it again replaces what was configured.
    """
    stream = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(stream)
    as_text = format == "text" or (format == "auto" and stream.isatty())
    handler.setFormatter(TextFormatter(secrets) if as_text else JsonFormatter(secrets))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


class _Redacting(logging.Formatter):
    """Lines without secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._redact = Redactor(secrets)


class JsonFormatter(_Redacting):
    """One JSON object per line: at, level, logger, message, the fields, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line: dict[str, object] = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        # A field may be called like one of the above: it keeps its value under a name with a trailing underscore.
        line |= {f"{name}_" if name in _RESERVED else name: value for name, value in _fields(record).items()}
        exception = _exception(self, record)
        return self._redact(_encode(line | {"exception": exception} if exception else line))


class TextFormatter(_Redacting):
    """A line for people: time, level, logger, message, ``key=value`` fields; a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line, and more lines if it carries an exception."""
        fields = "".join(f" {name}={_show(value)}" for name, value in _fields(record).items())
        line = f"{_at(record)} {record.levelname.lower():<7} {record.name}: {record.getMessage()}{fields}"
        exception = _exception(self, record)
        return self._redact(f"{line}\n{exception}" if exception else line)


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """The fields of a call of ours, and those a library gave as ``extra``."""
    extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return extra | dict(getattr(record, _FIELDS, {}))


def _exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    traceback = formatter.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""
    stack = formatter.formatStack(record.stack_info) if record.stack_info else ""
    return "\n".join(part for part in (traceback, stack) if part)


def _encode(line: dict[str, object]) -> str:
    try:
        return msgspec.json.encode(line, enc_hook=str).decode()
    except (TypeError, ValueError, RecursionError):
        # An odd key, a lone surrogate or a value that holds itself must not cost the line it is in.
        return json.dumps({str(name): str(value) for name, value in line.items()})


def _show(value: object) -> str:
    text = str(value)
    plain = text.isprintable() and text and not any(character in ' "=' for character in text)
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())
