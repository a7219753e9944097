"""A node's connection to the head: dialled again and again, with pauses that grow, until the node ends."""

from __future__ import annotations

import asyncio
from itertools import cycle
from random import SystemRandom
from typing import Final, Protocol
from urllib.parse import quote

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import WebSocketException

from tocsin.broker.backoff import Backoff
from tocsin.data.sharing.wire import ConnectionRefused, ForNode, FromWorker, NodeWelcome
from tocsin.dialling import GOING_AWAY, dial, tell_why
from tocsin.errors import TocsinError, UnavailableError
from tocsin.log import get_logger
from tocsin.settings import WorkerSettings
from tocsin.tasks import until_one_ends

log = get_logger(__name__)

MOST_WAITING: Final = 10_000
# What the head tells of 4,096 slices, the most there can be, is far less.
MESSAGE_BYTES: Final = 8 << 20
_PING_SECONDS: Final = 5.0
_MESSAGES: Final = msgspec.json.Decoder[ForNode](ForNode)


class LinkEvents(Protocol):
    """Who is told what happens."""

    def connected(self, welcome: NodeWelcome, /) -> None:
        """The head has said which feeds there are."""

    def received(self, message: ForNode, /) -> None:
        """It says something else."""

    def lost(self) -> None:
        """The connection is over."""


class WorkerLink:
    """The connection of a node.

    What can go wrong: the head is not there, refuses, is lost with or without a word, or says what cannot be read. Each
    ends the connection, is logged once, and the head is dialled again, in turn wherever it may be, at ever longer
    intervals as long as no connection lasts.
    """

    def __init__(self, settings: WorkerSettings, ca: str, events: LinkEvents) -> None:
        self._heads = cycle(heads_of(settings))
        self._head, self._node, self._ca = "", settings.name, ca
        self._token = settings.token
        self._events = events
        self._queue: asyncio.Queue[FromWorker] = asyncio.Queue()
        self._up_since: float | None = None
        self._told, self._last_word = dict[str, str](), ""
        self._backoff = Backoff(SystemRandom())

    @property
    def is_up(self) -> bool:
        """Whether the head can be spoken to."""
        return self._up_since is not None

    @property
    def since(self) -> float | None:
        """Since when; None while it cannot."""
        return self._up_since

    def send(self, message: FromWorker) -> None:
        """Sends soon; what is not sent when the connection is lost is lost."""
        if self._queue.qsize() < MOST_WAITING:
            self._queue.put_nowait(message)

    async def keep(self) -> None:
        """Keeps the connection up, for ever."""
        while True:
            try:
                await self._hold()
                reason = "it closed the connection"
            except (OSError, TimeoutError, WebSocketException, TocsinError, msgspec.MsgspecError) as error:
                reason = self._last_word or tell_why(error)
            except Exception:
                log.exception("fault in the connection to the head")
                reason = "a fault here"
            lasted = 0.0 if self._up_since is None else asyncio.get_running_loop().time() - self._up_since
            self._lose(reason)
            await asyncio.sleep(self._backoff.after(lasted))

    async def _hold(self) -> None:
        self._queue, self._last_word = asyncio.Queue(), ""
        self._head = next(self._heads)
        url = f"{self._head.rstrip('/')}/nodes?node={quote(self._node)}"
        async with dial(url, self._token, ca=self._ca, ping_seconds=_PING_SECONDS, most_bytes=MESSAGE_BYTES) as socket:
            try:
                await until_one_ends(self._listen(socket), self._talk(socket))
            except asyncio.CancelledError:
                await socket.close(GOING_AWAY, "the node is going away")
                raise

    async def _listen(self, socket: ClientConnection) -> None:
        while True:
            self._receive(_MESSAGES.decode(await socket.recv(decode=False)))

    def _receive(self, message: ForNode) -> None:
        match message:
            case NodeWelcome():
                self._up_since, self._told = asyncio.get_running_loop().time(), {}
                log.info("connected to the head", url=self._head)
                self._events.connected(message)
            case ConnectionRefused(code, reason):
                self._last_word = f"{reason} ({code})"
            case _:
                self._events.received(message)

    async def _talk(self, socket: ClientConnection) -> None:
        while True:
            message = await self._queue.get()
            if self._queue.qsize() >= MOST_WAITING - 1:
                raise UnavailableError("it does not take what it is told")
            await socket.send(msgspec.json.encode(message), text=True)

    def _lose(self, reason: str) -> None:
        if self._up_since is not None:
            self._up_since = None
            self._events.lost()
        if reason != self._told.get(self._head):
            log.warning("no connection to the head", url=self._head, reason=reason)
        self._told[self._head] = reason


def heads_of(settings: WorkerSettings) -> list[str]:
    """Where the head may be."""
    return [url.strip() for url in settings.head.split(",") if url.strip()]
