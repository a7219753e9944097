"""Servers of ours dial each other alike, and say why they could not."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import WebSocketException
from websockets.http11 import Request, Response

from tocsin.dialling import check_trust, dial, socket_url, tell_why
from tocsin.errors import SettingsError

WHY = b'{"error": {"code": "forbidden", "message": "north may not"}}'


async def refused(answer: Response | None, token: str = "secret") -> str:
    """Why a server that answers the handshake so, or drops the connection after it, could not be kept."""
    shown: list[str | None] = []

    def judge(_: ServerConnection, request: Request) -> Response | None:
        shown.append(request.headers.get("Authorization"))
        return answer

    async def leave(socket: ServerConnection) -> None:
        await socket.close(4400, "I do not understand")

    async with serve(leave, "127.0.0.1", 0, process_request=judge) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        with pytest.raises((WebSocketException, OSError)) as said:
            async with dial(f"http://127.0.0.1:{port}/link", token, ca="", ping_seconds=5.0) as socket:
                await socket.recv()
    assert shown == [f"Bearer {token}" if token else None]
    return tell_why(said.value)


@pytest.mark.server
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (WHY, "north may not"),
        (b"<html>", "no reason was given"),
        (b"\xff", "no reason was given"),
        (b"", "no reason was given"),
        (b'{"x":' + b"[" * 100_000, "no reason was given"),
    ],
    ids=["in our words", "html", "no text", "nothing", "very deep"],
)
async def test_a_refusal_is_told_in_the_words_of_the_server_if_it_has_any(body: bytes, said: str) -> None:
    length = Headers({"Content-Length": str(len(body))})
    answer = Response(HTTPStatus.FORBIDDEN, "Forbidden", length, body)
    assert await refused(answer) == f"refused with status 403: {said}"


@pytest.mark.server
@pytest.mark.parametrize("token", ["secret", ""])
async def test_a_close_is_told_with_its_code_and_a_token_is_shown_if_there_is_one(token: str) -> None:
    assert (await refused(None, token)).startswith("closed: received 4400 (private use) I do not understand")


def test_an_error_without_words_is_named_by_its_kind() -> None:
    assert tell_why(TimeoutError()) == "TimeoutError"
    assert tell_why(ConnectionRefusedError(111, "Connection refused")) == "[Errno 111] Connection refused"


@pytest.mark.parametrize(
    ("url", "dialled"),
    [
        ("http://north:8700/", "ws://north:8700"),
        ("https://north/a", "wss://north/a"),
        ("wss://north", "wss://north"),
        ("ws://http:8700", "ws://http:8700"),
    ],
)
def test_a_url_of_calls_and_of_websockets_mean_the_same(url: str, dialled: str) -> None:
    assert socket_url(url) == dialled


def test_authorities_that_cannot_be_used_are_told_before_anything_is_dialled(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.pem \(tls\.ca\) cannot be used"):
        check_trust("https://north:8700", str(tmp_path / "nowhere.pem"))
    check_trust("http://north:8700", str(tmp_path / "nowhere.pem"))
