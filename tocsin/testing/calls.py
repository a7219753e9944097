"""The coordinator's HTTP calls that subscribers make, answered by its core."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from tocsin.coordinator import answers, events
from tocsin.errors import NotFoundError, TocsinError
from tocsin.http.failures import problem
from tocsin.model.messages import Failure

Ask = Callable[[Callable[[int], events.Request]], Awaitable[answers.Answer]]


class Calls:
    """One call per connection. While it is ``away``, nobody gets an answer."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.away = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One call, and the end of its connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")), 0)
        body = await reader.readexactly(length)
        status, answer = await self._answer(head, body)
        if not self.away:
            content = msgspec.json.encode(answer)
            cors = "".join(f"Access-Control-Allow-{what}: *\r\n" for what in ("Origin", "Headers", "Methods"))
            lead = f"HTTP/1.1 {status} .\r\n{cors}Connection: close\r\nContent-Length: {len(content)}\r\n\r\n"
            writer.write(lead.encode() + content)

    async def _answer(self, head: str, body: bytes) -> tuple[int, Any]:
        method, target, _ = head.split("\r\n")[0].split(" ")
        url = urlsplit(target)
        try:
            return await self._carry_out(method, url.path, parse_qs(url.query), _token(head), body)
        except TocsinError as error:
            return error.status, Failure(problem(error))

    async def _carry_out(
        self, method: str, path: str, query: dict[str, list[str]], token: str, body: bytes
    ) -> tuple[int, Any]:
        match method, path:
            case "OPTIONS", _:
                return 200, None
            case "POST", "/users":
                name = msgspec.json.decode(body)["name"]
                return 201, await self._ask(lambda handle: events.RegisterUser(handle, name, fresh=True))
            case "GET", "/broker":
                location = (float(query["x"][0]), float(query["y"][0])) if query else None
                return 200, await self._ask(lambda handle: events.RequestBroker(handle, token, location))
            case "DELETE", "/users/me":
                return 200, await self._ask(lambda handle: events.Unregister(handle, token))
        raise NotFoundError(f"there is no call {method} {path}")


def _token(head: str) -> str:
    lines = head.split("\r\n")
    return next((line[22:] for line in lines if line.lower().startswith("authorization: bearer ")), "")
