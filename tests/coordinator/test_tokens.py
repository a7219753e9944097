"""A token says who somebody is, and nobody but the coordinator can make one."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.coordinator.tokens import Claims, sign, verify
from tocsin.errors import UnauthorizedError

ANN = Claims("ann", "subscriber", 100.0)


def test_a_token_says_what_was_signed() -> None:
    assert verify("key", sign("key", ANN), 99.9) == ANN


def test_a_token_can_stand_in_an_address() -> None:
    assert set(sign("key", ANN)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


def test_a_token_ends() -> None:
    with pytest.raises(UnauthorizedError, match="no longer valid"):
        verify("key", sign("key", ANN), 100.0)


def test_another_key_signs_nothing() -> None:
    with pytest.raises(UnauthorizedError, match="not signed here"):
        verify("key", sign("other", ANN), 0.0)


def test_claims_cannot_be_exchanged() -> None:
    _, mark = sign("key", ANN).split(".")
    body = urlsafe_b64encode(b'{"name":"bob","role":"subscriber","expires":100.0}').rstrip(b"=").decode()
    with pytest.raises(UnauthorizedError):
        verify("key", f"{body}.{mark}", 0.0)


@given(st.text())
def test_anything_else_is_no_token(text: str) -> None:
    with pytest.raises(UnauthorizedError):
        verify("key", text, 0.0)


@given(st.data())
def test_a_changed_token_never_says_something_else(data: st.DataObject) -> None:
    token = sign("key", ANN)
    at = data.draw(st.integers(0, len(token) - 1))
    changed = token[:at] + data.draw(st.characters()) + token[at + 1 :]
    try:
        claims = verify("key", changed, 0.0)
    except UnauthorizedError:
        return
    assert claims == ANN
