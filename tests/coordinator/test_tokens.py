"""A token says who somebody is, and nobody but the coordinator can make one."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import example, given
from hypothesis import strategies as st

from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.tokens import Claims, SigningKey, Verifier, _KnownToken, _KnownTokens, claims
from tocsin.errors import InvalidError, UnauthorizedError

RING = Keyring.new()
KEY = RING.signing
ANN = Claims("ann", "subscriber", 100.0, ("fire",), 0, "id", KEY.id)

NESTED = b'{"x":' + 2000 * b"[" + 2000 * b"]" + b"}"


def verify(ring: Keyring, token: str, now: float = 0.0) -> Claims:
    return Verifier(ring.trust).verify(token, now)


def encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def test_a_token_says_what_was_signed() -> None:
    assert verify(RING, KEY.sign(ANN), 99.9) == ANN


def test_a_token_can_stand_in_an_address() -> None:
    assert set(KEY.sign(ANN)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


def test_every_token_has_an_id_of_its_own() -> None:
    assert claims("ann", "subscriber", 100.0).id != claims("ann", "subscriber", 100.0).id


def test_a_token_ends() -> None:
    with pytest.raises(UnauthorizedError, match="no longer valid"):
        verify(RING, KEY.sign(ANN), 100.0)


def test_a_key_of_another_system_signs_nothing() -> None:
    with pytest.raises(UnauthorizedError, match="a key that is not in use here"):
        verify(RING, SigningKey.new().sign(ANN))


def test_another_key_under_the_same_id_signs_nothing() -> None:
    with pytest.raises(UnauthorizedError, match="not signed here"):
        verify(RING, msgspec.structs.replace(SigningKey.new(), id=KEY.id).sign(ANN))


def test_what_brokers_are_told_signs_nothing() -> None:
    told = RING.trust.keys[KEY.id].text
    assert KEY.secret not in msgspec.json.encode(RING.trust).decode()
    with pytest.raises(UnauthorizedError, match="not signed here"):
        verify(RING, SigningKey(KEY.id, told).sign(msgspec.structs.replace(ANN, role="operator")))


def test_claims_cannot_be_exchanged() -> None:
    _, mark = KEY.sign(ANN).split(".")
    with pytest.raises(UnauthorizedError):
        verify(RING, f"{encoded(msgspec.json.encode(msgspec.structs.replace(ANN, name='bob')))}.{mark}")


def test_a_token_of_an_earlier_version_is_refused_with_what_to_do() -> None:
    body = encoded(b'{"name":"ann","role":"broker","expires":1e12}')
    mark = encoded(hmac.new(b"key", body.encode(), sha256).digest())
    with pytest.raises(UnauthorizedError, match=r"earlier version of Tocsin.*tocsin token sign NAME --role ROLE"):
        verify(RING, f"{body}.{mark}")


def test_two_keys_are_taken_for_a_while() -> None:
    old, rotated = KEY.sign(ANN), RING.rotate(10.0, 50.0)
    new = rotated.signing.sign(ANN)
    assert verify(rotated, old, 40.0).expires == 50.0, "it ends with its key"
    assert verify(rotated, new, 99.0).name == "ann"
    with pytest.raises(UnauthorizedError, match="no longer valid"):
        verify(rotated, old, 50.0)
    with pytest.raises(UnauthorizedError, match="not in use here"):
        verify(rotated.at(50.0), old, 40.0)


def test_a_second_rotation_does_not_prolong_the_first_key() -> None:
    ring = RING.rotate(10.0, 50.0).rotate(20.0, 90.0)
    assert [key.until for key in ring.keys] == [50.0, 90.0, None]


def test_a_key_that_is_known_to_others_can_be_ended_at_once() -> None:
    ring = RING.without("id").without_name("bob").rotate(10.0, 10.0)
    assert len(ring.keys) == 1
    assert (ring.withdrawn, ring.series) == (frozenset(), {}), "nothing that was withdrawn could be used any more"
    with pytest.raises(UnauthorizedError, match="not in use here"):
        verify(ring, KEY.sign(ANN))


def test_one_token_can_be_withdrawn() -> None:
    ring = RING.without("id")
    with pytest.raises(UnauthorizedError, match="the token of ann was withdrawn"):
        verify(ring, KEY.sign(ANN))
    assert verify(ring, KEY.sign(msgspec.structs.replace(ANN, id="other"))).name == "ann"


def test_all_tokens_of_a_name_can_be_withdrawn_and_new_ones_made() -> None:
    ring = RING.without_name("ann")
    with pytest.raises(UnauthorizedError, match="the token of ann was withdrawn"):
        verify(ring, KEY.sign(ANN))
    new = ring.sign(ANN)
    assert verify(ring, new).name == "ann"
    with pytest.raises(UnauthorizedError, match="the token of ann was withdrawn"):
        verify(ring.without_name("ann"), new)
    assert verify(ring, KEY.sign(msgspec.structs.replace(ANN, name="bob"))).name == "bob"


@pytest.mark.parametrize("group", ["", "two words", "a" * 129, "fire\n", "-fire"])
def test_what_is_no_group_is_refused(group: str) -> None:
    with pytest.raises(InvalidError, match="is no group"):
        claims("ann", "subscriber", 1.0, (group,))


@given(st.text())
@example(f"{encoded(NESTED)}.AAAA")
def test_anything_else_is_no_token(text: str) -> None:
    with pytest.raises(UnauthorizedError):
        verify(RING, text)


@given(st.data())
def test_a_changed_token_never_says_something_else(data: st.DataObject) -> None:
    token = KEY.sign(ANN)
    at = data.draw(st.integers(0, len(token) - 1))
    changed = token[:at] + data.draw(st.characters()) + token[at + 1 :]
    try:
        found = verify(RING, changed)
    except UnauthorizedError:
        return
    assert found == ANN


def test_a_signature_that_was_found_right_is_right_for_the_same_key_and_words_only() -> None:
    token, other = KEY.sign(ANN), msgspec.structs.replace(SigningKey.new(), id=KEY.id)
    assert verify(RING, token) == verify(RING, token)
    body, _, mark = token.partition(".")
    for ring, forged in (
        (Keyring((other,)), token),
        (RING, f"{body}.{mark[::-1]}"),
        (RING, f"{encoded(b'{}')}.{mark}"),
    ):
        with pytest.raises(UnauthorizedError):
            verify(ring, forged)


def test_a_token_that_was_signed_elsewhere_is_taken_and_a_forged_one_is_not() -> None:
    mine = msgspec.structs.replace(ANN, id="elsewhere")
    body = encoded(msgspec.json.encode(mine))
    right, wrong = (
        Ed25519PrivateKey.from_private_bytes(urlsafe_b64decode(key.secret + "=")).sign(body.encode())
        for key in (KEY, SigningKey.new())
    )
    assert verify(RING, f"{body}.{encoded(right)}") == mine
    with pytest.raises(UnauthorizedError):
        verify(RING, f"{body}.{encoded(wrong)}")


def test_only_so_many_tokens_are_remembered_and_the_others_are_read_again() -> None:
    known = _KnownTokens(2)
    for token in ("one", "two", "three"):
        known.add(KEY.public, token, ANN)
    assert [known.get(token) for token in ("one", "three", "four")] == [None, _KnownToken(KEY.public, ANN), None]


def test_a_token_that_is_remembered_can_be_withdrawn_like_any_other() -> None:
    token = KEY.sign(ANN)
    assert verify(RING, token) == ANN
    with pytest.raises(UnauthorizedError, match="withdrawn"):
        Verifier(msgspec.structs.replace(RING.trust, withdrawn=frozenset({ANN.id}))).verify(token, 0.0)
