"""A broker's two links: to the coordinator, which must hear from it all the time, and to the data cluster. Each is
dialled again and again, with pauses that grow and are never the same, until the broker stops."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import cycle
from random import SystemRandom
from typing import Final
from urllib.parse import quote

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tocsin.broker import events
from tocsin.broker.backoff import BEAT_SECONDS, Backoff
from tocsin.broker.server.driver import BrokerDriver
from tocsin.dialling import GOING_AWAY, check_trust, dial, explain, socket_url, tell_why
from tocsin.errors import TocsinError, UnavailableError
from tocsin.log import get_logger
from tocsin.model import control, coordination
from tocsin.model.messages import BrokerAddress
from tocsin.tasks import until_one_ends

log = get_logger(__name__)
# A peer that does not take so many messages is as good as gone, and is told everything when it is back.
MOST_WAITING: Final = 100_000
# A data cluster that takes longer to know a broker may be held up, and another have taken over.
_REGISTER_SECONDS: Final = 5.0
_FROM_COORDINATOR: Final = msgspec.json.Decoder[coordination.FromCoordinator](coordination.FromCoordinator)
_FROM_DATA: Final = msgspec.json.Decoder[events.FromData](events.FromData)
LinkMessage = control.Request | coordination.FromBroker


class Link(ABC):
    """One of a broker's two links.

    What can go wrong: the peer is not there, refuses, is lost with or without a word, says what cannot be read, or does
    not take what it is told. Each ends the link, is logged once, and the peer is dialled again; at ever longer
    intervals as long as no link lasts.
    """

    name: events.LinkName

    def __init__(self, driver: BrokerDriver, url: str, token: str, ping_seconds: float, ca: str) -> None:
        self._driver, self._url, self._ping_seconds = driver, socket_url(url), ping_seconds
        self._token, self._ca = token, ca
        check_trust(self._url, ca)
        self._queue: asyncio.Queue[LinkMessage] = asyncio.Queue(MOST_WAITING)
        self._up_since: float | None = None
        self._told, self._overflowing = "", False
        self._backoff = Backoff(SystemRandom())

    def send(self, message: LinkMessage) -> None:
        """Sends soon; what is not sent when the link is lost is lost."""
        try:
            self._queue.put_nowait(message)
        except asyncio.QueueFull:
            self._overflowing = True

    async def keep(self) -> None:
        """Keeps the link up, for ever."""
        while True:
            self._up_since = None
            try:
                await self._hold()
                reason = "it closed the connection"
            except (OSError, TimeoutError, WebSocketException, TocsinError, msgspec.MsgspecError) as error:
                reason = tell_why(error)
            except Exception:
                log.exception("fault in a link", link=self.name)
                reason = "a fault here"
            lasted = self._seconds_open()
            self._lose(reason)
            await asyncio.sleep(self._backoff.after(lasted))

    @abstractmethod
    async def prepare(self) -> None:
        """What must be done before the peer is dialled."""

    @abstractmethod
    def receive(self, data: bytes) -> None:
        """A message of the peer."""

    @abstractmethod
    async def next(self, queue: asyncio.Queue[LinkMessage]) -> LinkMessage:
        """What to say next."""

    def connected(self) -> None:
        """The link can be used from now on."""
        self._up_since, self._told = asyncio.get_running_loop().time(), ""
        log.info("link is up", link=self.name, url=self._url)
        self._driver.connected(self.name)

    async def _hold(self) -> None:
        await self.prepare()
        self._queue, self._overflowing = asyncio.Queue(MOST_WAITING), False
        async with self._dial() as socket:
            self.opened()
            try:
                await until_one_ends(self._listen(socket), self._talk(socket))
            except asyncio.CancelledError:
                await socket.close(GOING_AWAY, "the broker is going away")
                raise

    def _dial(self) -> connect:
        return dial(self._url, self._token, ca=self._ca, ping_seconds=self._ping_seconds, most_frames=None)

    @abstractmethod
    def opened(self) -> None:
        """The connection is there."""

    async def _listen(self, socket: ClientConnection) -> None:
        while True:
            self.receive(await socket.recv(decode=False))

    async def _talk(self, socket: ClientConnection) -> None:
        while True:
            message = await self.next(self._queue)
            if self._overflowing:
                raise UnavailableError("it does not take what it is told")
            await socket.send(msgspec.json.encode(message), text=True)

    def _seconds_open(self) -> float:
        """For how long the link could be used."""
        return 0.0 if self._up_since is None else asyncio.get_running_loop().time() - self._up_since

    def _lose(self, reason: str) -> None:
        if self._up_since is not None:
            self._driver.lost(self.name)
        if reason != self._told:
            log.warning("link is down", link=self.name, url=self._url, reason=reason)
        self._told = reason


class CoordinatorLink(Link):
    """Says something at least every second."""

    name = "coordinator"

    def __init__(self, driver: BrokerDriver, url: str, token: str, ca: str) -> None:
        super().__init__(driver, f"{url.rstrip('/')}/link", token, 2.0, ca)

    async def prepare(self) -> None:
        """Nothing: the token says who dials."""

    def opened(self) -> None:
        """The core says hello."""
        self.connected()

    def receive(self, data: bytes) -> None:
        """Passes a message on."""
        message = _FROM_COORDINATOR.decode(data)
        if isinstance(message, coordination.Refused):
            log.warning("refused by the coordinator", code=message.code, reason=message.message)
        self._driver.feed(events.Told(message))

    async def next(self, queue: asyncio.Queue[LinkMessage]) -> LinkMessage:
        """The next message, or a sign of life when there is none."""
        try:
            async with asyncio.timeout(BEAT_SECONDS):
                return await queue.get()
        except TimeoutError:
            return coordination.Beat()


class DataLink(Link):
    """Makes the broker known, then dials; usable from the welcome on."""

    name = "data"

    def __init__(
        self,
        driver: BrokerDriver,
        client: httpx.AsyncClient,
        urls: Sequence[str],
        broker: BrokerAddress,
        token: str,
        ca: str,
    ) -> None:
        super().__init__(driver, _control_url(urls[0], broker.name), token, 3.0, ca)
        self._client, self._broker, self._urls = client, broker, cycle(urls)
        self._turn()

    async def prepare(self) -> None:
        """Registers the broker, which may be done again and again; where that fails, the next URL is tried next."""
        try:
            await self._register()
        except UnavailableError:
            self._turn()
            raise

    async def _register(self) -> None:
        try:
            content = msgspec.json.encode(self._broker)
            answer = await self._client.post("/brokers", content=content, timeout=_REGISTER_SECONDS)
        except httpx.HTTPError as error:
            raise UnavailableError(str(error) or type(error).__name__) from None
        if not answer.is_success:
            raise UnavailableError(f"refused with status {answer.status_code}: {explain(answer.content)}")

    def _turn(self) -> None:
        """To the next of the URLs, with publications too: one of them is active, the others stand by."""
        url = next(self._urls)
        self._client.base_url, self._url = httpx.URL(url), _control_url(url, self._broker.name)

    def opened(self) -> None:
        """Nothing: the welcome is waited for."""

    def receive(self, data: bytes) -> None:
        """Passes a message on. Results in it are not parsed."""
        message = _FROM_DATA.decode(data)
        if isinstance(message, control.Welcome):
            self.connected()
        else:
            self._driver.feed(events.Told(message))

    async def next(self, queue: asyncio.Queue[LinkMessage]) -> LinkMessage:
        """The next message."""
        return await queue.get()


def _control_url(url: str, broker: str) -> str:
    return socket_url(f"{url.rstrip('/')}/control?broker={quote(broker)}")
