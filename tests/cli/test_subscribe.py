"""``tocsin subscribe``, against real brokers' cores in another thread."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.program import Program
from tests.client.lively import Lively
from tocsin.broker import actions as broker_actions
from tocsin.testing.wires import NOWHERE, Node


@contextmanager
def _living(sandbox: Lively, *dead: str) -> Iterator[Lively]:
    """A sandbox in another thread, without the brokers that are dead."""
    ready, over, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()

    async def live() -> None:
        async with sandbox:
            for broker in dead:
                sandbox.kill(broker)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(live(),))
    thread.start()
    assert ready.wait(10)
    try:
        yield sandbox
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A coordinator that the environment leads to."""
    with _living(Lively("a")) as sandbox:
        monkeypatch.setenv("TOCSIN_COORDINATOR", sandbox.url)
        yield sandbox.url


def test_notifications_are_printed_for_people(url: str, tocsin: Program) -> None:
    run = tocsin("subscribe", "Fires", "--param", "event=flood", "--count", "2")
    assert run.status == 0
    assert run.out == "Fires #1\n  be: 1, n: 1\nFires #2\n  be: 1, n: 2\n"
    assert "registered as guest-" in run.err
    assert "connected: connected to ws://" in run.err


def test_notifications_are_printed_for_programs(url: str, tocsin: Program) -> None:
    run = tocsin("subscribe", "Fires", "--json", "--count", "2")
    assert [json.loads(line) for line in run.out.splitlines()] == [
        {"channel": "Fires", "execution": n, "subscription": 1, "recovered": False, "rows": [{"be": 1, "n": n}]}
        for n in (1, 2)
    ]


def test_a_channel_is_subscribed_to_in_any_spelling_and_called_by_its_own(url: str, tocsin: Program) -> None:
    assert tocsin("subscribe", "Fires", "--count", "1").status == 0
    run = tocsin("subscribe", "fIRES", "--count", "1")
    assert run.out.startswith("Fires #")
    assert "subscribed to Fires;" in run.err


def test_a_subscriber_with_a_name_comes_back_by_its_token(url: str, tocsin: Program) -> None:
    first = tocsin("subscribe", "Fires", "--user", "ann", "--count", "1")
    token = first.err.partition("--token ")[2].split()[0]
    again = tocsin("subscribe", "Fires", "--token", token, "--count", "1")
    assert again.out == "Fires #2, recovered\n  be: 1, n: 2\n"


def test_a_name_that_is_taken_is_one_line(url: str, tocsin: Program) -> None:
    tocsin("subscribe", "Fires", "--user", "ann", "--count", "1")
    run = tocsin("subscribe", "Fires", "--user", "ann")
    assert run.status == 1
    assert "error:" in run.err
    assert "ann" in run.err


def test_a_channel_that_does_not_exist_is_one_line(url: str, tocsin: Program) -> None:
    run = tocsin("subscribe", NOWHERE)
    assert (run.status, run.out) == (1, "")
    assert "error: there is no channel Nowhere" in run.err


def test_a_token_that_is_not_a_subscribers_is_explained(url: str, tocsin: Program) -> None:
    run = tocsin("subscribe", "Fires", "--token", "demo")
    assert run.status == 1
    assert "an operator's token needs --user NAME" in run.err


def test_a_parameter_that_is_none_is_explained(tocsin: Program) -> None:
    run = tocsin("subscribe", "Fires", "--param", "flood")
    assert run.status == 1
    assert "write NAME=VALUE" in run.err
    run = tocsin("subscribe", "Fires", "--param", "event=flood", "--param", "event=fire")
    assert run.err.startswith("error: --param event is given twice")


def test_nobody_there_is_explained(tocsin: Program) -> None:
    run = tocsin("subscribe", "Fires", "--coordinator", "http://127.0.0.1:9")
    assert run.status == 1
    assert "no coordinator at http://127.0.0.1:9" in run.err


@pytest.mark.process
def test_ctrl_c_ends_it_well(url: str) -> None:
    command = [sys.executable, "-m", "tocsin", "subscribe", "Fires", "--coordinator", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "Fires #1\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 0
    assert "Traceback" not in err


@pytest.mark.process
def test_waiting_for_a_broker_is_said_and_can_be_ended() -> None:
    with _living(Lively("a"), "a") as sandbox:
        command = [sys.executable, "-m", "tocsin", "subscribe", "Fires", "--coordinator", sandbox.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr
            said = [process.stderr.readline() for _ in range(3)]
            process.send_signal(signal.SIGINT)
            process.communicate()
    assert "registered as guest-" in said[0]
    assert said[1].startswith("trouble: ")
    assert said[2].startswith("reconnecting: ")
    assert process.returncode == 0


class _WithoutData(Lively):
    """No broker gets an answer to what it asks of the data cluster."""

    def _broker_did(self, node: Node, action: broker_actions.Action) -> None:
        if not isinstance(action, broker_actions.ToData):
            super()._broker_did(node, action)


@pytest.mark.process
def test_waiting_for_the_data_cluster_is_said_and_can_be_ended() -> None:
    with _living(_WithoutData("a")) as sandbox:
        command = [sys.executable, "-m", "tocsin", "subscribe", "Fires", "--coordinator", sandbox.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr
            said = [process.stderr.readline() for _ in range(3)]
            process.send_signal(signal.SIGINT)
            process.communicate()
    assert said[1].startswith("connected: ")
    assert said[2].startswith("not subscribed yet: the broker waits for the data cluster")
    assert process.returncode == 0
