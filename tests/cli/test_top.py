"""``tocsin top`` as an operator reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from tests.cli.network import Network, network
from tests.cli.program import Program
from tocsin.cli.network import status_url

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network(tmp_path_factory.mktemp("network")) as running:
        running.populate(8)
        yield running


@pytest.fixture
def top(tocsin: Program, town: Network, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("TOCSIN_COORDINATOR", town.url)
    monkeypatch.setenv("TOCSIN_TOKEN", "demo")
    return tocsin


def test_every_broker_has_a_line(top: Program) -> None:
    shown = top("top", "--once")
    assert shown.status == 0
    head, north, south, _, cov, people, balancing = shown.out.splitlines()
    assert head.split() == ["broker", "state", "subscribers", "online", "slow", "load", "incoming", "outgoing", "off"]
    assert north.split()[:5] == ["north", "serving", "4", "0", "?"]
    assert south.split()[0] == "south"
    assert cov.startswith("cov 0.98")
    assert people.startswith("8 subscribers   0 moving   0 waiting to move")
    assert balancing.startswith("balancing is on; ")


def test_programs_get_json(top: Program, town: Network) -> None:
    assert json.loads(top("top", "--json").out) == town.status()


def test_without_a_token_it_says_where_to_get_one(top: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOCSIN_TOKEN")
    refused = top("top", "--once")
    assert refused.status == 1
    assert refused.err == (
        "error: this needs a token: give one with --token or TOCSIN_TOKEN; 'tocsin token sign' makes them\n"
    )
    assert "the token is that of --token or TOCSIN_TOKEN" in top("top", "--once", "--token", "x.y").err


def test_a_coordinator_that_is_not_there_is_one_sentence(tocsin: Program) -> None:
    refused = tocsin("top", "--once", "--coordinator", "http://127.0.0.1:1")
    assert refused.status == 1
    assert refused.err.startswith("error: no answer from http://127.0.0.1:1 (")
    assert "is 'tocsin coordinator' or 'tocsin up' running there? --coordinator names another" in refused.err
    assert "not a URL" in tocsin("top", "--once", "--coordinator", "127.0.0.1:8700").err


@pytest.mark.usefixtures("cluster")
def test_what_is_no_coordinator_is_said_to_be_none(tocsin: Program) -> None:
    refused = tocsin("top", "--once", "--coordinator", os.environ["TOCSIN_SERVER"])
    assert refused.status == 1
    assert "there is no call GET /status here: this is a data cluster" in refused.err


def test_brokers_can_be_told_apart_however_narrow_it_is(top: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    _, north, south, *_ = (line for line in top("top", "--once").out.splitlines() if not line.startswith(" "))
    assert [line.split()[0] for line in (north, south)] == ["north", "south"]


@pytest.mark.parametrize(
    ("subscribers", "operators"),
    [
        ("ws://127.0.0.1:8701/subscriber", "http://127.0.0.1:8701/status"),
        ("wss://b.example.org/north/subscriber", "https://b.example.org/north/status"),
    ],
)
def test_a_broker_is_asked_beside_where_its_subscribers_go(subscribers: str, operators: str) -> None:
    assert status_url(subscribers) == operators
