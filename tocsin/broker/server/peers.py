"""The two peers of a broker: the coordinator, which must hear from it all the time, and the data cluster."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import quote

import httpx
import msgspec

from tocsin.broker import events
from tocsin.broker.server.driver import Driver
from tocsin.broker.server.link import Link, Message
from tocsin.errors import UnavailableError
from tocsin.log import get_logger
from tocsin.model import control, coordination
from tocsin.model.messages import Broker, Failure

log = get_logger(__name__)

BEAT_SECONDS: Final = 1.0
_FROM_COORDINATOR: Final = msgspec.json.Decoder[coordination.FromCoordinator](coordination.FromCoordinator)
_FROM_DATA: Final = msgspec.json.Decoder[events.FromData](events.FromData)


class CoordinatorLink(Link):
    """Says something at least every second."""

    name = "coordinator"

    def __init__(self, driver: Driver, url: str, token: str, ca: str) -> None:
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

    async def next(self, queue: asyncio.Queue[Message]) -> Message:
        """The next message, or a sign of life when there is none."""
        try:
            async with asyncio.timeout(BEAT_SECONDS):
                return await queue.get()
        except TimeoutError:
            return coordination.Beat()


class DataLink(Link):
    """Makes the broker known, then dials; usable from the welcome on."""

    name = "data"

    def __init__(self, driver: Driver, client: httpx.AsyncClient, broker: Broker, token: str, ca: str) -> None:
        url = f"{str(client.base_url).rstrip('/')}/control?broker={quote(broker.name)}"
        super().__init__(driver, url, token, 5.0, ca)
        self._client, self._broker = client, broker

    async def prepare(self) -> None:
        """Registers the broker, which may be done again and again."""
        try:
            answer = await self._client.post("/brokers", content=msgspec.json.encode(self._broker))
        except httpx.HTTPError as error:
            raise UnavailableError(str(error) or type(error).__name__) from None
        if not answer.is_success:
            raise UnavailableError(f"refused with status {answer.status_code}: {_explained(answer)}")

    def opened(self) -> None:
        """Nothing: the welcome is waited for."""

    def receive(self, data: bytes) -> None:
        """Passes a message on. Results in it are not parsed."""
        message = _FROM_DATA.decode(data)
        if isinstance(message, control.Welcome):
            self.connected()
        else:
            self._driver.feed(events.Told(message))

    async def next(self, queue: asyncio.Queue[Message]) -> Message:
        """The next message."""
        return await queue.get()


def _explained(answer: httpx.Response) -> str:
    try:
        return msgspec.json.decode(answer.content, type=Failure).error.message
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return "no reason was given"
