from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.log import TALKATIVE, Logger, configure, get_logger
from tocsin.settings import LogFormat, LogLevel


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    # pytest's own handlers are kept away: configure closes what it replaces.
    root.handlers[:] = []
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.NOTSET)


class Written:
    """What a logger wrote to a stream."""

    def __init__(self, stream: io.StringIO) -> None:
        self.stream = stream

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


def logging_to(
    stream: io.StringIO, level: LogLevel = "info", format: LogFormat = "json", name: str = "tocsin.test"
) -> tuple[Logger, Written]:
    configure(level, format, stream)
    return get_logger(name), Written(stream)


def test_a_line_of_json_has_the_message_and_its_fields() -> None:
    log, written = logging_to(io.StringIO())
    log.info("feed committed", feed="reports", rows=10)
    (line,) = written.objects
    assert datetime.fromisoformat(line.pop("at")).tzinfo is not None
    assert line == {
        "level": "info",
        "logger": "tocsin.test",
        "message": "feed committed",
        "feed": "reports",
        "rows": 10,
    }


def test_a_field_called_like_a_part_of_the_line_gets_an_underscore() -> None:
    log, written = logging_to(io.StringIO())
    log.info("moved", level="top", name="x", args=1, msg="y", exc_info=2)
    (line,) = written.objects
    assert (line["level"], line["level_"], line["name"], line["args"]) == ("info", "top", "x", 1)
    assert (line["msg"], line["exc_info"]) == ("y", 2)


def test_an_exception_is_part_of_its_line() -> None:
    log, written = logging_to(io.StringIO())
    try:
        raise ValueError("no such thing")
    except ValueError:
        log.exception("failed", channel="c")
    (line,) = written.objects
    assert line["level"] == "error"
    assert line["channel"] == "c"
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: no such thing")


def test_an_exception_logged_where_none_is_handled_has_no_traceback() -> None:
    log, written = logging_to(io.StringIO())
    log.exception("failed")
    (line,) = written.objects
    assert "exception" not in line


def test_percent_signs_in_a_message_are_just_that() -> None:
    log, written = logging_to(io.StringIO())
    log.info("100% of %s", share="5%")
    assert written.objects[0]["message"] == "100% of %s"


def test_what_libraries_log_comes_out_the_same_way() -> None:
    _, written = logging_to(io.StringIO())
    logging.getLogger("library").warning("%d of %d", 1, 2, extra={"topic": "x"})
    (line,) = written.objects
    assert (line["message"], line["topic"], line["logger"]) == ("1 of 2", "x", "library")


def test_text_is_one_readable_line() -> None:
    log, written = logging_to(io.StringIO(), format="text")
    log.warning("feed is slow", feed="reports", reason="disk full", empty="", forged="a\nb")
    at, rest = written.text.split(" ", 1)
    assert datetime.fromisoformat(at).tzinfo is not None
    assert rest == ('warning tocsin.test: feed is slow feed=reports reason="disk full" empty="" forged="a\\nb"\n')


def test_auto_is_text_on_a_terminal_and_json_elsewhere() -> None:
    log, written = logging_to(Terminal(), format="auto")
    log.info("hello")
    assert "tocsin.test: hello" in written.text
    log, written = logging_to(io.StringIO(), format="auto")
    log.info("hello")
    assert written.objects[0]["message"] == "hello"


def test_what_is_below_the_level_is_not_written() -> None:
    log, written = logging_to(io.StringIO(), level="warning")
    log.debug("a")
    log.info("b")
    log.warning("c")
    log.error("d")
    assert [line["message"] for line in written.objects] == ["c", "d"]


def test_configuring_again_replaces_what_was() -> None:
    _, first = logging_to(io.StringIO())
    log, second = logging_to(io.StringIO())
    log.info("once")
    assert first.text == ""
    assert len(second.objects) == 1


def test_spark_is_heard_from_warnings_on_and_never_below_the_level() -> None:
    _, written = logging_to(io.StringIO(), level="debug")
    logging.getLogger("py4j.clientserver").info("Command to send")
    logging.getLogger("pyspark.sql").warning("careful")
    assert [line["message"] for line in written.objects] == ["careful"]
    _, written = logging_to(io.StringIO(), level="error")
    logging.getLogger("pyspark.sql").warning("careful")
    assert written.text == ""


class Unprintable:
    def __str__(self) -> str:
        return "\ud800"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.just("\udcff")
    | st.just(Unprintable()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers()), inner),
    max_leaves=4,
)


@given(st.dictionaries(st.text(min_size=1), values, max_size=4))
def test_whatever_the_fields_hold_each_call_writes_one_line_of_json(fields: dict[str, object]) -> None:
    stream = io.StringIO()
    log, written = logging_to(stream)
    log.info("odd", **fields)
    (line,) = written.stream.getvalue().encode("utf-8").split(b"\n")[:-1]
    assert json.loads(line)["message"] == "odd"


def test_a_value_that_holds_itself_does_not_cost_the_line() -> None:
    log, written = logging_to(io.StringIO())
    endless: list[object] = []
    endless.append(endless)
    log.info("endless", value=endless)
    assert written.objects[0]["value"] == "[[...]]"
