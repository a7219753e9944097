"""A registry over a store of its own, as a process would open it and open it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tocsin.data.store import Store
from tocsin.data.subscriptions import Segments, SubscriptionRegistry
from tocsin.schema.definitions import Channel, ChannelKind, Column
from tocsin.schema.types import parse_type


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as store:
        for broker in "abc":
            store.brokers.register(broker, f"http://{broker}")
        yield store


@pytest.fixture
def define(store: Store) -> Callable[..., Channel]:
    """Defines a channel whose parameters are given as name=TYPE."""

    def define(name: str, **parameters: str) -> Channel:
        columns = tuple(Column(column, parse_type(type_)) for column, type_ in parameters.items())
        channel = Channel(name, ChannelKind.CONTINUOUS, columns, "SELECT 1")
        store.definitions.put(channel)
        return channel

    return define


@pytest.fixture
def channel(define: Callable[..., Channel]) -> Channel:
    return define("OfType", event="STRING")


@pytest.fixture
def live(store: Store, channel: Channel, tmp_path: Path) -> SubscriptionRegistry:
    return SubscriptionRegistry(store, tmp_path / "subscriptions")


@pytest.fixture
def reopen(tmp_path: Path) -> Iterator[Callable[[], SubscriptionRegistry]]:
    """The registry as another process would find it."""
    with ExitStack() as stack:
        yield lambda: SubscriptionRegistry(stack.enter_context(Store(tmp_path)), tmp_path / "subscriptions")


@pytest.fixture
def rows() -> Callable[[Segments], dict[int, tuple[object, ...]]]:
    """The subscriptions that an execution would read: base and added, without the removed."""

    def rows(segments: Segments) -> dict[int, tuple[object, ...]]:
        tables = [segments.added] if segments.base is None else [pq.read_table(segments.base), segments.added]
        removed = set(segments.removed.to_pylist())
        assert segments.base_rows == (tables[0].num_rows if segments.base else 0)
        listed = [tuple(row.values()) for table in tables for row in table.to_pylist()]
        kept = [row for row in listed if row[0] not in removed]
        assert isinstance(segments.removed, pa.Array)
        assert len(kept) == len({row[0] for row in kept}) == segments.rows == len(listed) - len(removed)
        return {row[0]: row[1:] for row in kept}

    return rows
