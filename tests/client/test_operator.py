"""Calls of operators: what a server says is given, what it refuses is the error it names."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter

import pytest

from tocsin.client.operator import Operator
from tocsin.errors import ConflictError, UnavailableError
from tocsin.testing.serving import serving

Answers = dict[str, tuple[int, str]]


async def served(answers: Answers, reader: StreamReader, writer: StreamWriter) -> None:
    """One call, answered by its path."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    assert "authorization: bearer secret" in head.lower()
    status, body = answers[head.split(" ")[1]]
    writer.write(f"HTTP/1.1 {status} .\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ((409, '{"error": {"code": "conflict", "message": "there is one already"}}'), ConflictError, "one already"),
        ((200, "<html>"), UnavailableError, "/channels answered with something else"),
        ((502, "<html>"), UnavailableError, "/channels answered with status 502"),
    ],
)
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


async def test_nobody_who_answers_is_said_with_the_address() -> None:
    async with Operator("", "http://127.0.0.1:1", "secret") as operator:
        with pytest.raises(UnavailableError, match=r"no answer from http://127\.0\.0\.1:1/status"):
            await operator.status()
