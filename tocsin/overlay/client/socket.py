"""One WebSocket to a head or an edge, read and written for a core."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus, WebSocketException
from websockets.frames import CloseCode

from tocsin.dialling import socket_url
from tocsin.errors import ForbiddenError, TooLargeError, UnauthorizedError
from tocsin.model.messages import read_problem
from tocsin.trust import trust

# It would tell every frame and header, with the token in them.
_quiet = logging.getLogger("tocsin.overlay.client.websockets")
_quiet.setLevel(logging.ERROR)
_OPEN_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 2.0


class OverlaySocket:
    """A connection in a task of its own, which tells what happens on it until it is lost or closed.

    Args:
        url: of the broker.
        token: the clients' token of the overlay, if there is one.
        ca: the file of a private authority that is trusted.
        opened: called when it stands.
        said: awaited with each message; while it does not return, nothing more is read.
        lost: called with the reason when it is over, or could not be opened.
        refused: called when the token is not taken, a message is too large, or nothing can be done with ``ca``: to try
            again would not help.
    """

    def __init__(
        self,
        url: str,
        token: str,
        ca: str,
        opened: Callable[[], None],
        said: Callable[[bytes], Awaitable[None]],
        lost: Callable[[str], None],
        refused: Callable[[Exception], None],
    ) -> None:
        self._url, self._token, self._ca = _client_url(url), token, ca
        self._opened, self._said, self._lost, self._refused = opened, said, lost, refused
        self._texts: asyncio.Queue[bytes] = asyncio.Queue()
        self.task = asyncio.create_task(self._run(), name=f"tocsin {url}")

    def send(self, message: msgspec.Struct) -> None:
        """Says something, soon; what is not sent when the connection is lost is lost."""
        self._texts.put_nowait(msgspec.json.encode(message))

    async def close(self) -> None:
        """Closes in an orderly way, after what was said; nothing is told any more."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            reason = await self._hold()
        except InvalidStatus as error:
            status = error.response.status_code
            if status in (UnauthorizedError.status, ForbiddenError.status):
                self._refused(UnauthorizedError(f"{self._url} does not take this token: {_reason(error)}"))
                return
            reason = f"refused with status {status}; is an edge or a head of an overlay there?"
        except ConnectionClosedError as error:
            if error.rcvd and error.rcvd.code == CloseCode.MESSAGE_TOO_BIG:
                large = f"{self._url} takes no message as large as one that was sent: overlay.message_bytes"
                self._refused(TooLargeError(large))
                return
            reason = str(error)
        except (OSError, TimeoutError, WebSocketException, ValueError, msgspec.MsgspecError) as error:
            reason = str(error) or type(error).__name__
        except Exception as error:
            # Authorities that cannot be read, or a fault here: whoever waits would wait for ever.
            self._refused(error)
            return
        self._lost(reason)

    async def _hold(self) -> str:
        """Holds the connection until it is over; says why it is."""
        options = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        async with connect(
            self._url,
            ssl=trust(self._ca) if self._url.startswith("wss:") else None,
            additional_headers=options,
            compression=None,
            open_timeout=_OPEN_SECONDS,
            close_timeout=_CLOSE_SECONDS,
            max_size=None,
            proxy=None,
            logger=_quiet,
        ) as socket:
            self._opened()
            writing = asyncio.create_task(self._write(socket))
            try:
                async for message in socket:
                    await self._said(message if isinstance(message, bytes) else message.encode())
            except asyncio.CancelledError:
                await self._flush(socket)
                await socket.close()
                raise
            finally:
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)
        return socket.close_reason or "the connection was closed"

    async def _write(self, socket: ClientConnection) -> None:
        while True:
            await socket.send(await self._texts.get(), text=True)

    async def _flush(self, socket: ClientConnection) -> None:
        while not self._texts.empty():
            await socket.send(self._texts.get_nowait(), text=True)


def _reason(error: InvalidStatus) -> str:
    problem = read_problem(error.response.body)
    return problem.message if problem else "give one of the overlay's clients"


def _client_url(url: str) -> str:
    return f"{socket_url(url)}/client"
