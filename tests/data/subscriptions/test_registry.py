"""What the registry tells executions and brokers about the subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from threading import Barrier
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from tocsin.data.store import Store
from tocsin.data.subscriptions import Segments, SubscriptionRegistry
from tocsin.errors import InvalidError, NotFoundError
from tocsin.schema.definitions import Channel, Column
from tocsin.schema.types import parse_type

Define = Callable[..., Channel]
Rows = Callable[[Segments], dict[int, tuple[object, ...]]]


def events(*names: object) -> Sequence[Mapping[str, object]]:
    return [{"event": str(name)} for name in names]


def shares(live: SubscriptionRegistry, bes: Sequence[int]) -> dict[str, list[int]]:
    return {broker: share.tolist() for broker, share in live.holders(bes).items()}


def test_an_execution_reads_the_values_in_the_parameters_own_types(
    define: Define, live: SubscriptionRegistry, rows: Rows
) -> None:
    channel = define("All", a="INT", b="DOUBLE", c="DECIMAL(10, 2)", d="TIMESTAMP", e="DATE", f="BOOLEAN", g="STRING")
    given = {"a": 5.0, "b": 1, "c": "2.5", "d": "2026-01-31T14:00:00+02:00", "e": "2026-01-31", "f": True, "g": "é"}
    (be,) = live.attach(channel, "a", [given])
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    values = (5, 1.0, Decimal("2.50"), noon, date(2026, 1, 31), True, "é")
    assert live.segments("all").added.schema == pa.schema(
        [
            pa.field("__be", pa.int64(), nullable=False),
            pa.field("__p0", pa.int32(), nullable=False),
            pa.field("__p1", pa.float64(), nullable=False),
            pa.field("__p2", pa.decimal128(10, 2), nullable=False),
            pa.field("__p3", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("__p4", pa.date32(), nullable=False),
            pa.field("__p5", pa.bool_(), nullable=False),
            pa.field("__p6", pa.string(), nullable=False),
        ]
    )
    assert rows(live.segments("all")) == {be: values}
    assert live.rebase("All")
    assert rows(live.segments("All")) == {be: values}
    assert live.values(be) == ("All", dict(zip("abcdefg", values, strict=True)))


def test_a_channel_without_parameters_has_one_subscription(
    define: Define, live: SubscriptionRegistry, rows: Rows
) -> None:
    channel = define("Everything")
    (be, again) = live.attach(channel, "a", [{}, {}])
    assert be == again == live.attach(channel, "b", [{}])[0]
    live.rebase("everything")
    assert rows(live.segments("everything")) == {be: ()}
    assert live.values(be) == ("Everything", {})


def test_equal_subscriptions_are_one_and_attaching_again_changes_nothing(
    channel: Channel, live: SubscriptionRegistry, rows: Rows
) -> None:
    one, two, again = live.attach(channel, "a", events(1, 2, 1))
    assert one == again
    before = live.segments("OfType")
    assert live.attach(channel, "a", events(2, 1)) == [two, one]
    assert live.attach(channel, "b", events(2)) == [two]
    assert live.segments("oftype") is before
    assert rows(before) == {one: ("1",), two: ("2",)}
    assert live.count("OfType") == 2
    assert live.attach(channel, "a", []) == []


@pytest.mark.parametrize("bad", [{"event": 1}, {}, {"event": None}, {"event": "x", "more": 1}, ["x"], None])
def test_one_invalid_element_refuses_the_batch_and_is_named_by_its_index(
    channel: Channel, live: SubscriptionRegistry, bad: Any
) -> None:
    with pytest.raises(InvalidError, match=r"^subscription 2 to OfType: .*; none were attached$"):
        live.attach(channel, "a", [*events(1, 2), bad, {"event": 3}])
    assert live.count("OfType") == 0


def test_holders_tells_each_broker_its_own(channel: Channel, live: SubscriptionRegistry) -> None:
    one, two, three = live.attach(channel, "a", events(1, 2, 3))
    (four,) = live.attach(channel, "b", events(4))
    live.attach(channel, "b", events(2))
    assert shares(live, [four, two, one, 999]) == {"a": [one, two], "b": [two, four]}
    assert shares(live, [three]) == {"a": [three]}
    assert shares(live, []) == {}
    assert live.of("a").tolist() == [one, two, three]
    assert live.of("nobody").tolist() == []


def test_what_nobody_holds_any_more_is_gone(channel: Channel, live: SubscriptionRegistry, rows: Rows) -> None:
    one, two = live.attach(channel, "a", events(1, 2))
    live.attach(channel, "b", events(2))
    assert live.detach("a", [two, one, one, 999]).tolist() == [one]
    assert rows(live.segments("OfType")) == {two: ("2",)}
    assert shares(live, [one, two]) == {"b": [two]}
    with pytest.raises(NotFoundError, match=f"there is no subscription {one}"):
        live.values(one)
    (anew,) = live.attach(channel, "a", events(1))
    assert anew > two


def test_a_broker_that_leaves_lets_go_of_everything(
    store: Store, define: Define, channel: Channel, live: SubscriptionRegistry
) -> None:
    other = define("Other", n="INT")
    bes = [*live.attach(channel, "a", events(1, 2)), *live.attach(other, "a", [{"n": 1}])]
    live.attach(channel, "b", events(2))
    assert live.leave("a").tolist() == [bes[0], bes[2]]
    assert store.brokers.remove("a")
    assert (live.count("OfType"), live.count("Other")) == (1, 0)


@pytest.mark.parametrize("definition_first", [True, False])
def test_a_dropped_channel_is_gone_in_either_order(
    store: Store, define: Define, channel: Channel, live: SubscriptionRegistry, rows: Rows, definition_first: bool
) -> None:
    other = define("Other", n="INT")
    kept = live.attach(other, "a", [{"n": 1}])
    dropped = live.attach(channel, "a", events(1, 2))
    live.rebase("OfType")
    dropped += live.attach(channel, "b", events(3))
    if definition_first:
        store.definitions.remove(Channel, "OfType")
    assert live.drop("OFTYPE").tolist() == dropped
    store.definitions.remove(Channel, "OfType")
    assert shares(live, [*kept, *dropped]) == {"a": kept}
    with pytest.raises(NotFoundError, match='there is no channel "OfType": create it first'):
        live.segments("OfType")
    assert live.drop("OfType").tolist() == []
    anew = define("OfType", n="INT", m="INT")
    assert live.segments("OfType").added.column_names == ["__be", "__p0", "__p1"]
    (be,) = live.attach(anew, "a", [{"n": 1, "m": 2}])
    assert rows(live.segments("OfType")) == {be: (1, 2)}


def test_a_channel_created_anew_before_anyone_subscribed_has_its_new_parameters(
    store: Store, channel: Channel, live: SubscriptionRegistry
) -> None:
    before = live.segments("OfType").generation
    store.definitions.put(msgspec.structs.replace(channel, parameters=(Column("n", parse_type("INT")),)))
    assert live.segments("OfType").added.schema.field("__p0").type == pa.int32()
    assert live.segments("OfType").generation > before


def test_unknown_names_are_refused(channel: Channel, live: SubscriptionRegistry) -> None:
    with pytest.raises(NotFoundError, match='there is no broker "z"'):
        live.attach(channel, "z", events(1))
    with pytest.raises(NotFoundError, match='there is no channel "Nowhere"'):
        live.attach(msgspec.structs.replace(channel, name="Nowhere"), "a", events(1))
    with pytest.raises(InvalidError, match="whole numbers of at most 64 bits"):
        live.values(1 << 70)
    with pytest.raises(InvalidError, match="whole numbers of at most 64 bits"):
        live.detach("a", [1 << 70])
    assert live.count("OfType") == 0


def test_the_generation_grows_with_each_change_and_only_then(channel: Channel, live: SubscriptionRegistry) -> None:
    generations = [live.segments("OfType").generation]

    def grown() -> bool:
        generations.append(live.segments("OfType").generation)
        return generations[-1] > generations[-2]

    bes = live.attach(channel, "a", events(1, 2))
    assert grown()
    assert not grown()
    live.attach(channel, "a", events(1))
    assert not grown()
    live.rebase("OfType")
    assert grown()
    live.detach("a", bes[:1])
    assert grown()


def test_a_snapshot_costs_what_changed_and_not_what_there_is(channel: Channel, live: SubscriptionRegistry) -> None:
    live.attach(channel, "a", events(*range(30_000)))
    large = live.segments("OfType")
    assert (large.base_rows, large.added.num_rows) == (30_000, 0)
    more = live.attach(channel, "a", events(*range(30_000, 31_000)))
    live.detach("a", more[:10])
    segments = live.segments("OfType")
    assert segments.base == large.base
    assert (segments.added.num_rows, len(segments.removed), segments.rows) == (990, 0, 30_990)


def test_threads_attaching_and_detaching_at_once_lose_nothing(
    channel: Channel, live: SubscriptionRegistry, rows: Rows
) -> None:
    barrier = Barrier(6)

    def work(number: int) -> tuple[list[int], list[int]]:
        barrier.wait()
        attached: list[int] = []
        for start in range(0, 2_400, 400):
            attached += live.attach(channel, "abc"[number % 3], events(*range(start, start + 600)))
            mine = live.attach(channel, "abc"[number % 3], events(*(f"{number}-{start}-{n}" for n in range(200))))
            live.segments("OfType")
            live.detach("abc"[number % 3], mine[:100])
            attached += mine[100:]
            live.rebase("OfType")
        return attached, []

    with ThreadPoolExecutor(6) as pool:
        found = {be for attached, _ in pool.map(work, range(6)) for be in attached}
    assert len(found) == 2_600 + 6 * 6 * 100
    assert set(rows(live.segments("OfType"))) == found
    assert set(np.concatenate([live.of(broker) for broker in "abc"]).tolist()) == found
