"""Calls of operators: what a server says is given, what it refuses is the error it names."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter, to_thread
from contextlib import aclosing

import pytest

from tocsin.client.operator import HealthProbe, Operator, ServerCalls
from tocsin.errors import ConflictError, InvalidError, TocsinError, UnavailableError
from tocsin.model.messages import Listed
from tocsin.testing.serving import serving

Answers = dict[str, tuple[int, str]]


async def served(answers: Answers, reader: StreamReader, writer: StreamWriter) -> None:
    """One call, answered by its path."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    assert "authorization: bearer secret" in head.lower()
    status, body = answers[head.split(" ")[1]]
    writer.write(f"HTTP/1.1 {status} .\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


refusals = pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ((409, '{"error": {"code": "conflict", "message": "there is one already"}}'), ConflictError, "one already"),
        ((200, "<html>"), UnavailableError, "/channels answered with something else"),
        ((502, "<html>"), UnavailableError, "/channels answered with status 502"),
    ],
)


@refusals
async def test_a_refusal_is_the_error_that_the_server_names(
    answer: tuple[int, str], error: type[Exception], said: str
) -> None:
    async with (
        serving(lambda reader, writer: served({"/channels": answer}, reader, writer)) as port,
        Operator(f"http://127.0.0.1:{port}", "", "secret") as operator,
    ):
        with pytest.raises(error, match=said):
            await operator.channels()


async def test_what_is_found_is_given() -> None:
    answers = {
        "/channels": (200, '{"items": [{"name": "Fires", "execution": 3}], "total": 1}'),
        "/feeds/reports": (200, '{"accepted": 2}'),
    }
    async with (
        serving(lambda reader, writer: served(answers, reader, writer)) as port,
        Operator(f"http://127.0.0.1:{port}/", "", "secret") as operator,
    ):
        assert await operator.channels() == [{"name": "Fires", "execution": 3}]
        assert (await operator.publish("reports", [{"id": "a"}, {"id": "b"}])).accepted == 2


async def test_each_server_is_shown_its_own_token_only() -> None:
    shown: dict[str, str] = {}

    async def note(name: str, reader: StreamReader, writer: StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        shown[name] = head.partition("authorization: bearer ")[2].split("\r\n")[0]
        body = '{"items": [], "total": 0}'
        writer.write(f"HTTP/1.1 200 .\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    async with (
        serving(lambda reader, writer: note("data", reader, writer)) as data,
        serving(lambda reader, writer: note("coordinator", reader, writer)) as coordinator,
        Operator(f"http://127.0.0.1:{data}", f"http://127.0.0.1:{coordinator}", "one", data_token="other") as operator,
    ):
        await operator.channels()
        await operator.balance(True)
    assert shown == {"data": "other", "coordinator": "one"}


async def test_nobody_who_answers_is_said_with_the_address() -> None:
    async with Operator("", "http://127.0.0.1:1", "secret") as operator:
        with pytest.raises(UnavailableError, match=r"no answer from http://127\.0\.0\.1:1/status"):
            await operator.status()


@refusals
async def test_who_waits_for_each_answer_is_told_the_same(
    answer: tuple[int, str], error: type[Exception], said: str
) -> None:
    async with serving(lambda reader, writer: served({"/channels": answer}, reader, writer)) as port:
        with ServerCalls(f"http://127.0.0.1:{port}/", "secret") as calls, pytest.raises(error, match=said):
            await to_thread(calls.ask, Listed, "GET", "/channels")


async def test_who_waits_is_given_what_is_found() -> None:
    answers = {"/channels": (200, '{"items": [{"name": "Fires"}], "total": 1}')}
    async with serving(lambda reader, writer: served(answers, reader, writer)) as port:
        with ServerCalls(f"http://127.0.0.1:{port}", "secret") as calls:
            assert (await to_thread(calls.ask, Listed, "GET", "/channels")).items == [{"name": "Fires"}]


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("http://127.0.0.1:1", UnavailableError, r"no answer from http://127\.0\.0\.1:1 \(.+\); start one$"),
        ("127.0.0.1:8700", InvalidError, r"127\.0\.0\.1:8700 is not a URL: "),
        ("http://127.0.0.1:high", InvalidError, r"http://127\.0\.0\.1:high is not a URL: "),
    ],
)
def test_a_server_that_cannot_be_reached_is_one_sentence_with_what_to_do(
    url: str, error: type[TocsinError], said: str
) -> None:
    with ServerCalls(url, None, hint="start one") as calls, pytest.raises(error, match=said):
        calls.call("GET", "/status")


@pytest.mark.parametrize("url", ["http://127.0.0.1:high", "http://1.2.3.400"])
async def test_an_operator_whose_url_is_none_is_told_so_in_one_sentence(url: str) -> None:
    async with Operator(url, "", "secret") as operator:
        with pytest.raises(UnavailableError, match=r"^no answer from http://.+/channels \(Invalid "):
            await operator.channels()


async def test_who_asks_for_health_is_given_whatever_is_answered_at_the_url_of_a_websocket_too() -> None:
    answers = {"/health": (503, '{"status": "standby"}')}
    async with (
        serving(lambda reader, writer: served(answers, reader, writer)) as port,
        aclosing(HealthProbe(f"ws://127.0.0.1:{port}/", "secret")) as probe,
    ):
        answer = await probe.ask()
    assert (answer.status_code, answer.content) == (503, b'{"status": "standby"}')


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("ws://127.0.0.1:1", UnavailableError, r"^no answer from ws://127\.0\.0\.1:1 \(.+\)$"),
        ("127.0.0.1:8710", InvalidError, r"^127\.0\.0\.1:8710 is not a URL: "),
        ("http://127.0.0.1:high", InvalidError, r"^http://127\.0\.0\.1:high is not a URL: "),
    ],
)
async def test_a_server_that_may_come_is_told_from_a_url_at_which_none_ever_will(
    url: str, error: type[Exception], said: str
) -> None:
    async with aclosing(HealthProbe(url)) as probe:
        with pytest.raises(error, match=said):
            await probe.ask()
