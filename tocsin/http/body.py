"""Request bodies: never more of one in memory than the server was told to take, whatever the client announces.

A body that is too large is answered at once. What is still on its way is thrown away as it arrives, rather than the
connection closed: most clients read an answer only once they have sent everything.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from starlette.requests import Request

from tocsin.errors import InvalidError, StorageError, TooLargeError
from tocsin.schema.refusals import UNDECODABLE, undecodable

T = TypeVar("T")
_WRITE_BYTES: Final = 1 << 20


async def read(request: Request, most: int) -> bytes:
    """The body; TooLargeError as soon as it is known to be longer than ``most`` bytes."""
    _check_announced(request, most)
    body = bytearray()
    async for chunk in request.stream():
        _check_length(len(body) + len(chunk), most)
        body += chunk
    return bytes(body)


async def save(request: Request, path: Path, most: int) -> None:
    """Writes the body to a new file, a megabyte at a time; TooLargeError as for :func:`read`."""
    _check_announced(request, most)
    try:
        with await asyncio.to_thread(path.open, "xb") as file:
            length, waiting = 0, bytearray()
            async for chunk in request.stream():
                length += len(chunk)
                _check_length(length, most)
                waiting += chunk
                if len(waiting) >= _WRITE_BYTES:
                    await asyncio.to_thread(file.write, waiting)
                    waiting = bytearray()
            await asyncio.to_thread(file.write, waiting)
    except OSError as error:
        raise StorageError(f"the file could not be stored: {error.strerror}; nothing was loaded") from None


def decode(text: bytes | str, type_: type[T]) -> T:
    """JSON text from outside as a struct; InvalidError says which field is wrong, and how."""
    try:
        return msgspec.json.decode(text, type=type_)
    except UNDECODABLE as error:
        raise undecodable(error, "body") from None


def text(body: bytes) -> str:
    """The body as text."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidError(f"the body is not UTF-8 text: {error.reason} at byte {error.start}") from None


def content_type(request: Request) -> str:
    """The media type of the body, in lower case and without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _check_announced(request: Request, most: int) -> None:
    with suppress(ValueError):
        _check_length(int(request.headers.get("content-length", "0")), most)


def _check_length(length: int, most: int) -> None:
    if length > most:
        raise TooLargeError(f"the body is larger than the {most} bytes this call takes; send it in smaller parts")
