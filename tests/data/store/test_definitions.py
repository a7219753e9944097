"""Definitions come back as they were put, in the order of creation."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tocsin.data.store import Store
from tocsin.errors import ConflictError
from tocsin.schema.definitions import Channel, ChannelKind, Column, Dataset, DatasetKind, Definition, Feed
from tocsin.schema.types import parse_type

OpenStore = Callable[[], Store]

REPORTS = Dataset(
    "Reports",
    DatasetKind.APPEND,
    (Column("id", parse_type("STRING")), Column("tags", parse_type("ARRAY<STRUCT<n: DECIMAL(10, 2)>>"))),
    "id",
)
FEED = Feed("reports", "Reports", "id", 4)
CHANNEL = Channel("OfType", ChannelKind.REPETITIVE, (Column("event", parse_type("STRING")),), "SELECT 'é'\n;", 0.5)


def definitions(store: Store) -> list[Definition]:
    return [stored.definition for stored in store.definitions.all()]


def test_definitions_survive_in_the_order_of_creation(store: Store, open_store: OpenStore) -> None:
    for definition in (REPORTS, FEED, CHANNEL):
        store.definitions.put(definition)
    assert definitions(open_store()) == [REPORTS, FEED, CHANNEL]
    times = [stored.created_at for stored in store.definitions.all()]
    assert times == sorted(times)


def test_a_replacement_keeps_the_place_and_the_time_of_what_it_replaces(store: Store) -> None:
    for definition in (CHANNEL, REPORTS):
        store.definitions.put(definition)
    before = store.definitions.all()
    changed = msgspec.structs.replace(CHANNEL, name="OFTYPE", body="SELECT 2")
    store.definitions.put(changed)
    assert definitions(store) == [changed, REPORTS]
    assert store.definitions.all()[0].created_at == before[0].created_at


def test_each_kind_has_names_of_its_own_whatever_their_case(store: Store) -> None:
    store.definitions.put(REPORTS)
    store.definitions.put(FEED)
    assert store.definitions.find(Dataset, "REPORTS") == REPORTS
    assert store.definitions.find(Feed, "Reports") == FEED
    assert store.definitions.find(Channel, "reports") is None


def test_removing_tells_whether_there_was_something(store: Store) -> None:
    store.definitions.put(REPORTS)
    assert not store.definitions.remove(Feed, "Reports")
    assert store.definitions.remove(Dataset, "reports")
    assert not store.definitions.remove(Dataset, "reports")
    assert definitions(store) == []


def test_the_parameters_of_a_channel_with_subscriptions_stay_as_they_are(store: Store, channel: Channel) -> None:
    other = msgspec.structs.replace(channel, parameters=(Column("event", parse_type("INT")),))
    store.definitions.put(other)
    store.definitions.put(channel)
    bes = store.subscriptions.attach(channel, "a", ['["fire"]'])
    with pytest.raises(ConflictError, match="OfType has subscriptions with other parameters: drop the channel"):
        store.definitions.put(other)
    store.definitions.put(msgspec.structs.replace(channel, body="SELECT 2"))
    assert store.subscriptions.attach(channel, "a", ['["fire"]']) == bes
