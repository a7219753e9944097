"""What a coordinator answers that is none, or not well: one sentence that says so."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter

import pytest

from tocsin.client import register
from tocsin.errors import BusyError, InvalidError, UnavailableError
from tocsin.testing.serving import serving


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        (
            200,
            b"<html>",
            UnavailableError,
            "answered with status 200, but not as a coordinator does; is the URL right?",
        ),
        (200, b'{"toke": 1}', UnavailableError, "answered with status 200, but not as a coordinator does"),
        (200, b'{"token": "\xff"}', UnavailableError, "answered with status 200, but not as a coordinator does"),
        (404, b"Not Found", UnavailableError, "answered with status 404, but not as a coordinator does"),
        (502, b'{"error": "\xff"}', UnavailableError, "answered with status 502, but not as a coordinator does"),
        (503, b'{"error": {"code": "busy", "message": "too many"}}', BusyError, "^too many$"),
    ],
)
async def test_whatever_is_answered_is_one_sentence(
    status: int, body: bytes, error: type[Exception], said: str
) -> None:
    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d .\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))

    async with serving(answer) as port:
        with pytest.raises(error, match=said):
            await register(f"http://127.0.0.1:{port}", "ann")


async def test_a_connection_that_ends_without_an_answer_is_one_sentence() -> None:
    async def leave(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with serving(leave) as port:
        with pytest.raises(UnavailableError, match="no answer from the coordinator at"):
            await register(f"http://127.0.0.1:{port}", "ann")


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8700",
        "ws://localhost:8700",
        "http://",
        "http://[::1",
        "http://localhost:99999",
        "http://localhost:high",
        "http://1.2.3.400:8700",
        "http://a\tb:8700",
        "http://xn--a.example:8700",
    ],
)
async def test_what_can_be_no_url_is_refused_before_anybody_is_asked(url: str) -> None:
    with pytest.raises(InvalidError, match=r"is no coordinator's URL; one looks like http://localhost:8700$"):
        await register(url, "ann")
