"""Publishing to a head: each publication is sent until it is stored."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tocsin.alarm import Alarm
from tocsin.errors import InvalidError, UnavailableError
from tocsin.overlay import publisher as core
from tocsin.overlay.client.socket import OverlaySocket
from tocsin.overlay.dialogue import Refused, ToPublisher
from tocsin.overlay.events import Tick

_TOLD: Final[msgspec.json.Decoder[ToPublisher]] = msgspec.json.Decoder(ToPublisher)


class ContentPublisher:
    """A publisher of one name at one head.

    What can go wrong: the head is not there, or dies: what is not stored is sent again when it is back. At first it
    cannot be reached, or it refuses: that is raised to all who publish.
    """

    def __init__(self, name: str, head: str, token: str, ca: str) -> None:
        self.name, self._head, self._token, self._ca = name, head, token, ca
        self._core, self._loop = core.OverlayPublisher(name), asyncio.get_running_loop()
        self._alarm = Alarm(lambda: self._tell(Tick()))
        self._socket: OverlaySocket | None = None
        self._unstored: deque[asyncio.Future[None]] = deque()
        self._rejected = ""
        self._reached = False
        self._error: Exception | None = None

    async def publish(self, content: Mapping[str, Any]) -> None:
        """Returns when the head has stored it; raises InvalidError for what cannot be a publication."""
        if self._error:
            raise self._error
        stored: asyncio.Future[None] = self._loop.create_future()
        self._unstored.append(stored)
        self._tell(core.PublishContent(dict(content)))
        reason, self._rejected = self._rejected, ""
        if reason:
            raise InvalidError(reason)
        await asyncio.shield(stored)

    async def close(self) -> None:
        """Leaves. What is not stored may be lost."""
        self._end(UnavailableError("the connection was closed before this was stored"))
        if self._socket:
            await self._socket.close()

    def _tell(self, event: core.PublisherEvent) -> None:
        if self._error:
            return
        for action in self._core.handle(self._loop.time(), event):
            self._do(action)
        while len(self._unstored) > self._core.waiting:
            stored = self._unstored.pop() if self._rejected else self._unstored.popleft()
            if not stored.done():
                stored.set_result(None)
        wake = self._core.wake()
        if wake is not None and not self._error:
            self._alarm.set(wake)

    def _do(self, action: core.PublisherAction) -> None:
        match action:
            case core.SendClusterHead(message):
                if self._socket:
                    self._socket.send(message)
            case core.OpenClusterHead():
                self._socket = OverlaySocket(
                    self._head, self._token, self._ca, self._opened, self._said, self._lost, self._end
                )
            case core.Reject(_, reason):
                self._rejected = reason

    def _opened(self) -> None:
        self._tell(core.ClusterHeadOpened())

    async def _said(self, text: bytes) -> None:
        message = _TOLD.decode(text)
        if isinstance(message, Refused):
            self._end(InvalidError(message.message))
            return
        self._reached = True
        self._tell(core.ClusterHeadSaid(message))

    def _lost(self, reason: str) -> None:
        if not self._reached:
            self._end(UnavailableError(f"no head can be published to at {self._head}: {reason}"))
        self._tell(core.ClusterHeadLost())

    def _end(self, error: Exception) -> None:
        self._error = self._error or error
        self._alarm.cancel()
        for stored in self._unstored:
            if not stored.done():
                stored.set_exception(self._error)
                # It is raised where it is awaited, if it is.
                stored.exception()
        self._unstored.clear()
