"""A store in a directory of its own, and a channel to subscribe to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from tocsin.data.store import Store
from tocsin.schema.definitions import Channel, ChannelKind, Column
from tocsin.schema.types import parse_type

OpenStore = Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """Where the store of this test is: an empty one for a file, or that of a database of its own."""
    return str(request.getfixturevalue("postgresql").database()) if request.param == "postgresql" else ""


@pytest.fixture
def open_store(url: str, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens the store of this test, each time as another process would; its clock ticks once a look."""
    ticks = count()

    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(ticks))

    with ExitStack() as stack:
        yield lambda: stack.enter_context(Store(tmp_path / "data", clock, url))


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store()


@pytest.fixture
def channel(store: Store) -> Channel:
    """A channel that is defined, and brokers "a" and "b" that are registered."""
    channel = Channel("OfType", ChannelKind.REPETITIVE, (Column("event", parse_type("STRING")),), "SELECT 1", 10.0)
    store.definitions.put(channel)
    store.brokers.register("a", "http://a")
    store.brokers.register("b", "http://b")
    return channel
