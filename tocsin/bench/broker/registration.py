"""Registers subscribers with the coordinator and has it place them, on a few connections at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tocsin.bench.broker.sockets import Script, Sockets
from tocsin.errors import UnavailableError

_CONNECTIONS = 32


class RegisteredSubscriber(msgspec.Struct):
    """Where a registered subscriber belongs."""

    token: str
    url: str


def register(sockets: Sockets, coordinator: str, token: str, names: Sequence[str]) -> list[RegisteredSubscriber]:
    """Registers all, as an operator, and asks for each one's broker. Whom the sockets listen to is served meanwhile."""
    found: dict[str, RegisteredSubscriber] = {}
    host, port = urlsplit(coordinator).hostname or "", urlsplit(coordinator).port or 80
    waiting = iter(names)
    scripts = [_conversation(f"{host}:{port}", token, waiting, found) for _ in range(_CONNECTIONS)]
    for one in sockets.open((host, port), scripts):
        sockets.dismiss(one)
    return [found[name] for name in names]


def _conversation(host: str, token: str, names: Iterator[str], found: dict[str, RegisteredSubscriber]) -> Script:
    buffer = yield _call("GET", "/health", host, token)
    yield from _answer(buffer, [])
    for name in names:
        answers: list[dict[str, Any]] = []
        yield _call("POST", "/users", host, token, msgspec.json.encode({"name": name}))
        yield from _answer(buffer, answers)
        yield _call("GET", "/broker", host, answers[0]["token"])
        yield from _answer(buffer, answers)
        found[name] = RegisteredSubscriber(answers[0]["token"], answers[1]["url"])


def _call(method: str, path: str, host: str, token: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _answer(buffer: bytearray, answers: list[dict[str, Any]]) -> Script:
    """Waits for an answer, and adds it."""
    while (end := buffer.find(b"\r\n\r\n")) < 0:
        yield b""
    head = bytes(buffer[:end]).lower()
    size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(buffer) < end + 4 + size:
        yield b""
    body = bytes(buffer[end + 4 : end + 4 + size])
    del buffer[: end + 4 + size]
    if not head.startswith((b"http/1.1 200", b"http/1.1 201")):
        raise UnavailableError(f"the coordinator refused: {body.decode()}")
    answers.append(msgspec.json.decode(body))
