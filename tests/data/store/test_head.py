"""Each start of the data cluster has a term of its own, by which what an earlier one says late is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tocsin.data.store import Store
from tocsin.errors import SupersededError

OpenStore = Callable[[], Store]


def test_each_claim_has_a_higher_term_than_all_before(open_store: OpenStore) -> None:
    terms = []
    for _ in range(3):
        with open_store() as store:
            store.claim()
            terms.append(store.term)
    assert terms == [1, 2, 3]


def test_who_only_looks_has_no_term_and_takes_none(store: Store, open_store: OpenStore) -> None:
    store.claim()
    assert open_store().term == 0
    assert open_store().head.last_seen().term == store.term


def test_a_store_that_is_an_older_copy_goes_on_above_every_term_that_was_seen(store: Store) -> None:
    store.claim()
    assert store.head.raise_above(store.term, 41) == 42
    assert store.head.last_seen().term == 42


def test_whoever_was_superseded_raises_nothing(store: Store) -> None:
    store.claim()
    superseded, store.term = store.term, store.head.begin()
    with pytest.raises(SupersededError, match="another data cluster has taken over since term 1"):
        store.head.raise_above(superseded, 41)
    assert store.head.last_seen().term == store.term


def test_who_ended_in_order_is_seen_to_have(store: Store) -> None:
    assert store.head.last_seen().ended
    store.claim()
    assert not store.head.last_seen().ended
    store.head.end(store.term - 1)
    assert not store.head.last_seen().ended
    store.head.end(store.term)
    assert store.head.last_seen().ended
