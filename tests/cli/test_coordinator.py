"""``tocsin coordinator`` as a newcomer starts it. That it starts, serves and stops is seen in ``test_top``."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

from tests.cli.program import Program
from tocsin.coordinator.store.sqlite import SqliteStore

ANYWHERE = "--set=coordinator.port=0"


def test_a_port_that_is_taken_is_one_sentence(tocsin: Program) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused = tocsin(f"--set=coordinator.port={port}", "coordinator")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.endswith("Address already in use; choose another with --set coordinator.port=N\n")


def test_the_demo_token_is_refused_where_others_can_reach_it(tocsin: Program) -> None:
    refused = tocsin(ANYWHERE, "--set=coordinator.host=0.0.0.0", "coordinator", "--demo-token")
    assert refused.status == 1
    assert "coordinator.host = 0.0.0.0 can be reached from other machines" in refused.err
    assert "'tocsin token sign'" in refused.err


def test_a_second_one_on_the_same_directory_is_refused(tocsin: Program) -> None:
    Path("tocsin-coordinator").mkdir()
    with closing(SqliteStore(Path("tocsin-coordinator/coordinator.sqlite"))) as first:
        first.claim()
        refused = tocsin(ANYWHERE, "coordinator")
    assert refused.status == 1
    assert "stop that process first" in refused.err


def test_settings_that_make_no_sense_are_one_sentence_each(tocsin: Program) -> None:
    assert "there are nearest, " in tocsin(ANYWHERE, "--set=coordinator.placement=near", "coordinator").err
    assert "there is no planner 'best'" in tocsin(ANYWHERE, "--set=coordinator.migration=best", "coordinator").err
    assert "postgresql://user@host/database" in tocsin(ANYWHERE, "--set=coordinator.store=mysql://x", "coordinator").err
    missing = tocsin(ANYWHERE, "--set=coordinator.tls_certificate=none.pem", "coordinator").err
    assert missing == "error: coordinator.tls_certificate = none.pem cannot be read: No such file or directory\n"
    alone = tocsin(ANYWHERE, "--set=coordinator.tls_key=key.pem", "coordinator").err
    assert alone == "error: coordinator.tls_key is set, but not coordinator.tls_certificate: it needs both\n"
    Path("nonsense.pem").write_text("nonsense", encoding="utf-8")
    nonsense = tocsin(ANYWHERE, "--set=coordinator.tls_certificate=nonsense.pem", "coordinator").err
    assert "must be PEM files of a certificate and its key" in nonsense


def test_a_database_that_is_not_there_is_one_sentence_without_its_password(tocsin: Program) -> None:
    store = "--set=coordinator.store=postgresql://tocsin:secret@127.0.0.1:1/tocsin"
    refused = tocsin(ANYWHERE, store, "coordinator")
    assert refused.status == 1
    assert refused.err.startswith("error: postgresql://tocsin@127.0.0.1:1/tocsin: ")
    assert "secret" not in refused.err
