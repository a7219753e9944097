from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.cli.program import Program
from tocsin.coordinator.store.records import Assignment, PutAssignment
from tocsin.coordinator.store.sqlite import SqliteStore
from tocsin.coordinator.tokens import Verifier
from tocsin.data.store import Store
from tocsin.errors import UnauthorizedError
from tocsin.overlay.server.access import OverlayAccess
from tocsin.settings.overlay import OverlaySettings


def test_a_token_is_printed_once_and_works(tocsin: Program) -> None:
    added = tocsin("token", "add", "ann", "--role", "publisher")
    assert added.status == 0
    token = added.out.strip()
    with Store(Path("tocsin-data")) as store:
        assert store.tokens.role_of(token) == ("ann", "publisher")
    listed = tocsin("token", "list")
    assert [line.split()[:2] for line in listed.out.splitlines()] == [["name", "role"], ["ann", "publisher"]]
    assert token not in listed.out


def test_a_revoked_token_works_no_longer(tocsin: Program) -> None:
    token = tocsin("token", "add", "ann", "--role", "broker").out.strip()
    assert tocsin("token", "revoke", "ann").status == 0
    with Store(Path("tocsin-data")) as store:
        assert store.tokens.role_of(token) is None
    assert "no tokens yet" in tocsin("token", "list").out


def test_what_cannot_be_is_one_line_with_what_to_do(tocsin: Program) -> None:
    assert "roles are admin, publisher, broker" in tocsin("token", "add", "ann", "--role", "king").err
    assert "'tocsin token list' shows" in tocsin("token", "revoke", "nobody").err
    tocsin("token", "add", "ann", "--role", "admin")
    assert tocsin("token", "add", "ann", "--role", "admin").status == 1


def test_a_directory_that_cannot_be_made_is_refused_with_what_to_do(tocsin: Program) -> None:
    Path("file").write_text("", encoding="utf-8")
    for section, command in (("data", "add"), ("coordinator", "sign")):
        refused = tocsin("--set", f"{section}.directory=file/below", "token", command, "ann", "--role", "broker")
        assert refused.status == 1
        assert refused.err.startswith("error: file/below cannot be used (")
        assert f"--set {section}.directory=PATH" in refused.err


def test_another_data_directory_has_tokens_of_its_own(tocsin: Program) -> None:
    tocsin("--set", "data.directory=other", "token", "add", "ann", "--role", "admin")
    assert "no tokens yet" in tocsin("token", "list").out
    assert "ann" in tocsin("--set", "data.directory=other", "token", "list").out


@pytest.mark.parametrize("role", ["subscriber", "broker", "operator"])
def test_a_signed_token_is_good_for_the_coordinator_of_the_directory(tocsin: Program, role: str) -> None:
    signed = tocsin("token", "sign", "ann", "--role", role)
    assert signed.status == 0
    assert "valid for 30 days, with the id " in signed.err
    with closing(SqliteStore(Path("tocsin-coordinator/coordinator.sqlite"))) as store:
        claims = Verifier(store.keyring().trust).verify(signed.out.strip(), time.time())
    assert (claims.name, claims.role) == ("ann", role)


def test_a_signed_token_ends_when_it_is_told_to(tocsin: Program) -> None:
    signed = tocsin("token", "sign", "ann", "--role", "operator", "--days", "2")
    with closing(SqliteStore(Path("tocsin-coordinator/coordinator.sqlite"))) as store:
        verifier = Verifier(store.keyring().trust)
        verifier.verify(signed.out.strip(), time.time() + 86_400)
        with pytest.raises(UnauthorizedError, match="no longer valid"):
            verifier.verify(signed.out.strip(), time.time() + 3 * 86_400)


def test_what_cannot_be_signed_is_refused(tocsin: Program) -> None:
    assert "'two words' is no name" in tocsin("token", "sign", "two words", "--role", "operator").err
    assert "'king' is not one of" in tocsin("token", "sign", "ann", "--role", "king").err
    assert not Path("tocsin-coordinator").exists()


def test_a_name_that_was_removed_is_signed_for_another_person(tocsin: Program) -> None:
    old = tocsin("token", "sign", "ann", "--role", "subscriber", "--days", "400")
    with closing(SqliteStore(Path("tocsin-coordinator/coordinator.sqlite"))) as store:
        assert store.keyring().longest > time.time() + 399 * 86_400, "that it was removed is remembered as long"
        store.write([PutAssignment(Assignment("ann", coming=2, gone=9e9))])
        new = tocsin("token", "sign", "ann", "--role", "subscriber")
        tokens = [Verifier(store.keyring().trust).verify(each.out.strip(), time.time()) for each in (old, new)]
        assert [token.registration for token in tokens] == [0, 1]
        assert store.unplaced_subscribers() == [("ann", 1)]


def test_a_signed_subscriber_is_registered_with_its_groups(tocsin: Program) -> None:
    signed = tocsin("token", "sign", "ann", "--role", "subscriber", "--group", "police", "--group", "fire")
    with closing(SqliteStore(Path("tocsin-coordinator/coordinator.sqlite"))) as store:
        assert store.unplaced_subscribers() == [("ann", 0)]
        claims = Verifier(store.keyring().trust).verify(signed.out.strip(), time.time())
    assert claims.groups == ("fire", "police")
    assert f"with the id {claims.id}" in signed.err
    assert "is in no group" in tocsin("token", "sign", "north", "--role", "broker", "--group", "fire").err


def test_signed_tokens_are_withdrawn_by_id_and_by_name(tocsin: Program) -> None:
    first, second, other = (
        tocsin("token", "sign", name, "--role", "subscriber").out.strip() for name in ("ann", "ann", "bob")
    )
    file = Path("tocsin-coordinator/coordinator.sqlite")
    with closing(SqliteStore(file)) as store:
        number = Verifier(store.keyring().trust).verify(first, time.time()).id
    for arguments, gone in ((("--id", number), {first}), (("ann",), {first, second})):
        assert tocsin("token", "withdraw", *arguments).status == 0
        with closing(SqliteStore(file)) as store:
            verifier = Verifier(store.keyring().trust)
        for token in (first, second, other):
            assert _taken(verifier, token) == (token not in gone)
    assert "say whose tokens, or which one" in tocsin("token", "withdraw").err


def test_a_rotated_key_is_taken_for_a_while_or_not_at_all(tocsin: Program) -> None:
    old = tocsin("token", "sign", "ann", "--role", "operator").out.strip()
    file = Path("tocsin-coordinator/coordinator.sqlite")
    for days, taken in (("1", True), ("0", False)):
        assert tocsin("token", "rotate", "--days", days).status == 0
        new = tocsin("token", "sign", "ann", "--role", "operator").out.strip()
        with closing(SqliteStore(file)) as store:
            verifier = Verifier(store.keyring().trust)
        assert (_taken(verifier, old), _taken(verifier, new)) == (taken, True)


def test_the_public_keys_are_printed_as_the_overlay_takes_them(tocsin: Program) -> None:
    token = tocsin("token", "sign", "ann", "--role", "subscriber").out.strip()
    tocsin("token", "rotate", "--days", "1")
    printed = tocsin("token", "keys").out.split()
    assert len(printed) == 2
    access = OverlayAccess(msgspec.convert({"public_keys": printed}, OverlaySettings))
    assert access.require_client(f"Bearer {token}").name == "ann"


def _taken(verifier: Verifier, token: str) -> bool:
    try:
        verifier.verify(token, time.time())
    except UnauthorizedError:
        return False
    return True
