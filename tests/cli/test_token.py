from __future__ import annotations

from pathlib import Path

from tests.cli.program import Program
from tocsin.data.store import Store


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


def test_another_data_directory_has_tokens_of_its_own(tocsin: Program) -> None:
    tocsin("--set", "data.directory=other", "token", "add", "ann", "--role", "admin")
    assert "no tokens yet" in tocsin("token", "list").out
    assert "ann" in tocsin("--set", "data.directory=other", "token", "list").out
