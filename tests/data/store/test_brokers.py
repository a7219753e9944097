"""Brokers are known by name, and stay known for as long as they hold something."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tocsin.data.store import Store
from tocsin.errors import ConflictError, InvalidError
from tocsin.schema.definitions import Channel

OpenStore = Callable[[], Store]


def test_registering_again_changes_the_address_and_nothing_else(store: Store, open_store: OpenStore) -> None:
    first = store.brokers.register("a", "http://one")
    store.brokers.register("b", "http://b")
    again = store.brokers.register("a", "http://two")
    assert (again.name, again.url, again.registered_at) == ("a", "http://two", first.registered_at)
    assert open_store().brokers.all() == [again, store.brokers.all()[1]]


def test_a_broker_is_forgotten_only_when_it_holds_nothing(store: Store, channel: Channel) -> None:
    bes = store.subscriptions.attach(channel, "a", ['["fire"]'])
    with pytest.raises(ConflictError, match="broker a still holds subscriptions: detach them first"):
        store.brokers.remove("a")
    store.subscriptions.detach("a", bes)
    assert store.brokers.remove("a")
    assert not store.brokers.remove("a")
    assert [broker.name for broker in store.brokers.all()] == ["b"]


@pytest.mark.parametrize("name", ["", " a", "a\nb", "-", "x" * 129, "é", "\ud800"])
def test_a_name_that_is_none_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidError, match="is not a name: 1 to 128 of"):
        store.brokers.register(name, "http://a")
    assert store.brokers.all() == []
