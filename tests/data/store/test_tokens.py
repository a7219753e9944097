"""A token is shown once, is known afterwards by its hash alone, and is accepted until it is revoked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tocsin.data.store import Role, Store
from tocsin.errors import ConflictError, InvalidError

OpenStore = Callable[[], Store]


@pytest.mark.parametrize("role", ["admin", "publisher", "broker"])
def test_a_token_gives_its_role_until_it_is_revoked(store: Store, open_store: OpenStore, role: str) -> None:
    token = store.tokens.add("ops", role)
    assert token.startswith("tcs_")
    assert len(token) > 40
    assert open_store().tokens.role_of(token) == ("ops", Role(role))
    assert store.tokens.revoke("ops")
    assert store.tokens.role_of(token) is None
    assert not store.tokens.revoke("ops")


def test_a_taken_name_is_refused_and_its_token_stays_good(store: Store) -> None:
    token = store.tokens.add("ops", "admin")
    with pytest.raises(ConflictError, match="there is a token ops already: revoke it first"):
        store.tokens.add("ops", "broker")
    assert store.tokens.role_of(token) == ("ops", Role.ADMIN)
    assert [(token.name, token.role) for token in store.tokens.all()] == [("ops", Role.ADMIN)]


def test_an_unknown_role_is_refused_with_those_there_are(store: Store) -> None:
    with pytest.raises(InvalidError, match='unknown role "root"; roles are admin, publisher, broker'):
        store.tokens.add("ops", "root")


@pytest.mark.parametrize("text", ["", "tcs_", "ops", "\ud800", "x" * 10_000])
def test_what_is_no_token_gives_no_role(store: Store, text: str) -> None:
    store.tokens.add("ops", "admin")
    assert store.tokens.role_of(text) is None
