"""``tocsin subscribe --where`` and ``tocsin publish`` to a head, at real processes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.process


class Overlay(NamedTuple):
    """A head and an edge of it."""

    head: str
    edge: str


@contextmanager
def broker(role: str, **settings: object) -> Iterator[str]:
    """A broker's URL."""
    flags = [f"--set=overlay.{name}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "tocsin", *flags, "overlay", role]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            yield next(found[1] for line in process.stderr if (found := re.search(r"listens on (ws://\S+)", line)))
        finally:
            process.terminate()
            process.stderr.read()


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Overlay]:
    directory = tmp_path_factory.mktemp("head")
    with (
        broker("head", name="h", port=0, directory=directory, client_token="t") as head,
        broker("edge", name="e", port=0, head=head, client_token="t") as edge,
    ):
        yield Overlay(head, edge)


@pytest.fixture
def tocsin(tocsin: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("TOCSIN_TOKEN", "t")
    return tocsin


def test_what_is_published_to_a_head_is_printed_where_it_matches(tocsin: Program, overlay: Overlay) -> None:
    Path("first.ndjson").write_text('{"stock": "A", "high": 39}\n{"stock": "A", "high": 41.5, "open": true}\n')
    Path("rest.csv").write_text("stock,high,open\nB,50,\nA,1e2,false\nA,007,\n")
    Path("cursors").write_text('{"h": [0]}')
    assert tocsin("publish", overlay.head, "first.ndjson", "--name", "one").out == "2 accepted, 0 refused\n"
    assert tocsin("publish", overlay.head, "rest.csv", "--name", "two", "--batch", "1").out == "3 accepted, 0 refused\n"
    asked = ("subscribe", overlay.edge, "--where", "stock = 'A' and high > 40", "--cursors", "cursors", "--count", "1")
    run = tocsin(*asked)
    assert (run.status, run.out) == (0, "one #2  stock: A, high: 41.5, open: true\n")
    # The cursors are kept, so it goes on there.
    run = tocsin(*asked, "--json")
    assert json.loads(run.out) == {
        "head": "h",
        "offset": 4,
        "publisher": "two",
        "sequence": 2,
        "content": {"stock": "A", "high": 100.0, "open": False},
    }


def test_records_that_cannot_be_publications_are_refused_with_their_line(tocsin: Program, overlay: Overlay) -> None:
    Path("bad.ndjson").write_text('{"a": [1]}\n7\n{"b": 1}\n{"b": \n')
    run = tocsin("publish", overlay.head, "bad.ndjson")
    assert (run.status, run.out) == (1, "1 accepted, 3 refused\n")
    assert "bad.ndjson:1: attribute 'a' is a list; values are strings, numbers, true or false" in run.err
    assert "bad.ndjson:2: not a JSON object" in run.err


def test_a_publication_too_large_for_the_head_ends_it_with_the_reason(tocsin: Program, overlay: Overlay) -> None:
    Path("large.ndjson").write_text(json.dumps({f"a{number}": "\x00" * 1024 for number in range(60)}))
    run = tocsin("publish", overlay.head, "large.ndjson")
    assert run.status == 1
    assert "takes no message as large as one that was sent: overlay.message_bytes" in run.err


def test_a_filter_that_cannot_be_read_is_shown_with_the_place(tocsin: Program) -> None:
    run = tocsin("subscribe", "ws://127.0.0.1:1", "--where", "stock = 'A' and high > low")
    assert (run.status, run.out) == (1, "")
    assert run.err == (
        "--where:1:24: a value is expected; a string is written 'low'\n"
        "  stock = 'A' and high > low\n"
        "                         ^\n"
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["ws://127.0.0.1:1"], "an edge wants to know what you want: --where"),
        (["Floods", "--where", "high > 1"], "Floods is no edge of an overlay"),
        (["ws://127.0.0.1:1", "--where", "high > 1", "--live"], "--live: these are for channels"),
        (["ws://127.0.0.1:1", "--where", "high > 1"], "no edge can be subscribed at: ws://127.0.0.1:1"),
        (["Floods", "--cursors", "file"], "--cursors is for an overlay's edges"),
        (["Floods", "town=Springfield"], "write --param before each of the channel's parameters: --param town=Sp"),
        (["Floods", "Fires"], "one channel at a time: give 'Fires' to another 'tocsin subscribe'"),
        (["ws://127.0.0.1:1", "--where", "high > 1", "--cursors", "."], ". cannot be read: Is a directory"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_sentence(tocsin: Program, arguments: list[str], reason: str) -> None:
    run = tocsin("subscribe", *arguments)
    assert run.status == 1
    assert reason in run.err


def test_without_the_clients_token_nobody_comes_in(tocsin: Program, overlay: Overlay) -> None:
    Path("some.ndjson").write_text('{"a": 1}\n')
    assert "--token or TOCSIN_TOKEN" in tocsin("publish", overlay.head, "some.ndjson", "--token", "x").err
    run = tocsin("subscribe", overlay.edge, "--where", "a = 1", "--token", "x")
    assert "--token or TOCSIN_TOKEN" in run.err


def test_a_publisher_has_a_name_only_at_a_head(tocsin: Program) -> None:
    Path("some.ndjson").write_text('{"a": 1}\n')
    assert "--name is for publishing to a head" in tocsin("publish", "reports", "some.ndjson", "--name", "n").err
