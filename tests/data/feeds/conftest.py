"""A feed log in a directory of its own, and feeds that go into their datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.data.feeds.ingesting import APPEND, Ingesting, Make
from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.logs import EMBEDDED

OpenLog = Callable[..., FeedLog]


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    return tmp_path / "reports"


@pytest.fixture
def open_log(feed: Path) -> Iterator[OpenLog]:
    """Opens the log at ``feed``, of one slice and large segments unless told otherwise; closes it in the end."""
    with ExitStack() as stack:

        def open_one(slices: int = 1, segment_bytes: int = 1 << 20, read: tuple[int, ...] = ()) -> FeedLog:
            return stack.enter_context(FeedLog(feed, slices, segment_bytes, read))

        yield open_one


embedded_only = pytest.mark.parametrize("log", [EMBEDDED])
"""For what is about the log's files; where a module has the log in Kafka, too."""


@pytest.fixture
def log() -> str:
    """Where the logs of feeds are. A module in whose tests they are in Kafka, too, has a fixture of this name."""
    return EMBEDDED


@pytest.fixture
def make(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, log: str) -> Iterator[Make]:
    """Makes feeds with a dataset of their own, of reports unless told otherwise; closes them in the end."""
    kafka = None if log == EMBEDDED else request.getfixturevalue(log)
    with ExitStack() as stack:

        def make(statement: str = APPEND, directory: str = "", **options: Any) -> Ingesting:
            made = Ingesting(spark, tmp_path / directory, statement, kafka=kafka, **options)
            stack.callback(made.close)
            return made

        yield make
