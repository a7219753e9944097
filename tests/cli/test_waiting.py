"""Whoever waits is told for what, soon, and not too often."""

from __future__ import annotations

import threading

import httpx
import pytest

from tests.cli.program import Program
from tests.data.server.memory import MemoryCluster
from tocsin.cli.connection import RemoteCoordinator, RemoteServer
from tocsin.cli.waiting import AGAIN_SECONDS, Reasons
from tocsin.errors import BusyError, StorageError


def test_a_reason_is_told_when_it_is_new_and_again_after_a_while() -> None:
    told: list[str] = []
    now = 0.0
    reasons = Reasons(told.append, lambda: now)
    reasons.say("full", "60 s more")
    now = 1.0
    reasons.say("full", "59 s more")
    reasons.say("away")
    now += AGAIN_SECONDS
    reasons.say("away")
    assert told == ["full; 60 s more", "away", "away"]


@pytest.mark.parametrize(
    ("kind", "health", "said"),
    [
        (RemoteServer, httpx.Response(503, json={"status": "starting"}), "is starting: Spark takes a while to be up"),
        (RemoteServer, httpx.Response(200, json={"status": "ok"}), "has Spark check"),
        (RemoteServer, httpx.ConnectError("refused"), "does not answer yet"),
        (RemoteCoordinator, httpx.Response(503, json={"status": "starting"}), "is starting; it is waited for up to"),
    ],
)
def test_a_server_that_takes_long_is_told_with_its_reason(
    kind: type[RemoteServer], health: httpx.Response | Exception, said: str
) -> None:
    told, sentences = threading.Event(), list[str]()

    def tell(sentence: str) -> None:
        sentences.append(sentence)
        told.set()

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/health":
            if isinstance(health, Exception):
                raise health
            return health
        assert told.wait(10), "the answer comes only after the wait was told"
        return httpx.Response(200, content=b"done")

    server = kind("http://there", None, httpx.MockTransport(answer), tell=tell, soon=0.01)
    with server, server.doing("has Spark check it"):
        assert server.get("/slow") == b"done"
    assert said in sentences[0]
    assert "it is waited for up to 120 s" in sentences[0]


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        (BusyError("feed reports holds all it may; publish again later", retry_after=0.05), "feed reports holds all"),
        (StorageError("the disk is full"), "the disk is full"),
    ],
)
def test_a_publisher_is_told_why_nothing_is_accepted_and_how_long_it_goes_on(
    tocsin: Program, cluster: MemoryCluster, failing: Exception, said: str
) -> None:
    cluster.failing = failing
    run = tocsin("publish", "reports", "-", "--patience", "0.1", stdin=b'{"id":"a"}')
    assert run.status == 1
    first, *_, last = run.err.splitlines()
    assert (said in first, "trying again for another 0 s" in first) == (True, True)
    assert last.startswith(f"error: {said}")
    assert run.out == "0 accepted, 0 refused\n"


def test_a_publisher_is_told_that_nothing_listens(tocsin: Program) -> None:
    run = tocsin("publish", "reports", "-", "--server", "http://127.0.0.1:9", "--patience", "0.1", stdin=b'{"id":"a"}')
    assert "no answer from http://127.0.0.1:9" in run.err.splitlines()[0]
    assert "trying again for another" in run.err.splitlines()[0]
