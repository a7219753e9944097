"""What keeps a server from listening, or from taking one more: it is told in words, or borne with where it can be."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
import ssl
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from starlette.requests import Request

from tests.certificate import certificate
from tocsin.errors import StorageError, TooLargeError, UnavailableError
from tocsin.http import accepting, body
from tocsin.http.accepting import Acceptor
from tocsin.http.doorway import Doorways
from tocsin.http.listening import ADDRESS, allow_files, bind, config, note_address


def refuse(code: int) -> Any:
    raise OSError(code, os.strerror(code))


def test_a_host_that_is_none_is_told_with_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnavailableError, match=r"^cannot listen on data\.host = a\.\.b: .*label empty"):
        bind("data", "a..b", 0)
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=unknown))
    with pytest.raises(UnavailableError, match=r"^cannot listen on data\.host = nowhere: Name or service not known$"):
        bind("data", "nowhere", 0)


def test_an_address_of_another_machine_is_told_and_leaves_no_socket() -> None:
    with pytest.raises(UnavailableError, match=r"^cannot listen on 192\.0\.2\.1, port 8700: .+ --set data\.port=N$"):
        bind("data", "192.0.2.1", 8700)


def test_idle_connections_are_kept_for_longer_than_by_our_clients() -> None:
    """Who hangs up first must be the one who asks, else a request may come just when the server does."""
    kept = httpx.Limits().keepalive_expiry
    assert kept is not None
    assert config(None, Doorways(1)).timeout_keep_alive > kept


def test_an_address_that_cannot_be_noted_is_told_and_the_old_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_address(tmp_path, "http://127.0.0.1:1")
    monkeypatch.setattr(os, "replace", lambda *_: refuse(errno.ENOSPC))
    with pytest.raises(StorageError, match=r"cannot be written to .*: No space left on device"):
        note_address(tmp_path, "http://127.0.0.1:2")
    assert (tmp_path / ADDRESS).read_text(encoding="utf-8") == "http://127.0.0.1:1\n"


@pytest.mark.parametrize(
    ("soft", "hard", "wanted"),
    [
        (1000, 5000, 2100),
        (1000, 2000, 2000),
        (1000, resource.RLIM_INFINITY, 2100),
        (3000, 5000, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_a_process_has_as_many_files_as_it_needs_and_may(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, wanted: int | None
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    allow_files("broker", 2000)
    assert asked == ([] if wanted is None else [(wanted, hard)])


def test_a_system_that_gives_no_more_files_does_not_keep_a_server_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: refuse(errno.EPERM))
    allow_files("broker", 2000)


async def test_who_comes_while_the_system_has_no_files_is_served_when_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "_PAUSE", 0.01)
    files, loop = certificate(tmp_path), asyncio.get_running_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["tls_certificate"], files["tls_key"])
    accept, refusals = loop.sock_accept, iter(range(3))

    async def scarce(listener: socket.socket) -> Any:
        return await accept(listener) if next(refusals, None) is None else refuse(errno.EMFILE)

    monkeypatch.setattr(loop, "sock_accept", scarce)
    made: asyncio.Future[None] = loop.create_future()

    class Served(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            transport.close()
            made.set_result(None)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        acceptor = Acceptor(Served, context, 30.0, 10)
        acceptor.start(listener, 10)
        trusting = ssl.create_default_context(cafile=files["tls_certificate"])
        reader, writer = await asyncio.open_connection(*listener.getsockname(), ssl=trusting)
        assert await reader.read() == b""
        await made
        writer.close()
        acceptor.close()
        await acceptor.wait_closed()
    assert next(refusals, None) is None


def request(*chunks: bytes, headers: dict[str, str] | None = None) -> Request:
    """One whose body comes in these chunks."""
    waiting = [
        {"type": "http.request", "body": chunk, "more_body": number < len(chunks)}
        for number, chunk in enumerate(chunks, 1)
    ]

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    sent = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    return Request({"type": "http", "method": "POST", "headers": sent}, receive)


@pytest.mark.parametrize("announced", [{}, {"content-length": "2"}, {"content-length": "many"}])
async def test_a_body_is_never_taken_beyond_its_bound_whatever_was_announced(
    tmp_path: Path, announced: dict[str, str]
) -> None:
    with pytest.raises(TooLargeError, match="larger than the 10 bytes"):
        await body.read(request(b"123456", b"78901", headers=announced), 10)
    with pytest.raises(TooLargeError, match="larger than the 10 bytes"):
        await body.save(request(b"123456", b"78901", headers=announced), tmp_path / "file", 10)
    assert await body.read(request(b"123456", b"7890", headers=announced), 10) == b"1234567890"


async def test_a_body_that_the_disk_does_not_take_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="could not be stored: No such file or directory; nothing was loaded"):
        await body.save(request(b"1"), tmp_path / "none" / "file", 10)
    (tmp_path / "file").write_bytes(b"another's")
    with pytest.raises(StorageError, match="could not be stored: File exists; nothing was loaded"):
        await body.save(request(b"1"), tmp_path / "file", 10)
    assert (tmp_path / "file").read_bytes() == b"another's"


async def test_a_large_body_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "_WRITE_BYTES", 4)
    await body.save(request(b"12", b"345", b"", b"6789", b"0"), tmp_path / "file", 10)
    assert (tmp_path / "file").read_bytes() == b"1234567890"
